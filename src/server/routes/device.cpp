// /api/devices and what else there is to see of devices. Nothing here opens one.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/text/json_writer.h"
#include "base/text/units.h"
#include "manager/ledger/store.h"
#include "present/device/device.h"
#include "present/device/device_status.h"
#include "present/device/usage.h"
#include "server/http/problem.h"
#include "server/routes/parameters.h"
#include "server/services.h"
#include "server/watch/snapshot.h"
#include "tenon/diagnostics.h"

namespace tenon::server {
namespace {

bool is_waiting(const DeviceUser& user) { return !user.is_holding; }

Response devices(Services& services, const Call& call) {
  Response response;
  JsonWriter json(response.body);
  DeviceTable table = DeviceTable::read(services.manager);
  const std::string all = call.request.parameter("all").value_or("false");
  if (all != "true" && all != "false") throw Error(ErrorCode::invalid_argument, "'all' must be true or false");
  if (all == "false") table.leave_out_unused_ways();
  json.begin_object();
  json.key("devices");
  table.write(json);
  json.member("default", services.manager.default_device().id);
  json.list("notes", table.found.notes);
  json.key("searched");
  present::write_searched(json, search_accelerators(SystemRoot()));
  json.end_object();
  return response;
}

struct QueueStatistics {
  std::uint64_t requests = 0;
  std::int64_t waiting = 0;
  double longest_seconds = 0;
};

QueueStatistics statistics_of(const std::vector<DeviceStatus>& status, const std::string& only) {
  QueueStatistics queue;
  for (const DeviceStatus& s : status) {
    if (!only.empty() && s.device.id != only) continue;
    queue.requests += s.counters.leases;
    queue.waiting += std::count_if(s.users.begin(), s.users.end(), is_waiting);
    for (const DeviceUser& user : s.users)
      if (is_waiting(user)) queue.longest_seconds = std::max(queue.longest_seconds, user.seconds);
  }
  return queue;
}

void write_queue(JsonWriter& json, const QueueStatistics& queue) {
  json.member("total_requests", queue.requests);
  json.member("currently_waiting", queue.waiting);
  json.member("max_wait_time_seconds", queue.longest_seconds);
}

// The id of the device that the request names; "" if it names none.
std::string requested_device(Services& services, const Call& call) {
  const std::optional<std::string> requested = call.request.parameter("device");
  return requested && !requested->empty() ? services.manager.find(*requested).id : std::string();
}

// As the calculator called it, and its other policies.
std::string_view mode_of(KeepOpenPolicy policy) { return policy == KeepOpenPolicy::on_demand ? "on-demand" : name(policy); }

std::string state_text(const std::string& id, const DeviceStatus* status) {
  if (status == nullptr) return fmt::format("{}: no backend of this server supports it", id);
  if (present::holder_elsewhere(*status) != nullptr) return present::held_text(*status);
  if (status->state == DeviceState::closed) return fmt::format("{} is closed; it opens when there is work", id);
  return fmt::format("{} is {}{}", id, name(status->state), status->reason.empty() ? "" : ": " + status->reason);
}

Response device_status(Services& services, const Call& call) {
  const std::string requested = requested_device(services, call);
  DeviceTable table = services.device_view.get(std::chrono::steady_clock::now());
  const std::string id = requested.empty() ? services.manager.default_device().id : requested;
  const auto is_it = [&](const DeviceInfo& device) { return device.id == id; };
  // It may have come since the machine was read.
  if (std::ranges::none_of(table.found.devices, is_it)) table = DeviceTable::read(services.manager);
  const auto found = std::ranges::find_if(table.found.devices, is_it);
  if (found == table.found.devices.end()) throw Error(ErrorCode::not_found, fmt::format("unknown device '{}'", id));
  const DeviceStatus* status = table.status_of(id);
  const bool in_use = status != nullptr && std::any_of(status->users.begin(), status->users.end(),
                                                       [](const DeviceUser& user) { return user.is_holding; });
  Response response;
  JsonWriter json(response.body);
  json.begin_object();
  json.member("available", found->available);
  json.member("mode", mode_of(services.manager.config().keep_open));
  json.member("sharing", found->exclusive ? "serialized" : "shared");
  json.member("message", found->available ? state_text(id, status) : fmt::format("{}: {}", id, found->reason));
  json.member("in_use", in_use);
  json.key("queue_stats").begin_object();
  write_queue(json, statistics_of(table.status, id));
  json.end_object();
  json.text_or_null("error", found->available ? "" : found->reason);
  json.key("device");
  present::write_device(json, *found, status);
  json.end_object();
  return response;
}

Response device_queue(Services& services, const Call& call) {
  const std::string only = requested_device(services, call);
  const std::vector<DeviceStatus> status = services.manager.status();
  Response response;
  JsonWriter json(response.body);
  json.begin_object();
  write_queue(json, statistics_of(status, only));
  json.key("devices").begin_array();
  for (const DeviceStatus& s : status) {
    if (!only.empty() && s.device.id != only) continue;
    json.begin_object();
    json.member("id", s.device.id);
    json.member("device", s.device.id);
    json.key("users");
    present::write_users(json, s);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return response;
}

Response leases(Services& services) {
  Response response;
  JsonWriter json(response.body);
  json.begin_object();
  json.key("leases").begin_array();
  for (const DeviceStatus& s : services.manager.status()) {
    int place = 0;
    for (const DeviceUser& user : s.users) {
      json.begin_object();
      json.member("device", s.device.id);
      json.member("who", user.who);
      json.member("holding", user.is_holding);
      json.member("here", user.is_here);
      json.member("seconds", user.seconds);
      json.member("place", user.is_holding ? 0 : ++place);
      json.end_object();
    }
  }
  json.end_array();
  json.end_object();
  return response;
}

Response policy(Services& services) {
  const Config& config = services.manager.config();
  Response response;
  JsonWriter json(response.body);
  json.begin_object();
  json.member("keep_open", name(config.keep_open));
  json.member("worth", config.worth);
  json.member("linger_seconds", config.linger_seconds);
  json.member("quantum_seconds", config.quantum_seconds);
  json.member("min_hold_seconds", config.min_hold_seconds);
  json.key("devices").begin_array();
  for (const DeviceStatus& s : services.manager.status()) {
    json.begin_object();
    json.member("id", s.device.id);
    json.member("name", s.policy);
    json.member("threshold_seconds", s.threshold_seconds);
    json.member("break_even_seconds", s.break_even_seconds);
    json.member("cost_over_optimum", s.cost_over_optimum);
    json.member("state", name(s.state));
    json.text_or_null("reason", s.reason);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return response;
}

void write_ledger(JsonWriter& json, const Call& call) {
  const std::uint64_t since = natural_parameter(call, "since", 30 * 24 * 3600);
  const std::uint64_t limit = std::min<std::uint64_t>(natural_parameter(call, "limit", 200), 5000);
  LedgerStore store = LedgerStore::open_existing(ledger_file());
  UseQuery query;
  query.since = query.now - std::chrono::seconds(std::min<std::uint64_t>(since, 100ull * 365 * 24 * 3600 / 2));
  const auto sums = [&](const char* member, UseKey by) {
    query.by = by;
    json.key(member).begin_array();
    for (const UseSum& sum : store.sums(query).groups) present::write_use_sum(json, sum, by);
    json.end_array();
  };
  json.member("enabled", true);
  sums("totals", UseKey::device);
  sums("programs", UseKey::program);
  sums("days", UseKey::day);
  json.key("entries").begin_array();
  for (const Use& use : store.latest(static_cast<std::size_t>(limit))) present::write_use(json, use);
  json.end_array();
}

Response ledger(Services& services, const Call& call) {
  Response response;
  JsonWriter json(response.body);
  const auto without = [&](const char* reason) {
    response.body.clear();
    json.begin_object();
    json.member("enabled", false);
    json.member("reason", reason);
    for (const char* empty : {"totals", "programs", "days", "entries"}) json.key(empty).raw("[]");
    json.end_object();
    return std::move(response);
  };
  if (!ledger_is_built()) return without("this build of Tenon has no ledger (SQLite)");
  if (!services.manager.config().ledger) return without("the ledger is off in the configuration");
  try {
    json.begin_object();
    write_ledger(json, call);
    json.end_object();
    return response;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::not_found) throw;
    return without("nothing has been recorded yet");
  }
}

// Why there is no accelerator, or what the first one lacks: read from the machine's files.
Response doctor(Services& services) {
  Response response;
  JsonWriter json(response.body);
  json.begin_object();
  json.key("checks").begin_array();
  for (const Check& check : check_accelerators(services.manager.detect())) {
    json.begin_object();
    json.member("id", check.id);
    json.member("verdict", name(check.verdict));
    json.member("text", check.text);
    json.text_or_null("remedy", check.remedy);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return response;
}

Response timeline(Services& services, const Call& call) {
  const std::uint64_t since = natural_parameter(call, "since", 0);
  Response response;
  JsonWriter json(response.body);
  json.begin_object();
  json.key("events").begin_array();
  std::uint64_t next = since;
  for (const EventHub::Recorded& recorded : services.events.since(since)) {
    present::write_event(json, recorded.event, recorded.id);
    next = recorded.id;
  }
  json.end_array();
  json.member("next", next);
  json.key("holds");
  services.holds.write(json);
  json.end_object();
  return response;
}

Response events(Services& services, const Call& call) {
  if (services.traffic.streams >= services.options.max_streams)
    throw Problem(503, "overloaded", "too many event streams are open").with_retry(10);
  std::uint64_t after = services.events.last_id();
  if (const std::string_view last = call.request.field("Last-Event-ID"); !last.empty()) {
    std::uint64_t id = 0;
    const auto [end, failure] = std::from_chars(last.data(), last.data() + last.size(), id);
    if (failure == std::errc() && end == last.data() + last.size()) after = id;
  } else {
    after = natural_parameter(call, "since", after);
  }
  services.next_second = {};  // a fresh picture at the next tick
  Response response;
  response.content_type = "text/event-stream";
  response.fields.emplace_back("X-Accel-Buffering", "no");
  response.stream = services.events.subscribe(after);
  return response;
}

}  // namespace

void add_device_routes(RouteTable& routes, Services& services) {
  const auto add = [&](std::string path, std::string summary, std::string schema, std::vector<std::string> parameters,
                       Handler handler) {
    routes.add({.method = Method::get,
                .path = std::move(path),
                .tag = "devices",
                .summary = std::move(summary),
                .runs = Runs::in_worker,
                .response_schema = std::move(schema),
                .parameters = std::move(parameters),
                .failures = {404},
                .handler = std::move(handler)});
  };
  add("/api/devices", "List the devices of the machine with their state; the CPU through other drivers with all=true", "Devices",
      {"all: boolean"}, [&](const Call& call) { return devices(services, call); });
  add("/api/device/status", "Show whether a device can be used, and who uses it", "DeviceStatus", {"device: string"},
      [&](const Call& call) { return device_status(services, call); });
  add("/api/device/queue", "Show how many requests wait, and for how long", "DeviceQueue", {"device: string"},
      [&](const Call& call) { return device_queue(services, call); });
  add("/api/leases", "List holders and waiters of devices", R"({"type":"object","required":["leases"]})", {},
      [&](const Call&) { return leases(services); });
  add("/api/doctor", "Say why there is no accelerator, and what each one lacks; opens nothing",
      R"({"type":"object","required":["checks"]})", {}, [&](const Call&) { return doctor(services); });
  add("/api/policy", "Show how long devices are kept open", R"({"type":"object","required":["keep_open","worth","devices"]})", {},
      [&](const Call&) { return policy(services); });
  add("/api/ledger", "Show the use and cost of devices", "Ledger", {"since: integer", "limit: integer"},
      [&](const Call& call) { return ledger(services, call); });
  add("/api/timeline", "List past device events, and the holds of other processes",
      R"({"type":"object","required":["events","next","holds"]})", {"since: integer"},
      [&](const Call& call) { return timeline(services, call); });
  routes.add({.method = Method::get,
              .path = "/api/events",
              .tag = "devices",
              .summary = "Stream device events (server-sent events)",
              .media = "text/event-stream",
              .parameters = {"since: integer"},
              .renews_session = false,
              .handler = [&services](const Call& call) { return events(services, call); }});
}

}  // namespace tenon::server

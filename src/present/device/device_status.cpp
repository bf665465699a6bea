#include "present/device/device_status.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/units.h"
#include "lease/turnstile/process_identity.h"
#include "lease/turnstile/queue_text.h"
#include "present/device/device.h"
#include "present/run.h"
#include "present/text.h"

namespace tenon::present {
namespace {

void write_waits(JsonWriter& json, std::string_view name, const WaitHistogram& waits) {
  json.key(name).begin_object();
  json.member("seconds", waits.seconds);
  json.list("counts", waits.counts);
  json.end_object();
}

void write_counters(JsonWriter& json, const DeviceCounters& c) {
  json.key("counters").begin_object();
  json.member("leases", c.leases);
  json.member("warm", c.warm);
  json.member("cold", c.cold);
  json.member("queued", c.queued);
  json.member("timeouts", c.timeouts);
  json.member("cancellations", c.cancellations);
  json.member("overtakes", c.overtakes);
  json.member("opens", c.opens);
  json.member("open_failures", c.open_failures);
  json.member("closes", c.closes);
  json.member("close_failures", c.close_failures);
  json.member("dirty_grants", c.dirty_grants);
  json.member("yields", c.yields);
  json.member("lost", c.lost);
  json.member("requeued_at_close", c.requeued_at_close);
  json.member("runs", c.runs);
  json.member("run_failures", c.run_failures);
  json.member("spills", c.spills);
  json.member("restores", c.restores);
  json.member("evictions", c.evictions);
  json.member("bytes_up", c.bytes_up);
  json.member("bytes_down", c.bytes_down);
  json.member("open_seconds", c.open_seconds);
  json.member("close_seconds", c.close_seconds);
  json.member("busy_seconds", c.busy_seconds);
  json.member("idle_seconds", c.idle_seconds);
  json.member("queue_seconds", c.queue_seconds);
  json.member("compute_seconds", c.compute_seconds);
  json.end_object();
  json.key("waits").begin_object();
  json.list("limit_seconds", WaitHistogram::kLimitSeconds);
  write_waits(json, "warm", c.warm_waits);
  write_waits(json, "cold", c.cold_waits);
  write_waits(json, "queued", c.queued_waits);
  json.end_object();
}

void write_ratio(JsonWriter& json, std::string_view name, double part, double whole) {
  json.key(name);
  if (whole > 0)
    json.value(std::clamp(part / whole, 0.0, 1.0));
  else
    json.null();
}

void write_place(JsonWriter& json, const Turnstile::Position& place) {
  json.begin_object();
  json.member("who", who(place));
  json.member("ticket", place.ticket);
  json.member("mode", place.kind == TicketKind::shared ? "shared" : "exclusive");
  if (place.is_known) {
    json.member("pid", place.pid);
    json.member("same_pid_namespace", place.is_in_this_pid_namespace);
    json.member("uid", place.uid);
    json.member("user", user_name(place.uid));
    json.member("command", place.command);
    json.member("seconds", seconds_since(place));
  }
  json.end_object();
}

}  // namespace

void write_status(JsonWriter& json, const DeviceStatus& status) {
  const DeviceCounters& c = status.counters;
  json.begin_object();
  json.member("state", name(status.state));
  json.text_or_null("reason", status.reason);
  json.member("state_seconds", status.state_seconds);
  json.member("epoch", status.epoch);
  json.key("users");
  write_users(json, status);
  json.member("waiting",
              std::count_if(status.users.begin(), status.users.end(), [](const DeviceUser& u) { return !u.is_holding; }));
  json.key("memory").begin_object();
  json.member("limit_bytes", status.memory_limit_bytes);
  json.member("used_bytes", status.memory_used_bytes);
  json.member("peak_bytes", status.memory_peak_bytes);
  json.member("resident_tensors", status.resident_tensors);
  json.end_object();
  json.key("policy").begin_object();
  json.member("name", status.policy);
  json.member("threshold_seconds", status.threshold_seconds);
  json.member("break_even_seconds", status.break_even_seconds);
  json.member("cost_over_optimum", status.cost_over_optimum);
  json.end_object();
  const double open = c.busy_seconds + c.idle_seconds;
  write_ratio(json, "utilisation", c.compute_seconds, open);
  write_ratio(json, "efficiency", c.busy_seconds, open + c.open_seconds + c.close_seconds);
  json.member("open_seconds", open);
  write_counters(json, c);
  json.end_object();
}

void write_device(JsonWriter& json, const DeviceInfo& device, const DeviceStatus* status) {
  json.begin_object();
  write_device_members(json, device);
  json.key("status");
  if (status != nullptr)
    write_status(json, *status);
  else
    json.null();
  json.end_object();
}

void write_users(JsonWriter& json, const DeviceStatus& status) {
  json.begin_array();
  for (const DeviceUser& user : status.users) {
    json.begin_object();
    json.member("who", user.who);
    json.member("holding", user.is_holding);
    json.member("here", user.is_here);
    json.member("seconds", user.seconds);
    json.end_object();
  }
  json.end_array();
}

const DeviceUser* holder_elsewhere(const DeviceStatus& status) {
  const auto found = std::ranges::find_if(status.users, [](const DeviceUser& user) { return user.is_holding && !user.is_here; });
  return found == status.users.end() ? nullptr : &*found;
}

std::string held_text(const DeviceStatus& status) {
  const DeviceUser& holder = *holder_elsewhere(status);
  const auto waiting = std::ranges::count_if(status.users, [](const DeviceUser& user) { return !user.is_holding; });
  return fmt::format("{} is held by {} for {}{}", status.device.id, holder.who, format_seconds(holder.seconds),
                     waiting == 0 ? "" : fmt::format("; {} {} for it", waiting, waiting == 1 ? "waits" : "wait"));
}

void write_queue(JsonWriter& json, const Turnstile::Queue& queue) {
  json.begin_object();
  json.member("device", queue.device);
  json.member("dirty", queue.is_dirty);
  const auto places = [&](const JsonKey& name, bool are_holding) {
    json.key(name).begin_array();
    for (const Turnstile::Position& place : queue.places)
      if (place.is_holding == are_holding) write_place(json, place);
    json.end_array();
  };
  places("holders", true);
  places("waiters", false);
  json.end_object();
}

void write_event(JsonWriter& json, const DeviceEvent& event, std::uint64_t id) {
  json.begin_object();
  json.member("id", id);
  json.member("kind", name(event.kind));
  json.member("device", event.device);
  json.member("when", utc_text(event.when));
  json.member("time", std::chrono::duration<double>(event.when.time_since_epoch()).count());
  json.member("seconds", event.seconds);
  json.text_or_null("message", event.message);
  json.member("epoch", event.epoch);
  json.text_or_null("program", event.program);
  json.key("timeline");
  write_timeline(json, event.timeline);
  json.member("bytes", event.bytes);
  json.end_object();
}

}  // namespace tenon::present

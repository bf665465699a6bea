#include "server/watch/device_json.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>

namespace tenon::server {
namespace {

template <class Range>
void write_texts(JsonWriter& json, std::string_view name, const Range& texts) {
  json.key(name).begin_array();
  for (const auto& text : texts) json.value(text);
  json.end_array();
}

void write_waits(JsonWriter& json, std::string_view name, const WaitHistogram& waits) {
  json.key(name).begin_object();
  json.member("seconds", waits.seconds);
  json.key("counts").begin_array();
  for (const std::uint64_t count : waits.counts) json.value(count);
  json.end_array();
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
  json.key("limit_seconds").begin_array();
  for (const double limit : WaitHistogram::kLimitSeconds) json.value(limit);
  json.end_array();
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

void write_status(JsonWriter& json, const DeviceStatus& status) {
  const DeviceCounters& c = status.counters;
  json.begin_object();
  json.member("state", name(status.state));
  json.member("reason", status.reason);
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

}  // namespace

std::string utc_text(std::chrono::system_clock::time_point when) {
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(when.time_since_epoch()).count();
  const std::time_t seconds = static_cast<std::time_t>(milliseconds / 1000);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", parts, milliseconds % 1000);
}

void write_device_brief(JsonWriter& json, const DeviceInfo& device) {
  json.begin_object();
  json.member("id", device.id);
  json.member("kind", name(device.kind));
  json.member("name", device.name);
  json.member("simulated", is_simulated(device));
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

void write_device(JsonWriter& json, const DeviceInfo& device, const DeviceStatus* status) {
  json.begin_object();
  json.member("id", device.id);
  json.member("kind", name(device.kind));
  json.member("name", device.name);
  json.member("vendor", device.vendor);
  json.member("architecture", device.architecture);
  json.member("simulated", is_simulated(device));
  write_texts(json, "backends", device.backends);
  write_texts(json, "aliases", device.aliases);
  json.member("available", device.available);
  json.member("reason", device.reason);
  json.member("remedy", device.remedy);
  json.member("exclusive", device.exclusive);
  json.member("memory_total_bytes", device.memory_total_bytes);
  json.member("memory_free_bytes", device.memory_free_bytes);
  json.member("driver_version", device.driver_version);
  json.member("runtime_version", device.runtime_version);
  json.member("pci_address", device.pci_address);
  json.member("power_watts", device.power_watts);
  json.member("temperature_celsius", device.temperature_celsius);
  json.member("cost_per_hour", device.cost_per_hour);
  json.member("cost_is_estimate", device.cost_is_estimate);
  json.key("details").begin_object();
  for (const auto& [key, value] : device.details) json.member(key, value);
  json.end_object();
  json.key("status");
  if (status != nullptr)
    write_status(json, *status);
  else
    json.null();
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
  json.member("message", event.message);
  json.member("epoch", event.epoch);
  json.member("program", event.program);
  json.key("timeline").begin_array();
  for (const Span& span : event.timeline) {
    json.begin_object();
    json.member("stage", span.stage);
    json.member("start_seconds", span.start_seconds);
    json.member("seconds", span.seconds);
    json.end_object();
  }
  json.end_array();
  json.member("bytes", event.bytes);
  json.end_object();
}

}  // namespace tenon::server

#include "present/device/usage.h"

#include <algorithm>

#include "present/text.h"

namespace tenon::present {

void write_use_sum(JsonWriter& json, const UseSum& sum, std::optional<UseKey> by) {
  json.begin_object();
  if (by) json.member(name(*by), sum.key);
  json.member("leases", sum.leases);
  json.member("runs", sum.runs);
  json.member("opens", sum.opens);
  json.member("failures", sum.failures);
  json.member("bytes", sum.bytes);
  json.member("held_seconds", sum.held_seconds);
  json.member("compute_seconds", sum.compute_seconds);
  json.member("busy_seconds", sum.compute_seconds);  // its name in the first version of the HTTP interface
  json.member("idle_seconds", std::max(0.0, sum.open_seconds - sum.held_seconds));
  json.member("open_seconds", sum.open_seconds);
  json.member("unpriced_open_seconds", sum.unpriced_open_seconds);
  json.member("queued_seconds", sum.queued_seconds);
  json.member("cost_dollars", sum.money);
  json.member("cost_is_estimate", sum.money_is_estimate);
  json.member("always_open_cost_dollars", sum.always_open_money);
  json.member("efficiency", sum.efficiency());
  json.end_object();
}

void write_use(JsonWriter& json, const Use& use) {
  const auto held = std::chrono::duration_cast<SystemTime::duration>(std::chrono::duration<double>(use.held_seconds));
  json.begin_object();
  json.member("device", use.device);
  json.member("program", use.program);
  json.member("begin", utc_text(use.begin));
  json.member("end", utc_text(use.begin + held));
  json.member("held_seconds", use.held_seconds);
  json.member("compute_seconds", use.compute_seconds);
  json.member("busy_seconds", use.compute_seconds);
  json.member("open_seconds", use.open_seconds);
  json.member("queued_seconds", use.queued_seconds);
  json.member("runs", use.runs);
  json.key("cost_dollars");
  if (use.price_per_hour)
    json.value(*use.price_per_hour * use.open_seconds / 3600);
  else
    json.null();
  json.member("outcome", use.result);
  json.end_object();
}

}  // namespace tenon::present

// /api/device/reset: brings a device back to a known state, after it was asked twice.
#include <fmt/format.h>

#include <chrono>
#include <map>
#include <mutex>

#include "base/log.h"
#include "base/text/json_writer.h"
#include "base/text/units.h"
#include "manager/reset.h"
#include "server/http/body/json_reader.h"
#include "server/http/problem.h"
#include "server/services.h"

namespace tenon::server {
namespace {

constexpr std::chrono::seconds kConfirmWithin{60};

// Tokens that were given out and not used yet.
class Confirmations {
 public:
  std::string ask(const std::string& device) {
    const std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    std::erase_if(asked_, [&](const auto& entry) { return now - entry.second.when >= kConfirmWithin; });
    if (asked_.size() >= 1000)
      throw Problem(429, "resource_exhausted", "too many resets are waiting for confirmation").with_retry(60);
    const std::string token = random_id("c_");
    asked_[token] = {device, now};
    return token;
  }
  // True once, for the device it was given out for.
  bool take(const std::string& token, const std::string& device) {
    const std::lock_guard lock(mutex_);
    const auto found = asked_.find(token);
    if (found == asked_.end()) return false;
    const bool fits = found->second.device == device && Clock::now() - found->second.when < kConfirmWithin;
    asked_.erase(found);
    return fits;
  }

 private:
  struct Asked {
    std::string device;
    Clock::time_point when;
  };
  std::mutex mutex_;
  std::map<std::string, Asked> asked_;
};

Response reset(Services& services, Confirmations& confirmations, const Call& call) {
  const MemoryGate::Share parsed = services.reader(call).parsing(call.request.text().size());
  const boost::json::object document = parse_object(call.request.text());
  Members members(document, "");
  const std::optional<std::string> requested = members.text("device");
  const std::optional<std::string> confirm = members.text("confirm");
  members.done();
  if (!requested || requested->empty()) members.fail("'device' must name the device to reset");
  // A token is used up by the attempt, whatever becomes of it.
  if (confirm && !confirmations.take(*confirm, services.manager.find(*requested).id))
    throw Error(ErrorCode::failed_precondition, "the confirmation has expired", "send the request again without 'confirm'");
  const ResetPlan plan = plan_reset(services.manager, *requested);
  const DeviceInfo& device = plan.device;
  Response response;
  JsonWriter json(response.body);
  json.begin_object();
  if (!confirm) {
    json.member("success", false);
    json.member("confirmation_required", true);
    json.member("confirm", confirmations.ask(device.id));
    json.member("expires_in_seconds", kConfirmWithin.count());
    json.member("message", fmt::format("{} Running programs have {} to end.", plan.message,
                                       format_seconds(std::chrono::duration<double>(services.options.reset_patience).count())));
    json.end_object();
    return response;
  }
  const ResetResult done = reset_device(services.manager, plan, call.cancel, services.options.reset_patience);
  logging::warn("{} was reset by request {} of {}: {}", device.id, call.id, call.client.key, done.message);
  json.member("success", true);
  json.member("message", fmt::format("{}: {}", device.id, done.message));
  json.member("output", done.output);
  json.end_object();
  return response;
}

}  // namespace

void add_reset_route(RouteTable& routes, Services& services) {
  auto confirmations = std::make_shared<Confirmations>();
  routes.add({.method = Method::post,
              .path = "/api/device/reset",
              .tag = "devices",
              .summary = "Close and reset a device; must be confirmed with the token of the first response",
              .runs = Runs::in_worker,
              .body = BodyKind::json,
              .request_schema = "ResetRequest",
              .response_schema = "ResetAnswer",
              .failures = {404, 409, 504},
              .handler = [&services, confirmations](const Call& call) { return reset(services, *confirmations, call); }});
}

}  // namespace tenon::server

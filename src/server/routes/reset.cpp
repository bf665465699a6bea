// /api/device/reset: brings a device back to a known state, after it was asked twice.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>

#include "base/child_output.h"
#include "base/json_writer.h"
#include "base/log.h"
#include "base/units.h"
#include "lease/turnstile/run_directory.h"
#include "lease/turnstile/turnstile.h"
#include "server/http/json_reader.h"
#include "server/http/problem.h"
#include "server/services.h"

namespace tenon::server {
namespace {

constexpr std::chrono::seconds kConfirmWithin{60};
constexpr std::chrono::seconds kToolTimeout{60};

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

// The maker's own tool; empty where there is none.
std::vector<std::string> reset_command(const DeviceInfo& device) {
  const auto is_driven_by = [&](const char* backend) {
    return std::find(device.backends.begin(), device.backends.end(), backend) != device.backends.end();
  };
  if (is_driven_by("sim")) return {};
  const std::string index = device.id.substr(device.id.find(':') + 1);
  if (device.kind == DeviceKind::tenstorrent) return {"tt-smi", "-r", index};
  if (device.kind == DeviceKind::gpu && device.vendor.find("NVIDIA") != std::string::npos)
    return {"nvidia-smi", "--gpu-reset", "-i", device.pci_address.empty() ? index : device.pci_address};
  return {};
}

DeviceStatus status_of(Services& services, const std::string& id) {
  for (DeviceStatus& status : services.manager.status())
    if (status.device.id == id) return std::move(status);
  throw Error(ErrorCode::failed_precondition, fmt::format("no backend of this server supports {}", id));
}

void refuse_if_foreign(const DeviceStatus& status) {
  for (const DeviceUser& user : status.users)
    if (!user.is_here)
      throw Error(ErrorCode::failed_precondition,
                  fmt::format("{} is {} by {}", status.device.id, user.is_holding ? "held" : "waited for", user.who),
                  "a device in use by others is not reset; end that process, or wait");
}

// Programs that do not queue with us, seen by what they have open. Asked after this server has closed the device itself.
void refuse_if_open_elsewhere(const Services& services, const std::string& id) {
  for (const DeviceInfo& device : services.manager.devices())
    if (device.id == id && !device.holders.empty())
      throw Error(ErrorCode::failed_precondition, fmt::format("{} is open in process {}", id, fmt::join(device.holders, ", ")),
                  "a device in use by others is not reset; end that process, or wait");
}

std::string run_tool(const std::vector<std::string>& command, std::string& output) {
  if (command.empty()) return "closed; there is no reset tool for it, and the next request opens it again";
  const std::optional<std::string> printed = child_output(command, kToolTimeout);
  if (!printed)
    throw Error(ErrorCode::unavailable, fmt::format("the device is closed, but {} failed or is not installed", command[0]),
                fmt::format("run it manually: {}", fmt::join(command, " ")));
  output = printed->substr(0, 16 << 10);
  return fmt::format("reset with {}", command[0]);
}

Response reset(Services& services, Confirmations& confirmations, const Call& call) {
  const boost::json::object document = parse_object(call.request.text());
  Members members(document, "");
  const std::optional<std::string> requested = members.text("device");
  const std::optional<std::string> confirm = members.text("confirm");
  members.done();
  if (!requested || requested->empty()) members.fail("'device' must name the device to reset");
  const DeviceInfo device = services.manager.find(*requested);
  const DeviceStatus status = status_of(services, device.id);
  refuse_if_foreign(status);
  Response response;
  JsonWriter json(response.body);
  json.begin_object();
  if (!confirm) {
    json.member("success", false);
    json.member("confirmation_required", true);
    json.member("confirm", confirmations.ask(device.id));
    json.member("expires_in_seconds", kConfirmWithin.count());
    json.member(
        "message",
        fmt::format("{} is {}; {} hold it or wait for it. Running programs have {} to end; then the device is closed and reset.",
                    device.id, name(status.state), status.users.size(),
                    format_seconds(std::chrono::duration<double>(services.options.reset_patience).count())));
    json.end_object();
    return response;
  }
  if (!confirmations.take(*confirm, device.id))
    throw Error(ErrorCode::failed_precondition, "the confirmation has expired", "send the request again without 'confirm'");
  services.manager.close(device.id, services.options.reset_patience);
  // Our place in the queue between processes: nobody opens the device under the tool, whether it can be shared or not.
  Turnstile::Pass pass;
  if (device.kind != DeviceKind::cpu || device.exclusive)
    pass = Turnstile(RunDirectory::open(), device.id).enter({.timeout = std::chrono::seconds(10), .cancel = call.cancel});
  refuse_if_open_elsewhere(services, device.id);
  std::string output;
  const std::string message = run_tool(reset_command(device), output);
  pass.give_back();
  logging::warn("{} was reset by request {} of {}: {}", device.id, call.id, call.client.key, message);
  json.member("success", true);
  json.member("message", fmt::format("{}: {}", device.id, message));
  json.member("output", output);
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

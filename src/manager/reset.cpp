#include "manager/reset.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>

#include "base/system/child_output.h"
#include "device/naming.h"
#include "lease/turnstile/run_directory.h"
#include "lease/turnstile/turnstile.h"
#include "tenon/error.h"

namespace tenon {
namespace {

constexpr std::chrono::seconds kToolTimeout{60}, kQueueTimeout{10};
constexpr std::size_t kMaxOutput = 16 << 10;
constexpr const char* kInUse = "a device in use by others is not reset; end that process, or wait";

std::vector<std::string> reset_command(const DeviceInfo& device) {
  if (is_simulated(device)) return {};
  const std::string index = device.id.substr(device.id.find(':') + 1);
  // tt-smi counts as the driver does, which may number cards in another order than the bus.
  if (device.kind == DeviceKind::tenstorrent) return {"tt-smi", "-r", device_file_number(device)};
  if (device.kind == DeviceKind::gpu && device.vendor.find("NVIDIA") != std::string::npos)
    return {"nvidia-smi", "--gpu-reset", "-i", device.pci_address.empty() ? index : device.pci_address};
  return {};
}

DeviceStatus status_of(const DeviceManager& manager, const std::string& id) {
  for (DeviceStatus& status : manager.status())
    if (status.device.id == id) return std::move(status);
  throw Error(ErrorCode::failed_precondition, fmt::format("no backend drives {}", id),
              "install its runtime, or reset it with its vendor's tool");
}

std::string users_text(std::size_t users) {
  if (users == 0) return "nobody uses it or waits for it";
  return users == 1 ? "one program uses it or waits for it" : fmt::format("{} programs use it or wait for it", users);
}

// A CPU in a worker process is freed by ending the process.
bool is_in_worker(const DeviceInfo& device, Isolate isolate) {
  return isolate == Isolate::always ||
         (isolate == Isolate::drivers && !device.backends.empty() && device.backends.front() == "opencl");
}

}  // namespace

ResetPlan plan_reset(const DeviceManager& manager, std::string_view request) {
  ResetPlan plan;
  plan.device = manager.find(request);
  const std::string& id = plan.device.id;
  if (plan.device.kind == DeviceKind::cpu && !is_in_worker(plan.device, manager.config().isolate))
    throw Error(ErrorCode::failed_precondition, fmt::format("{} is a CPU; there is nothing to reset", id),
                "restart the program that uses it");
  const DeviceStatus status = status_of(manager, id);
  for (const DeviceUser& user : status.users)
    if (!user.is_here)
      throw Error(ErrorCode::failed_precondition,
                  fmt::format("{} is {} by {}", id, user.is_holding ? "held" : "waited for", user.who), kInUse);
  plan.state = status.state;
  plan.users = status.users.size();
  plan.command = reset_command(plan.device);
  plan.message = fmt::format(
      "{} is {}; {}. {}{}.", id, name(plan.state), users_text(plan.users), plan.users == 0 ? "" : "Running programs end first. ",
      plan.command.empty() ? "The device is closed; there is no reset tool for it"
                           : fmt::format("The device is closed and reset with {}", fmt::join(plan.command, " ")));
  return plan;
}

ResetResult reset_device(DeviceManager& manager, const ResetPlan& plan, const std::stop_token& cancel,
                         std::optional<std::chrono::nanoseconds> patience) {
  const std::string& id = plan.device.id;
  manager.close(id, patience);
  // Our place in the queue between processes: nobody opens the device under the tool, whether it can be shared or not.
  Turnstile::Pass pass = Turnstile(RunDirectory::open(), id).enter({.timeout = kQueueTimeout, .cancel = cancel});
  // Programs that do not queue with us, seen by what they have open.
  for (const DeviceInfo& device : manager.devices())
    if (device.id == id && !device.holders.empty())
      throw Error(ErrorCode::failed_precondition, fmt::format("{} is open in process {}", id, fmt::join(device.holders, ", ")),
                  kInUse);
  ResetResult result;
  if (plan.command.empty()) {
    result.message = "closed; there is no reset tool for it, and the next request opens it again";
  } else {
    const std::optional<std::string> printed = child_output(plan.command, kToolTimeout);
    if (!printed)
      throw Error(ErrorCode::unavailable, fmt::format("the device is closed, but {} failed or is not installed", plan.command[0]),
                  fmt::format("run it manually: {}", fmt::join(plan.command, " ")));
    result.output = printed->substr(0, kMaxOutput);
    result.message = fmt::format("reset with {}", plan.command[0]);
  }
  pass.give_back();
  return result;
}

}  // namespace tenon

// Resetting a device: closed, then brought into a known state by its vendor's tool, while no other process has it.
//
//   const ResetPlan plan = plan_reset(manager, "tenstorrent:0");   // refuses; says what will happen
//   const ResetResult done = reset_device(manager, plan, cancel);
#pragma once

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/manager.h"

namespace tenon {

struct ResetPlan {
  DeviceInfo device;
  DeviceState state{};
  std::size_t users = 0;             // of this process, that hold it or wait for it
  std::vector<std::string> command;  // the vendor's tool; empty if there is none: then it is only closed
  std::string message;               // what will happen, one or two sentences
};

// Throws not_found; failed_precondition for a CPU of this process, for a device that no backend drives, and for one that another
// process holds or waits for.
ResetPlan plan_reset(const DeviceManager& manager, std::string_view request);

struct ResetResult {
  std::string message;  // "reset with tt-smi"
  std::string output;   // of the tool
};
// Running programs of this process end first; those that take longer than |patience| lose the device. Throws failed_precondition
// if another process has the device open, unavailable if the tool failed or is missing, deadline_exceeded if another process gets
// the device first.
ResetResult reset_device(DeviceManager& manager, const ResetPlan& plan, const std::stop_token& cancel = {},
                         std::optional<std::chrono::nanoseconds> patience = std::nullopt);

}  // namespace tenon

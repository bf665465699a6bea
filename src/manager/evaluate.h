// Programs over values that stay where they are: what the evaluation of tensors is made of.
//
// As DeviceManager::run() in everything else: one lease, one compiled program, one timeline, and a second device if the first one
// fails and the choice was left open. Inputs that were lost with the first device fail with data_loss.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "lease/owner/device_owner.h"
#include "lease/storage.h"
#include "tenon/manager.h"

namespace tenon {

struct EvaluateResult {
  std::vector<std::shared_ptr<Storage>> outputs;
  std::shared_ptr<const DeviceOwner> owner;  // of the device it ran on
  Timeline timeline;
  std::shared_ptr<const Decision> decision;
};

EvaluateResult evaluate(DeviceManager& manager, const Graph& graph, std::span<const std::shared_ptr<Storage>> inputs,
                        const RunOptions& options = {});

// The same for a small program that is compiled for this CPU, if it can run without waiting and |options| ask for nothing else: a
// third of the time, and nothing to report. nullopt if it cannot: then nothing was done.
std::optional<std::vector<std::shared_ptr<Storage>>> evaluate_at_once(DeviceManager& manager, const Graph& graph,
                                                                      std::span<const std::shared_ptr<Storage>> inputs,
                                                                      const RunOptions& options = {});

}  // namespace tenon

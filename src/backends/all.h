// Every backend of this build; the only place that lists them.
#pragma once

#include <span>

#include "hal/registry.h"
#include "tenon/simulated.h"

namespace tenon {

// Includes the sim backend if |simulated| is not empty. |isolated|: devices are opened in worker processes, except simulated
// ones, which a worker does not know, and those of pjrt, which always run in one.
void register_all_backends(BackendRegistry& registry, std::span<const SimulatedDevice> simulated = {}, bool isolated = false);

}  // namespace tenon

// Every backend of this build. The one place that names them.
#pragma once

#include <span>

#include "hal/registry.h"
#include "tenon/simulated.h"

namespace tenon {

// The sim backend is among them if there is something to simulate. |isolated|: devices are opened in worker processes, all but
// simulated ones, which a worker knows nothing of, and pjrt's, which always are.
void register_all_backends(BackendRegistry& registry, std::span<const SimulatedDevice> simulated = {}, bool isolated = false);

}  // namespace tenon

// Every backend of this build. The one place that names them.
#pragma once

#include <span>

#include "backend/registry.h"
#include "tenon/simulated.h"

namespace tenon {

// The sim backend is among them if there is something to simulate.
void register_all_backends(BackendRegistry& registry, std::span<const SimulatedDevice> simulated = {});

}  // namespace tenon

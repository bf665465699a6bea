// The `sim` backend: simulated devices (tenon/simulated.h), computing with another backend's first device.
//
// What is on a simulated device is a copy of its own: reading it after the device was closed or lost throws, whatever the inner
// backend would do. Thread safety: as backend.h asks; a device may be lost by one thread while others use it.
#pragma once

#include <memory>
#include <vector>

#include "tenon/backend.h"
#include "tenon/simulated.h"

namespace tenon::sim {

// Throws invalid_argument for what cannot be simulated, not_found for an unknown architecture, already_exists for an id given
// twice.
std::unique_ptr<Backend> make_backend(std::vector<SimulatedDevice> devices, std::unique_ptr<Backend> inner);

}  // namespace tenon::sim

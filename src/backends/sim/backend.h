// The `sim` backend: simulated devices (tenon/device/simulated.h), computing with another backend's first device.
//
// Tensors on a simulated device are separate copies: reading one after the device was closed or lost throws, whatever the inner
// backend would do. Thread safety: as required by backend.h; one thread may lose a device while others use it.
#pragma once

#include <memory>
#include <vector>

#include "tenon/backend.h"
#include "tenon/device/simulated.h"

namespace tenon::sim {

// Throws invalid_argument for an invalid description, not_found for an unknown architecture, already_exists for a duplicate
// id.
std::unique_ptr<Backend> make_backend(std::vector<SimulatedDevice> devices, std::unique_ptr<Backend> inner);

}  // namespace tenon::sim

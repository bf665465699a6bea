// Every backend of this build; the only place that lists them.
#pragma once

#include <cstdint>
#include <span>

#include "hal/registry.h"
#include "tenon/device/simulated.h"

namespace tenon {

// Which devices are opened in worker processes. Simulated ones never are, because a worker does not know them; those of pjrt
// always are.
enum class Hosting : std::uint8_t {
  here,       // none
  workers,    // all
  as_needed,  // those whose libraries keep the device until their process ends: cuda, if there is a worker program
  drivers,    // those that call a vendor's driver: cuda and opencl, if there is a worker program
};

// Includes the sim backend if |simulated| is not empty.
void register_all_backends(BackendRegistry& registry, std::span<const SimulatedDevice> simulated = {},
                           Hosting hosting = Hosting::here);

}  // namespace tenon

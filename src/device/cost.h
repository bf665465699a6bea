// What an hour of a device costs, as long as nobody has said.
#pragma once

#include "tenon/device.h"

namespace tenon {

// Fills cost_per_hour where it is not known, and marks it as an estimate. The processor one sits at costs nothing. A model
// without a published price stays without one.
void estimate_cost(DeviceInfo& device);

}  // namespace tenon

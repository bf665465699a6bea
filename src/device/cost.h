// What an hour of a device costs, as long as nobody has said.
#pragma once

#include <map>
#include <string>

#include "tenon/device.h"

namespace tenon {

// Fills cost_per_hour where it is not known, and marks it as an estimate. The processor one sits at costs nothing. A model
// without a published price stays without one.
void estimate_cost(DeviceInfo& device);

// The price somebody gave in |prices|, US dollars an hour: of its id or an alias, else of its name, else of its kind. Without
// one the device stays as it is.
void apply_prices(DeviceInfo& device, const std::map<std::string, double>& prices);

}  // namespace tenon

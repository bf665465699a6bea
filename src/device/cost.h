// Prices of devices per hour.
#pragma once

#include <map>
#include <string>

#include "tenon/device.h"

namespace tenon {

// Sets cost_per_hour if it is unknown, and marks it as an estimate. The CPU of this machine costs nothing. A model without a
// published price gets none.
void estimate_cost(DeviceInfo& device);

// Applies a price from |prices|, in US dollars per hour: that of its id or an alias, else of its name, else of its kind. Without
// one the device is unchanged.
void apply_prices(DeviceInfo& device, const std::map<std::string, double>& prices);

}  // namespace tenon

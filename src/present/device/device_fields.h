// The properties of a device by name, as text: for tables of chosen columns and for CSV.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/device.h"

namespace tenon::present {

// The names, which are those of the device's JSON members.
std::vector<std::string> device_field_names();

// "" for a property that is not known. Throws invalid_argument for an unknown name.
std::string device_field(const DeviceInfo& device, std::string_view field);

// One line of names and one for each device, quoted as RFC 4180 says.
std::string device_csv(std::span<const DeviceInfo> devices, std::span<const std::string> fields);

}  // namespace tenon::present

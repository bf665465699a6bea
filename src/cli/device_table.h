// Devices as people read them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/terminal/console.h"
#include "tenon/device.h"

namespace tenon::cli {

// Columns aligned, the first row in bold, two spaces in front of each line where |indent| says so.
std::string table(const std::vector<std::vector<std::string>>& rows, const Console& console, int indent = 0);

// One row a device; below one that cannot be used, why and what to do. Columns nobody has a value for are left out.
std::string device_table(std::span<const DeviceInfo> devices, const Console& console, int indent = 0);

// "Hopper, compute capability 9.0, PCI 0000:1b:00.0, ...": what else is known, one fact a line.
std::vector<std::pair<std::string, std::string>> device_facts(const DeviceInfo& device);

}  // namespace tenon::cli

// The devices of a machine joined with what the backends of this process can drive.
#pragma once

#include <span>
#include <vector>

#include "hal/registry.h"
#include "tenon/device.h"

namespace tenon {

// |detected| devices that a backend offers get its name; devices only a backend knows come after them; those no backend drives
// are not available and say so.
std::vector<DeviceInfo> inventory(std::vector<DeviceInfo> detected, const BackendRegistry& registry);

// The device called |wish|, by id or alias; else the first of that kind, one that is available if there is any. nullptr when
// there is none.
const DeviceInfo* find_device(std::span<const DeviceInfo> devices, std::string_view wish);

}  // namespace tenon

// Merges the devices of a machine with those that the backends of this process can drive.
#pragma once

#include <span>
#include <vector>

#include "hal/registry.h"
#include "tenon/device.h"

namespace tenon {

// |detected| devices that a backend can drive get its name; devices that only a backend knows are appended; devices without a
// backend are marked as unavailable with the reason.
std::vector<DeviceInfo> inventory(std::vector<DeviceInfo> detected, const BackendRegistry& registry);

// The device with the id or alias |requested|; else the first of that kind, preferably an available one. nullptr if there is
// none.
const DeviceInfo* find_device(std::span<const DeviceInfo> devices, std::string_view requested);

}  // namespace tenon

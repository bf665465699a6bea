// Shared helpers of the card detectors: device nodes, their holders, sensors.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "device/pci.h"
#include "tenon/device.h"

namespace tenon {

// A device of |kind| in the slot of |pci|, with the properties of the slot.
DeviceInfo card_in(const PciDevice& pci, DeviceKind kind, std::string id, std::string vendor);

// Marks the device as unavailable unless it already is: the first reason is the one to fix first.
void mark_unavailable(DeviceInfo& device, std::string reason, std::string remedy);

// Marks it unavailable unless this process may read and write |node|. |group| usually has access ("" if there is no group).
void require_node(const SystemRoot& machine, const std::string& node, std::string_view group, DeviceInfo& device);
// Marks it unavailable unless the driver bound to the card is one of |drivers|.
void require_driver(const PciDevice& pci, const std::vector<std::string>& drivers, std::string_view remedy, DeviceInfo& device);

// The other processes that have one of |nodes| open, as far as visible to this process.
std::vector<int> holders_of(const SystemRoot& machine, const std::vector<std::string>& nodes);
// Marks it unavailable if the device is exclusive and a process has it open.
void require_unheld(const SystemRoot& machine, DeviceInfo& device);

// Temperature and power from the kernel's hardware monitor of the card.
void read_sensors(const SystemRoot& machine, const PciDevice& pci, DeviceInfo& device);

// A byte count from a file of /sys; nullopt for zero or invalid contents.
std::optional<std::uint64_t> read_bytes(const SystemRoot& machine, const std::string& file);

}  // namespace tenon

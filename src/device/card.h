// What detectors of cards have in common: device nodes, who holds them, sensors.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "device/pci.h"
#include "tenon/device.h"

namespace tenon {

// A device of |kind| in the slot of |pci|, with what the slot tells.
DeviceInfo card_in(const PciDevice& pci, DeviceKind kind, std::string id, std::string vendor);

// Not available, unless that is said already: the first reason is the one to mend first.
void mark_unavailable(DeviceInfo& device, std::string reason, std::string remedy);

// Not available unless this process may read and write |node|. |group| is the group that usually may ("" when there is none).
void require_node(const SystemRoot& machine, const std::string& node, std::string_view group, DeviceInfo& device);
// Not available unless the driver bound to the card is one of |drivers|.
void require_driver(const PciDevice& pci, const std::vector<std::string>& drivers, std::string_view remedy, DeviceInfo& device);

// The processes other than this one that have one of |nodes| open, as far as this process may look.
std::vector<int> holders_of(const SystemRoot& machine, const std::vector<std::string>& nodes);
// Not available when the device is exclusive and a process has it open.
void require_unheld(const SystemRoot& machine, DeviceInfo& device);

// Temperature and power from the kernel's hardware monitor of the card.
void read_sensors(const SystemRoot& machine, const PciDevice& pci, DeviceInfo& device);

// A byte count from a file of /sys; nothing for zero or nonsense.
std::optional<std::uint64_t> read_bytes(const SystemRoot& machine, const std::string& file);

}  // namespace tenon

// The PCI devices of a machine, as the kernel lists them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tenon/system_root.h"

namespace tenon {

struct PciDevice {
  std::string address;  // "0000:1b:00.0"
  std::string path;     // its folder in /sys
  int vendor = 0;
  int device = 0;
  int subsystem_device = 0;
  int device_class = 0;  // 0x030200: base class, subclass, interface
  std::optional<int> numa_node;
  std::string driver;  // "" when none is bound

  // A graphics card, or an accelerator without a display.
  bool is_display() const noexcept { return device_class >> 16 == 0x03; }
  bool is_accelerator() const noexcept { return device_class >> 16 == 0x12; }
};

// The devices of one vendor, ordered by address. For others only the vendor is read, because large machines have hundreds.
std::vector<PciDevice> pci_devices(const SystemRoot& machine, int vendor);

// Normalizes an address to the form above; other tools write the domain with eight digits, or in capitals. "" if invalid.
std::string pci_address(std::string_view text);

// The model name in the machine's copy of the PCI id list; "" if there is none.
std::string pci_name(const SystemRoot& machine, int vendor, int device);

}  // namespace tenon

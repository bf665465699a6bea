#include <fmt/format.h>

#include <array>

#include "device/card.h"
#include "device/detectors.h"

namespace tenon {
namespace {

constexpr int kVendor = 0x1ae0;  // shared with Google's other devices (network, storage), so the device id decides
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

enum class Node { accel, vfio };

struct Chip {
  int device;
  int subsystem;  // 0: any
  std::string_view name;
  Node node;
  std::uint64_t memory;  // nominal, of the chip; 0: not published
};
constexpr std::array<Chip, 10> kChips{{{0x0027, 0x004e, "v2", Node::accel, 16 * kGiB},
                                       {0x0027, 0x004f, "v3", Node::accel, 32 * kGiB},
                                       {0x005e, 0, "v4", Node::accel, 32 * kGiB},
                                       {0x0062, 0, "v5p", Node::vfio, 95 * kGiB},
                                       {0x0063, 0, "v5e", Node::vfio, 16 * kGiB},
                                       {0x006f, 0, "v6e", Node::vfio, 32 * kGiB},
                                       {0x0076, 0, "7x", Node::vfio, 192 * kGiB},
                                       {0x0083, 0, "8i", Node::vfio, 0},
                                       {0x007c, 0, "8t", Node::vfio, 0},
                                       {0x0056, 0, "plc", Node::vfio, 0}}};

const Chip* chip_of(const PciDevice& pci) {
  for (const Chip& chip : kChips)
    if (chip.device == pci.device && (chip.subsystem == 0 || chip.subsystem == pci.subsystem_device)) return &chip;
  return nullptr;
}

std::string node_of(const SystemRoot& machine, const PciDevice& pci, const Chip& chip, std::size_t index) {
  if (chip.node == Node::vfio) {
    const auto group = machine.link_name(pci.path + "/iommu_group");
    return "/dev/vfio/" + group.value_or(std::to_string(index));
  }
  for (const std::string& name : machine.list(pci.path + "/accel"))
    if (name.starts_with("accel")) return "/dev/" + name;
  for (const std::string& name : machine.list("/sys/class/accel"))
    if (machine.link_name("/sys/class/accel/" + name + "/device") == pci.address) return "/dev/" + name;
  return fmt::format("/dev/accel{}", index);
}

class TpuDetector final : public Detector {
 public:
  std::string_view name() const noexcept override { return "tpu"; }

  Detection detect(const SystemRoot& machine) const override {
    Detection found;
    for (const PciDevice& pci : pci_devices(machine, kVendor))
      if (const Chip* chip = chip_of(pci)) found.devices.push_back(read_chip(machine, pci, *chip, found.devices.size()));
    if (const std::string hint = machine.environment("TPU_NAME"); found.devices.empty() && !hint.empty())
      found.notes.push_back(fmt::format("TPU_NAME is '{}', but this machine has no TPU", hint));
    return found;
  }

 private:
  static DeviceInfo read_chip(const SystemRoot& machine, const PciDevice& pci, const Chip& chip, std::size_t index) {
    DeviceInfo device = card_in(pci, DeviceKind::tpu, fmt::format("tpu:{}", index), "Google");
    device.name = fmt::format("Google TPU {}", chip.name);
    device.architecture = chip.name;
    if (chip.memory > 0) device.memory_total_bytes = chip.memory;
    device.memory_is_nominal = chip.memory > 0;
    device.supports_mixed_precision = true;
    device.exclusive = true;  // its runtime holds a lock on the whole host until the process ends
    const std::string node = node_of(machine, pci, chip, index);
    device.details["node"] = node;
    if (pci.driver.empty()) {
      mark_unavailable(device, "no driver is bound to it",
                       chip.node == Node::vfio ? "bind it to vfio-pci, as images for TPU machines do"
                                               : "use an image for TPU machines, which includes the driver");
    } else {
      device.details["driver"] = pci.driver;
    }
    require_node(machine, node, "", device);
    if (chip.node == Node::vfio) require_node(machine, "/dev/vfio/vfio", "", device);
    if (machine.exists(node)) device.holders = holders_of(machine, {node});
    require_unheld(machine, device);
    return device;
  }
};

}  // namespace

std::unique_ptr<Detector> make_tpu_detector() { return std::make_unique<TpuDetector>(); }

}  // namespace tenon

#include <fmt/format.h>

#include <array>

#include "device/card.h"
#include "device/detectors.h"

namespace tenon {
namespace {

constexpr int kVendor = 0x8086;

struct Model {
  int device;
  std::string_view name, architecture;
};
constexpr std::array<Model, 9> kModels{{{0x56a0, "Intel Arc A770", "Xe-HPG"},
                                        {0x56a1, "Intel Arc A750", "Xe-HPG"},
                                        {0x56a5, "Intel Arc A380", "Xe-HPG"},
                                        {0xe20b, "Intel Arc B580", "Xe2-HPG"},
                                        {0xe20c, "Intel Arc B570", "Xe2-HPG"},
                                        {0x0bd5, "Intel Data Center GPU Max 1550", "Xe-HPC"},
                                        {0x0bda, "Intel Data Center GPU Max 1100", "Xe-HPC"},
                                        {0x56c0, "Intel Data Center GPU Flex 170", "Xe-HPG"},
                                        {0x56c1, "Intel Data Center GPU Flex 140", "Xe-HPG"}}};

// No kernel file is reliable for this: i915 has one in some versions, xe has one per tile.
std::optional<std::uint64_t> card_memory(const SystemRoot& machine, const PciDevice& pci) {
  for (const std::string& name : machine.list(pci.path + "/drm"))
    if (const auto bytes = read_bytes(machine, pci.path + "/drm/" + name + "/lmem_total_bytes")) return bytes;
  std::uint64_t sum = 0;
  for (const std::string& name : machine.list(pci.path))
    if (name.starts_with("tile")) sum += read_bytes(machine, pci.path + "/" + name + "/physical_vram_size_bytes").value_or(0);
  if (sum == 0) return std::nullopt;
  return sum;
}

void recognise(const SystemRoot& machine, const PciDevice& pci, DeviceInfo& card) {
  for (const Model& model : kModels) {
    if (model.device != pci.device) continue;
    card.name = model.name;
    card.architecture = model.architecture;
  }
  if (card.name.empty()) card.name = pci_name(machine, pci.vendor, pci.device);
  if (card.name.empty()) card.name = fmt::format("Intel GPU {:04x}", pci.device);
  // Integrated graphics are always in this slot.
  if (pci.address == "0000:00:02.0") card.details["integrated"] = "shares host memory";
}

class IntelDetector final : public Detector {
 public:
  std::string_view name() const noexcept override { return "intel"; }

  Detection detect(const SystemRoot& machine) const override {
    Detection found;
    for (const PciDevice& pci : pci_devices(machine, kVendor)) {
      // Intel accelerators that are not GPUs (QAT, NPU) have the other class.
      if (!pci.is_display()) continue;
      DeviceInfo card = card_in(pci, DeviceKind::gpu, fmt::format("xpu:{}", found.devices.size()), "Intel");
      recognise(machine, pci, card);
      card.supports_mixed_precision = true;
      require_driver(pci, {"i915", "xe"}, "load the driver: modprobe xe (kernel 6.8 or newer), or modprobe i915", card);
      if (pci.driver == "i915" || pci.driver == "xe") {
        card.driver_version = pci.driver + " " + machine.line("/proc/sys/kernel/osrelease").value_or("");
        card.memory_total_bytes = card_memory(machine, pci);
        read_sensors(machine, pci, card);
        for (const std::string& name : machine.list(pci.path + "/drm"))
          if (name.starts_with("renderD")) {
            card.details["node"] = "/dev/dri/" + name;
            require_node(machine, "/dev/dri/" + name, "render", card);
          }
      }
      found.devices.push_back(std::move(card));
    }
    return found;
  }
};

}  // namespace

std::unique_ptr<Detector> make_intel_detector() { return std::make_unique<IntelDetector>(); }

}  // namespace tenon

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <sstream>

#include "device/card.h"
#include "device/detectors.h"

namespace tenon {
namespace {

constexpr int kVendor = 0x1002;

struct Model {
  int device;
  std::string_view name;
};
constexpr std::array<Model, 10> kModels{{{0x74a1, "AMD Instinct MI300X"},
                                         {0x74a0, "AMD Instinct MI300A"},
                                         {0x74a5, "AMD Instinct MI325X"},
                                         {0x740c, "AMD Instinct MI250X"},
                                         {0x740f, "AMD Instinct MI210"},
                                         {0x7408, "AMD Instinct MI250X"},
                                         {0x738c, "AMD Instinct MI100"},
                                         {0x744c, "AMD Radeon RX 7900"},
                                         {0x7448, "AMD Radeon PRO W7900"},
                                         {0x73bf, "AMD Radeon RX 6800/6900"}}};

// A node of the compute driver's topology that can compute.
struct ComputeNode {
  std::string address;
  std::string architecture;  // "gfx942"
};

std::map<std::string, std::uint64_t> read_properties(const SystemRoot& machine, const std::string& file) {
  std::map<std::string, std::uint64_t> properties;
  std::istringstream lines(machine.read(file).value_or(""));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t space = line.find(' ');
    if (space == std::string::npos) continue;
    std::uint64_t value = 0;
    if (std::from_chars(line.data() + space + 1, line.data() + line.size(), value).ec == std::errc{})
      properties[line.substr(0, space)] = value;
  }
  return properties;
}

std::vector<ComputeNode> compute_nodes(const SystemRoot& machine) {
  std::vector<ComputeNode> nodes;
  const std::string folder = "/sys/class/kfd/kfd/topology/nodes";
  for (const std::string& name : machine.list(folder)) {
    auto properties = read_properties(machine, folder + "/" + name + "/properties");
    if (properties["simd_count"] == 0) continue;  // the node of the CPU
    const std::uint64_t location = properties["location_id"], version = properties["gfx_target_version"];
    ComputeNode node;
    node.address = pci_address(fmt::format("{:04x}:{:02x}:{:02x}.{:x}", properties["domain"] & 0xffff, location >> 8 & 0xff,
                                           location >> 3 & 0x1f, location & 7));
    if (version >= 10000 && version < 1000000)
      node.architecture = fmt::format("gfx{}{:x}{:x}", version / 10000, version / 100 % 100, version % 100);
    nodes.push_back(std::move(node));
  }
  return nodes;
}

std::string model_name(const SystemRoot& machine, const PciDevice& pci) {
  if (const auto name = machine.line(pci.path + "/product_name")) return *name;
  for (const Model& model : kModels)
    if (model.device == pci.device) return std::string(model.name);
  if (std::string name = pci_name(machine, pci.vendor, pci.device); !name.empty()) return "AMD " + name;
  return fmt::format("AMD GPU {:04x}", pci.device);
}

void read_memory(const SystemRoot& machine, const PciDevice& pci, DeviceInfo& card) {
  card.memory_total_bytes = read_bytes(machine, pci.path + "/mem_info_vram_total");
  const auto used = machine.number(pci.path + "/mem_info_vram_used");
  if (card.memory_total_bytes && used && *used >= 0 && static_cast<std::uint64_t>(*used) <= *card.memory_total_bytes)
    card.memory_free_bytes = *card.memory_total_bytes - static_cast<std::uint64_t>(*used);
}

void require_compute(const SystemRoot& machine, const PciDevice& pci, const std::vector<ComputeNode>& nodes, DeviceInfo& card) {
  bool listed = false;
  for (const ComputeNode& node : nodes) {
    if (node.address != pci.address) continue;
    listed = true;
    card.architecture = node.architecture;
  }
  if (!listed)
    mark_unavailable(card, "the kernel's compute driver (KFD) does not list it",
                     "use a kernel with CONFIG_HSA_AMD; in a container, pass in /dev/kfd and /dev/dri");
  require_node(machine, "/dev/kfd", "render", card);
  for (const std::string& name : machine.list(pci.path + "/drm"))
    if (name.starts_with("renderD")) {
      card.details["node"] = "/dev/dri/" + name;
      require_node(machine, "/dev/dri/" + name, "render", card);
    }
}

class AmdDetector final : public Detector {
 public:
  std::string_view name() const noexcept override { return "amd"; }

  Detection detect(const SystemRoot& machine) const override {
    Detection found;
    std::vector<PciDevice> cards;
    for (PciDevice& pci : pci_devices(machine, kVendor))
      if (pci.is_display() || pci.is_accelerator()) cards.push_back(std::move(pci));
    if (cards.empty()) return found;
    const std::vector<ComputeNode> nodes = compute_nodes(machine);
    const std::string rocm = machine.line("/opt/rocm/.info/version").value_or("");
    for (const PciDevice& pci : cards) {
      DeviceInfo card = card_in(pci, DeviceKind::gpu, fmt::format("rocm:{}", found.devices.size()), "AMD");
      card.name = model_name(machine, pci);
      card.uuid = machine.line(pci.path + "/unique_id").value_or("");
      card.serial = machine.line(pci.path + "/serial_number").value_or("");
      card.firmware_version = machine.line(pci.path + "/vbios_version").value_or("");
      card.supports_mixed_precision = true;
      if (!rocm.empty()) card.runtime_version = "ROCm " + rocm;
      require_driver(pci, {"amdgpu"}, "load the driver: modprobe amdgpu (firmware: Debian package firmware-amd-graphics)", card);
      if (pci.driver == "amdgpu") {
        card.driver_version =
            machine.line("/sys/module/amdgpu/version").value_or(machine.line("/proc/sys/kernel/osrelease").value_or(""));
        read_memory(machine, pci, card);
        read_sensors(machine, pci, card);
        if (const auto busy = machine.number(pci.path + "/gpu_busy_percent"); busy && *busy >= 0 && *busy <= 100)
          card.details["utilization"] = fmt::format("{} %", *busy);
        require_compute(machine, pci, nodes, card);
      }
      found.devices.push_back(std::move(card));
    }
    return found;
  }
};

}  // namespace

std::unique_ptr<Detector> make_amd_detector() { return std::make_unique<AmdDetector>(); }

}  // namespace tenon

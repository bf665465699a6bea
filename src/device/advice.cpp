#include "device/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "device/pci.h"

namespace tenon {
namespace {

struct Vendor {
  std::string_view id, name;  // the name as in DeviceInfo::vendor
  DeviceKind kind;
  int pci_vendor;
  bool graphics_only;  // the vendor also makes other PCI devices
  std::string_view drivers, nodes, variable;
  std::string_view driver_remedy, runtime_remedy, guide;
};

constexpr std::array<Vendor, 5> kVendors{{
    {"nvidia", "NVIDIA", DeviceKind::gpu, 0x10de, true, "nvidia", "/dev/nvidiactl", "CUDA_VISIBLE_DEVICES",
     "install NVIDIA's driver (Debian: apt install nvidia-driver, from the component non-free) and restart; in a container, "
     "start it with --gpus all",
     "install the libraries of NVIDIA's driver (Debian: apt install libcuda1), and NVRTC and cuBLAS of CUDA 12 or newer (pip "
     "install nvidia-cuda-nvrtc-cu12 nvidia-cublas-cu12)",
     "docs/gpu.md"},
    {"amd", "AMD", DeviceKind::gpu, 0x1002, true, "amdgpu", "/dev/kfd", "ROCR_VISIBLE_DEVICES",
     "load the driver: modprobe amdgpu (firmware: Debian package firmware-amd-graphics); in a container, pass in /dev/kfd and "
     "/dev/dri",
     "install an OpenCL driver: ROCm's (package rocm-opencl-runtime) or Mesa's (Debian: apt install mesa-opencl-icd)",
     "docs/gpu.md"},
    {"intel", "Intel", DeviceKind::gpu, 0x8086, true, "xe or i915", "/dev/dri", "ONEAPI_DEVICE_SELECTOR",
     "load the driver: modprobe xe (kernel 6.8 or newer) or modprobe i915; in a container, pass in /dev/dri",
     "install Intel's OpenCL driver (Debian: apt install intel-opencl-icd)", "docs/gpu.md"},
    {"tpu", "Google", DeviceKind::tpu, 0x1ae0, false, "vfio-pci or gasket", "/dev/vfio or /dev/accel0", "TPU_VISIBLE_CHIPS",
     "use a machine image for TPUs, which includes the driver; in a container, pass in /dev/vfio or /dev/accel*",
     "install the TPU runtime, which includes the PJRT plugin: pip install libtpu", "docs/tpu.md"},
    {"tenstorrent", "Tenstorrent", DeviceKind::tenstorrent, 0x1e52, false, "tenstorrent", "/dev/tenstorrent",
     "TT_VISIBLE_DEVICES",
     "install the kernel driver tt-kmd and load it: modprobe tenstorrent; in a container, pass in /dev/tenstorrent",
     "install TTNN, Tenstorrent's runtime: pip install ttnn (CPython 3.10 or 3.12), and the compiler sfpi that it names",
     "docs/tenstorrent.md"},
}};

const Vendor* vendor_of(const DeviceInfo& device) {
  const auto found =
      std::ranges::find_if(kVendors, [&](const Vendor& v) { return v.name == device.vendor && v.kind == device.kind; });
  return found == kVendors.end() ? nullptr : &*found;
}

std::size_t cards_of(const SystemRoot& machine, const Vendor& vendor) {
  const std::vector<PciDevice> all = pci_devices(machine, vendor.pci_vendor);
  return static_cast<std::size_t>(std::ranges::count_if(
      all, [&](const PciDevice& pci) { return !vendor.graphics_only || pci.is_display() || pci.is_accelerator(); }));
}

// Variables that make a vendor's runtime ignore its cards.
std::string hidden_by(const SystemRoot& machine, const Vendor& vendor) {
  const std::string value = machine.environment(vendor.variable);
  const bool is_hiding = value == "-1" || value == "none" || value == "NoDevFiles";
  return is_hiding ? fmt::format("; {} is '{}', which hides every card", vendor.variable, value) : "";
}

}  // namespace

std::string runtime_remedy(const DeviceInfo& device) {
  const Vendor* vendor = vendor_of(device);
  return vendor == nullptr ? "use another device; programs that drive this one themselves can take a lease on it"
                           : fmt::format("{} (see {})", vendor->runtime_remedy, vendor->guide);
}

std::string searched_for(DeviceKind kind) {
  std::vector<std::string_view> names;
  for (const Vendor& vendor : kVendors)
    if (vendor.kind == kind) names.push_back(vendor.name);
  if (names.empty()) return "no detector found one";
  const std::string last(names.back());
  names.pop_back();
  return fmt::format("no card of {}{}{} is on the PCI bus", fmt::join(names, ", "), names.empty() ? "" : " or ", last);
}

std::vector<SearchResult> search_accelerators(const SystemRoot& machine) {
  std::vector<SearchResult> results;
  const bool has_bus = !machine.list("/sys/bus/pci/devices").empty();
  for (const Vendor& vendor : kVendors) {
    const std::size_t cards = cards_of(machine, vendor);
    SearchResult result{
        .id = std::string(vendor.id), .vendor = std::string(vendor.name), .is_found = cards > 0, .text = {}, .remedy = {}};
    result.text =
        cards > 0 ? fmt::format("{} {} on the PCI bus (vendor {:04x})", cards, cards == 1 ? "card" : "cards", vendor.pci_vendor)
        : has_bus ? fmt::format("no card on the PCI bus (vendor {:04x})", vendor.pci_vendor)
                  : std::string("no PCI bus is visible in /sys/bus/pci/devices");
    const std::string node(vendor.nodes.substr(0, vendor.nodes.find(' ')));
    result.text += fmt::format("; {} {}", vendor.nodes, machine.exists(node) ? "exists" : "does not exist");
    result.text += hidden_by(machine, vendor);
    if (cards == 0) result.remedy = fmt::format("if this machine has one: {} (see {})", vendor.driver_remedy, vendor.guide);
    results.push_back(std::move(result));
  }
  return results;
}

std::vector<CardStep> steps_of(const SystemRoot& machine, const DeviceInfo& device) {
  std::vector<CardStep> steps;
  const Vendor* vendor = vendor_of(device);
  if (device.pci_address.empty() || vendor == nullptr) return steps;
  steps.push_back({"card", true, fmt::format("{} at PCI address {}", device.name, device.pci_address)});
  const std::string driver = machine.link_name("/sys/bus/pci/devices/" + device.pci_address + "/driver").value_or("");
  const bool has_driver = !driver.empty() && vendor->drivers.find(driver) != std::string_view::npos;
  steps.push_back({"driver", has_driver,
                   driver.empty()
                       ? fmt::format("no driver is bound to it; {} is needed", vendor->drivers)
                       : fmt::format("{}{}{}", driver, device.driver_version.empty() ? "" : " ", device.driver_version),
                   std::string(has_driver ? "" : vendor->driver_remedy)});
  if (!has_driver) return steps;
  if (const auto node = device.details.find("node"); node != device.details.end()) {
    const bool exists = machine.exists(node->second), may_use = machine.may_use(node->second);
    steps.push_back({"node", exists, node->second + (exists ? "" : " does not exist"), exists ? "" : device.remedy});
    if (!exists) return steps;
    steps.push_back({"permission", may_use, may_use ? "this user may read and write it" : "this user may not read and write it",
                     may_use ? "" : device.remedy});
    if (!may_use) return steps;
  }
  const bool is_driven = !device.backends.empty();
  steps.push_back({"runtime", is_driven,
                   is_driven ? fmt::format("driven by {}", fmt::join(device.backends, ", ")) : "no backend can drive it",
                   is_driven ? "" : runtime_remedy(device)});
  return steps;
}

}  // namespace tenon

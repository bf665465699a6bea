#include "device/pci.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <sstream>

namespace tenon {
namespace {

constexpr std::size_t kMaxIdList = std::size_t{8} << 20;

int value_of(const SystemRoot& machine, const std::string& file, std::int64_t limit) {
  const std::optional<std::int64_t> value = machine.number(file);
  return value && *value >= 0 && *value <= limit ? static_cast<int>(*value) : 0;
}

// The only NUMA node, if there is just one.
std::optional<int> only_node(const SystemRoot& machine) {
  const std::string folder = "/sys/devices/system/node/";
  if (machine.is_folder(folder + "node0") && !machine.is_folder(folder + "node1")) return 0;
  return std::nullopt;
}

}  // namespace

std::vector<PciDevice> pci_devices(const SystemRoot& machine, int vendor) {
  std::vector<PciDevice> devices;
  const std::string bus = "/sys/bus/pci/devices";
  for (const std::string& name : machine.list(bus)) {
    PciDevice device;
    device.address = pci_address(name);
    device.path = bus + "/" + name;
    device.vendor = value_of(machine, device.path + "/vendor", 0xffff);
    if (device.address.empty() || device.vendor != vendor) continue;
    device.device = value_of(machine, device.path + "/device", 0xffff);
    device.subsystem_device = value_of(machine, device.path + "/subsystem_device", 0xffff);
    device.device_class = value_of(machine, device.path + "/class", 0xffffff);
    // The kernel reports -1 if it does not know.
    if (const auto node = machine.number(device.path + "/numa_node"); node && *node >= 0 && *node < 4096) {
      device.numa_node = static_cast<int>(*node);
    } else {
      device.numa_node = only_node(machine);
    }
    device.driver = machine.link_name(device.path + "/driver").value_or("");
    devices.push_back(std::move(device));
  }
  std::sort(devices.begin(), devices.end(), [](const PciDevice& a, const PciDevice& b) { return a.address < b.address; });
  return devices;
}

std::string pci_address(std::string_view text) {
  unsigned domain = 0, bus = 0, slot = 0, function = 0;
  int end = 0;
  const std::string copy(text);
  if (copy.size() > 32 || sscanf(copy.c_str(), "%8x:%2x:%2x.%1x%n", &domain, &bus, &slot, &function, &end) != 4 ||
      static_cast<std::size_t>(end) != copy.size())
    return "";
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", domain, bus, slot, function);
}

std::string pci_name(const SystemRoot& machine, int vendor, int device) {
  for (const char* file : {"/usr/share/misc/pci.ids", "/usr/share/hwdata/pci.ids"}) {
    const std::optional<std::string> list = machine.read(file, kMaxIdList);
    if (!list) continue;
    const std::string of_vendor = fmt::format("\n{:04x}  ", vendor);
    const std::size_t begin = list->find(of_vendor);
    if (begin == std::string::npos) continue;
    std::istringstream lines(list->substr(begin + of_vendor.size()));
    const std::string of_device = fmt::format("\t{:04x}  ", device);
    std::string line;
    std::getline(lines, line);
    while (std::getline(lines, line) && (line.starts_with('\t') || line.starts_with('#')))
      if (line.starts_with(of_device)) return line.substr(of_device.size());
  }
  return "";
}

}  // namespace tenon

#include "device/card.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

namespace tenon {
namespace {

std::optional<int> process_id(std::string_view text) {
  int pid = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
  if (error != std::errc{} || end != text.data() + text.size() || pid <= 0) return std::nullopt;
  return pid;
}

int own_process(const SystemRoot& machine) {
  if (machine.is_this_machine()) return getpid();
  return process_id(machine.link("/proc/self").value_or("")).value_or(0);
}

std::optional<double> reading(const SystemRoot& machine, const std::string& folder, std::initializer_list<const char*> files,
                              double unit, double limit) {
  for (const char* file : files)
    if (const auto value = machine.number(folder + "/" + file)) {
      const double scaled = static_cast<double>(*value) * unit;
      if (scaled > -limit && scaled < limit) return scaled;
    }
  return std::nullopt;
}

}  // namespace

DeviceInfo card_in(const PciDevice& pci, DeviceKind kind, std::string id, std::string vendor) {
  DeviceInfo device;
  device.id = std::move(id);
  device.kind = kind;
  device.vendor = std::move(vendor);
  device.pci_address = pci.address;
  device.numa_node = pci.numa_node;
  return device;
}

void mark_unavailable(DeviceInfo& device, std::string reason, std::string remedy) {
  if (!device.available) return;
  device.available = false;
  device.reason = std::move(reason);
  device.remedy = std::move(remedy);
}

void require_node(const SystemRoot& machine, const std::string& node, std::string_view group, DeviceInfo& device) {
  if (!machine.exists(node))
    return mark_unavailable(
        device, fmt::format("its device node {} does not exist", node),
        fmt::format("in a container, pass the node: --device {}; otherwise look for driver errors with dmesg", node));
  if (machine.may_use(node)) return;
  mark_unavailable(device, fmt::format("no permission to read and write {}", node),
                   group.empty() ? fmt::format("allow it with a udev rule, or as root: chmod a+rw {}", node)
                                 : fmt::format("add the user to the group {0}: usermod -aG {0} NAME, then log in again", group));
}

void require_driver(const PciDevice& pci, const std::vector<std::string>& drivers, std::string_view remedy, DeviceInfo& device) {
  if (std::find(drivers.begin(), drivers.end(), pci.driver) != drivers.end()) return;
  if (pci.driver == "vfio-pci")
    return mark_unavailable(device, "the driver vfio-pci reserves it for a virtual machine",
                            fmt::format("return it to its driver: driverctl unset-override {}", pci.address));
  if (pci.driver.empty()) return mark_unavailable(device, "no driver is bound to it", std::string(remedy));
  mark_unavailable(device, fmt::format("it is bound to the driver {}, which does not support computing", pci.driver),
                   std::string(remedy));
}

std::vector<int> holders_of(const SystemRoot& machine, const std::vector<std::string>& nodes) {
  std::vector<int> holders;
  const int self = own_process(machine);
  for (const std::string& name : machine.list("/proc")) {
    const std::optional<int> pid = process_id(name);
    if (!pid || *pid == self) continue;
    const std::string descriptors = "/proc/" + name + "/fd";
    for (const std::string& descriptor : machine.list(descriptors)) {
      const std::optional<std::string> target = machine.link(descriptors + "/" + descriptor);
      if (!target || std::find(nodes.begin(), nodes.end(), *target) == nodes.end()) continue;
      holders.push_back(*pid);
      break;
    }
  }
  return holders;
}

void require_unheld(const SystemRoot& machine, DeviceInfo& device) {
  if (!device.exclusive || device.holders.empty()) return;
  const int pid = device.holders.front();
  const std::string command = machine.line(fmt::format("/proc/{}/comm", pid)).value_or("");
  mark_unavailable(device, fmt::format("in use by pid {}{}", pid, command.empty() ? "" : fmt::format(" ({})", command)),
                   fmt::format("wait until the process ends, or end it: kill {}", pid));
}

void read_sensors(const SystemRoot& machine, const PciDevice& pci, DeviceInfo& device) {
  const std::string monitors = pci.path + "/hwmon";
  for (const std::string& monitor : machine.list(monitors)) {
    const std::string folder = monitors + "/" + monitor;
    if (!device.temperature_celsius)
      device.temperature_celsius = reading(machine, folder, {"temp1_input", "temp2_input"}, 1e-3, 1000);
    if (!device.power_watts) device.power_watts = reading(machine, folder, {"power1_average", "power1_input"}, 1e-6, 1e5);
    if (!device.power_limit_watts) device.power_limit_watts = reading(machine, folder, {"power1_cap", "power1_max"}, 1e-6, 1e5);
  }
}

std::optional<std::uint64_t> read_bytes(const SystemRoot& machine, const std::string& file) {
  const std::optional<std::int64_t> value = machine.number(file);
  if (!value || *value <= 0) return std::nullopt;
  return static_cast<std::uint64_t>(*value);
}

}  // namespace tenon

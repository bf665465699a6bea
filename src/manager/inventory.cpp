#include "manager/inventory.h"

#include <fmt/format.h>

#include <algorithm>

#include "device/advice.h"
#include "device/detect.h"
#include "device/naming.h"
#include "tenon/device/simulated.h"

namespace tenon {
namespace {

// PJRT drives whatever somebody made a plugin for, TTNN Tenstorrent's cards: a card belongs to them when the detectors found the
// runtime of its maker.
void add_plugins(DeviceInfo& device, const BackendRegistry& registry) {
  if (device.kind == DeviceKind::cpu) return;
  for (const RuntimeInfo& runtime : device.runtimes)
    if ((runtime.backend == "pjrt" || runtime.backend == "ttnn") && registry.find(runtime.backend) &&
        std::find(device.backends.begin(), device.backends.end(), runtime.backend) == device.backends.end())
      device.backends.push_back(runtime.backend);
}

void mark_undriven(DeviceInfo& device) {
  if (!device.backends.empty() || !device.available) return;
  device.available = false;
  device.reason = "no runtime that can drive it was found";
  device.remedy = runtime_remedy(device);
}

// A second way to the CPU: the same silicon and memory, another driver.
void describe_as(DeviceInfo& way, const DeviceInfo& processor) {
  way.same_as = processor.id;
  way.name = fmt::format("{}, through {}", processor.name.empty() ? "the CPU" : processor.name,
                         way.backends.empty()               ? "another driver"
                         : way.backends.front() == "opencl" ? "OpenCL"
                                                            : way.backends.front());
  if (way.vendor.empty()) way.vendor = processor.vendor;
  if (way.architecture.empty()) way.architecture = processor.architecture;
  if (way.memory_total_bytes) return;
  way.memory_total_bytes = processor.memory_total_bytes;
  way.memory_free_bytes = processor.memory_free_bytes;
  way.numa_node = processor.numa_node;
}

}  // namespace

std::vector<DeviceInfo> inventory(std::vector<DeviceInfo> detected, const BackendRegistry& registry) {
  for (const DeviceInfo& offered : registry.devices()) {
    const auto same = std::find_if(detected.begin(), detected.end(), [&](const DeviceInfo& device) {
      return is_same_device(device, offered) || is_named(device, offered.id);
    });
    if (same != detected.end()) {
      merge_device(*same, offered);
    } else {
      DeviceInfo& added = detected.emplace_back(offered);
      const auto processor = std::ranges::find(detected, DeviceKind::cpu, &DeviceInfo::kind);
      if (added.kind == DeviceKind::cpu && &*processor != &added && !is_simulated(added)) describe_as(added, *processor);
    }
  }
  std::vector<DeviceInfo> second_ways;
  for (DeviceInfo& device : detected)
    if (!device.same_as.empty()) second_ways.push_back(device);
  std::erase_if(detected, [](const DeviceInfo& device) { return !device.same_as.empty(); });
  detected.insert(detected.end(), second_ways.begin(), second_ways.end());
  for (DeviceInfo& device : detected) {
    add_plugins(device, registry);
    mark_undriven(device);
  }
  return detected;
}

const DeviceInfo* find_device(std::span<const DeviceInfo> devices, std::string_view requested) {
  const DeviceInfo* found = nullptr;
  requested = id_of_number(devices, requested);
  for (const DeviceInfo& device : devices) {
    if (is_named(device, requested)) return &device;
    if (requested == name(device.kind) && (!found || (!found->available && device.available))) found = &device;
  }
  return found;
}

}  // namespace tenon

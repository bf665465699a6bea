#include "device/detect.h"

#include <fmt/format.h>

#include <algorithm>

#include "device/cost.h"
#include "device/detectors.h"

namespace tenon {
namespace {

std::string family_of(const DeviceInfo& device) {
  const std::string family = device.id.substr(0, device.id.find(':'));
  return family.empty() ? std::string(name(device.kind)) : family;
}

bool is_taken(const std::vector<DeviceInfo>& devices, const std::string& id) {
  return std::any_of(devices.begin(), devices.end(), [&](const DeviceInfo& device) { return device.id == id; });
}

void add(std::vector<DeviceInfo>& devices, DeviceInfo device) {
  for (DeviceInfo& known : devices)
    if (is_same_device(known, device)) return merge_device(known, device);
  if (device.id.find(':') == std::string::npos || is_taken(devices, device.id)) {
    const std::string family = family_of(device);
    int number = 0;
    while (is_taken(devices, fmt::format("{}:{}", family, number))) ++number;
    device.id = fmt::format("{}:{}", family, number);
  }
  devices.push_back(std::move(device));
}

void name_gpus(std::vector<DeviceInfo>& devices) {
  int number = 0;
  // gpu:0 should be a discrete card, not integrated graphics that share host memory.
  for (const bool integrated : {false, true})
    for (DeviceInfo& device : devices) {
      if (device.kind != DeviceKind::gpu || device.details.contains("integrated") != integrated) continue;
      const std::string alias = fmt::format("gpu:{}", number++);
      if (device.id != alias && !is_taken(devices, alias)) device.aliases.push_back(alias);
    }
}

void relate(std::vector<DeviceInfo>& devices, const std::vector<RuntimeInfo>& runtimes) {
  for (DeviceInfo& device : devices) {
    device.supports_distributed = std::count_if(devices.begin(), devices.end(), [&](const DeviceInfo& other) {
                                    return other.kind == device.kind && other.vendor == device.vendor;
                                  }) > 1;
    for (const RuntimeInfo& runtime : runtimes)
      if (device.kind == DeviceKind::cpu ? runtime.vendor.empty() : runtime.vendor == device.vendor)
        device.runtimes.push_back(runtime);
    estimate_cost(device);
  }
}

}  // namespace

bool is_same_device(const DeviceInfo& a, const DeviceInfo& b) {
  if (!a.pci_address.empty() && !b.pci_address.empty()) return a.pci_address == b.pci_address;
  if (!a.uuid.empty() && !b.uuid.empty()) return a.uuid == b.uuid;
  // The CPU has neither, and there is only one.
  return a.kind == DeviceKind::cpu && b.kind == DeviceKind::cpu && a.id == b.id;
}

void merge_device(DeviceInfo& into, const DeviceInfo& from) {
  const auto text = [&](std::string DeviceInfo::* field) {
    if ((into.*field).empty()) into.*field = from.*field;
  };
  for (const auto field : {&DeviceInfo::name, &DeviceInfo::vendor, &DeviceInfo::architecture, &DeviceInfo::pci_address,
                           &DeviceInfo::uuid, &DeviceInfo::serial, &DeviceInfo::compute_capability, &DeviceInfo::driver_version,
                           &DeviceInfo::runtime_version, &DeviceInfo::firmware_version})
    text(field);
  const auto value = [](auto& known, const auto& other) {
    if (!known) known = other;
  };
  if (!into.memory_total_bytes || (into.memory_is_nominal && from.memory_total_bytes && !from.memory_is_nominal)) {
    into.memory_total_bytes = from.memory_total_bytes;
    into.memory_is_nominal = from.memory_is_nominal;
  }
  value(into.memory_free_bytes, from.memory_free_bytes);
  value(into.numa_node, from.numa_node);
  value(into.power_watts, from.power_watts);
  value(into.power_limit_watts, from.power_limit_watts);
  value(into.temperature_celsius, from.temperature_celsius);
  if (!into.cost_per_hour) {
    into.cost_per_hour = from.cost_per_hour;
    into.cost_is_estimate = from.cost_is_estimate;
  }
  into.supports_mixed_precision |= from.supports_mixed_precision;
  into.exclusive |= from.exclusive;
  if (into.available && !from.available) {
    into.available = false;
    into.reason = from.reason;
    into.remedy = from.remedy;
  }
  const auto append = [](auto& known, const auto& others) {
    for (const auto& other : others)
      if (std::find(known.begin(), known.end(), other) == known.end()) known.push_back(other);
  };
  append(into.backends, from.backends);
  append(into.aliases, from.aliases);
  if (from.id != into.id && from.id.find(':') != std::string::npos) append(into.aliases, std::vector{from.id});
  append(into.holders, from.holders);
  append(into.runtimes, from.runtimes);
  into.details.insert(from.details.begin(), from.details.end());
}

const Detectors& built_in_detectors() {
  static const Detectors* detectors = [] {
    auto* all = new Detectors;
    all->push_back(make_cpu_detector());
    all->push_back(make_nvidia_detector());
    all->push_back(make_amd_detector());
    all->push_back(make_intel_detector());
    all->push_back(make_tpu_detector());
    all->push_back(make_tenstorrent_detector());
    all->push_back(make_ttnn_detector());  // before PJRT: its runtimes are preferred
    all->push_back(make_opencl_detector());
    all->push_back(make_pjrt_detector());
    return all;
  }();
  return *detectors;
}

Detection detect_with(const SystemRoot& machine, std::span<const Detector* const> detectors) {
  Detection all;
  for (const Detector* detector : detectors) {
    try {
      Detection found = detector->detect(machine);
      for (DeviceInfo& device : found.devices) add(all.devices, std::move(device));
      for (RuntimeInfo& runtime : found.runtimes) all.runtimes.push_back(std::move(runtime));
      for (std::string& note : found.notes) all.notes.push_back(std::move(note));
    } catch (const std::exception& error) {
      all.notes.push_back(fmt::format("the detector '{}' failed: {}", detector->name(), error.what()));
    } catch (...) {
      all.notes.push_back(fmt::format("the detector '{}' failed", detector->name()));
    }
  }
  name_gpus(all.devices);
  relate(all.devices, all.runtimes);
  return all;
}

Detection detect(const SystemRoot& machine, std::span<const Detector* const> more) {
  std::vector<const Detector*> detectors;
  for (const auto& detector : built_in_detectors()) detectors.push_back(detector.get());
  detectors.insert(detectors.end(), more.begin(), more.end());
  return detect_with(machine, detectors);
}

std::vector<DeviceInfo> detect_devices(const SystemRoot& machine, std::span<const Detector* const> more) {
  return detect(machine, more).devices;
}

}  // namespace tenon

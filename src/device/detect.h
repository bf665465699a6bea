// Finds every device of a machine: runs all detectors and merges their results to one entry per physical card.
//
// Reads files and queries management libraries; opens no device, prints nothing, does not change the environment, never throws. A
// card found by several detectors, matched by PCI address or UUID, is one device.
//
//   for (const DeviceInfo& device : detect_devices()) print(device.id, device.name);
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "tenon/device.h"

namespace tenon {

using Detectors = std::vector<std::unique_ptr<Detector>>;

// CPU, NVIDIA, AMD, Intel, TPU, Tenstorrent, OpenCL platforms, PJRT plugins.
const Detectors& built_in_detectors();

// The merged results of |detectors|: devices with final ids and aliases, runtimes, notes. A detector that throws adds a
// note.
Detection detect_with(const SystemRoot& machine, std::span<const Detector* const> detectors);
// The built-in detectors, then |more|.
Detection detect(const SystemRoot& machine = {}, std::span<const Detector* const> more = {});
std::vector<DeviceInfo> detect_devices(const SystemRoot& machine = {}, std::span<const Detector* const> more = {});

// Whether two descriptions refer to the same physical device.
bool is_same_device(const DeviceInfo& a, const DeviceInfo& b);
// Fills empty fields of |into| from |from|. The device is unavailable if either of them says so.
void merge_device(DeviceInfo& into, const DeviceInfo& from);

}  // namespace tenon

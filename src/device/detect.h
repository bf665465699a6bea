// Finding every device of a machine: all detectors, one list, one entry per physical card.
//
// Reads files and asks management libraries; opens no device of its own, prints nothing, changes no environment, never throws. A
// card that several detectors found, known by its PCI address or UUID, is one device.
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

// What all of |detectors| find: devices with final ids and aliases, the runtimes, the notes. A detector that throws leaves a
// note.
Detection detect_with(const SystemRoot& machine, std::span<const Detector* const> detectors);
// The built-in detectors, then |more|.
Detection detect(const SystemRoot& machine = {}, std::span<const Detector* const> more = {});
std::vector<DeviceInfo> detect_devices(const SystemRoot& machine = {}, std::span<const Detector* const> more = {});

// Whether two descriptions are of one physical device.
bool is_same_device(const DeviceInfo& a, const DeviceInfo& b);
// Fills what |into| does not know from |from|. A reason not to use it that either has stays.
void merge_device(DeviceInfo& into, const DeviceInfo& from);

}  // namespace tenon

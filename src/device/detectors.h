// The built-in detectors. Each only reads the machine that it is given.
#pragma once

#include <memory>

#include "tenon/device.h"

namespace tenon {

std::unique_ptr<Detector> make_cpu_detector();          // /proc/cpuinfo, /proc/meminfo, /sys/devices/system, the control group
std::unique_ptr<Detector> make_nvidia_detector();       // /sys and /proc/driver/nvidia, then NVML, else nvidia-smi
std::unique_ptr<Detector> make_amd_detector();          // /sys: PCI, DRM, KFD
std::unique_ptr<Detector> make_intel_detector();        // /sys: PCI, DRM
std::unique_ptr<Detector> make_tpu_detector();          // /sys: PCI, accel, IOMMU groups
std::unique_ptr<Detector> make_tenstorrent_detector();  // /sys: PCI, the tenstorrent class; /proc/driver/tenstorrent
std::unique_ptr<Detector> make_ttnn_detector();         // the environment, Python's package folders
std::unique_ptr<Detector> make_opencl_detector();       // /etc/OpenCL/vendors
std::unique_ptr<Detector> make_pjrt_detector();         // the environment, Python's package folders

}  // namespace tenon

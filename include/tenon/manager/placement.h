// Placement: queries over a list of devices, and the distribution of a batch over them.
//
// A program that is to run on all shards at once: run_data_parallel() in mesh.h.
//
// Plain functions over a list of devices (DeviceManager::devices(), or any other list, as in tests). They do not touch a device.
// Unavailable devices are ignored.
//
//   const std::vector<DeviceInfo> devices = manager.devices();
//   if (placement::has_gpu(devices)) ...
//   for (const placement::Placed& shard : placement::distribute_data(batch, placement::distribution_targets(devices)))
//     manager.run(graph, std::span(&shard.array, 1), {.device = shard.device});
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tenon/array.h"
#include "tenon/device.h"
#include "tenon/manager/config.h"

namespace tenon::placement {

// --- Queries ---
std::vector<DeviceInfo> visible_devices(std::span<const DeviceInfo> devices);  // available, each piece of hardware once
std::vector<DeviceInfo> devices_of_kind(std::span<const DeviceInfo> devices, DeviceKind kind);
std::vector<DeviceInfo> gpu_devices(std::span<const DeviceInfo> devices);
std::vector<DeviceInfo> cpu_devices(std::span<const DeviceInfo> devices);
std::vector<DeviceInfo> tpu_devices(std::span<const DeviceInfo> devices);
bool has_gpu(std::span<const DeviceInfo> devices);
std::size_t device_count(std::span<const DeviceInfo> devices);
std::size_t gpu_count(std::span<const DeviceInfo> devices);
// "gpu:NVIDIA H200 (cuda:0)"
std::string label(const DeviceInfo& device);
// The primary kind of this machine: gpu if there is one, else tpu, else cpu.
DeviceKind primary_kind(std::span<const DeviceInfo> devices);
// The first GPU, else the first device. Throws failed_precondition, "No devices are visible".
DeviceInfo default_device(std::span<const DeviceInfo> devices);

// The capabilities of a machine as one value.
struct Capabilities {
  DeviceKind device_type = DeviceKind::cpu;
  std::size_t device_count = 0;  // of that kind
  std::optional<std::string> default_backend = std::nullopt;
  std::vector<std::string> visible_devices = {};                // labels
  std::optional<std::uint64_t> total_memory_mb = std::nullopt;  // of the first device, in MiB
  std::optional<std::string> compute_capability = std::nullopt;
  std::optional<std::string> cuda_version = std::nullopt;
  std::optional<std::string> driver_version = std::nullopt;
  bool supports_mixed_precision = false;
  bool supports_distributed = false;                // more than one device
  std::optional<std::string> error = std::nullopt;  // why the capabilities are unknown
  friend bool operator==(const Capabilities&, const Capabilities&) = default;
};
Capabilities capabilities_of(std::span<const DeviceInfo> devices);
// The same for the devices that |collect| returns. An exception becomes |error|, with a cpu and no devices.
Capabilities collect_capabilities(const std::function<std::vector<DeviceInfo>()>& collect) noexcept;

// All of the above in one value.
struct DeviceSummary {
  std::string backend;  // of the default device; "" for none
  Capabilities capabilities;
  std::vector<std::string> devices, gpu_devices, cpu_devices, tpu_devices;  // labels
  std::optional<std::string> default_device;                                // label
};
DeviceSummary summarize(std::span<const DeviceInfo> devices);

// --- Distribution ---
// A tensor and its target device.
struct Placed {
  std::string device;  // id
  HostArray array;
};

// Rows [begin, end) of a batch.
struct Shard {
  std::string device;
  std::int64_t begin = 0, end = 0;
  friend bool operator==(const Shard&, const Shard&) = default;
};

// How the remainder of a division is distributed.
enum class Remainder : std::uint8_t { last, balanced };  // 10 over 4: 2, 2, 2, 4; or 3, 3, 2, 2

// The available GPUs, or all available devices if there are none.
std::vector<DeviceInfo> distribution_targets(std::span<const DeviceInfo> devices);
// One shard for each target, in order; some are empty if there are fewer rows than targets. Throws failed_precondition, "No
// devices are visible", without targets.
std::vector<Shard> distribute_rows(std::int64_t rows, std::span<const DeviceInfo> targets, Remainder remainder = Remainder::last);
// The same with the data: axis 0 of |batch| is split. Shards share the batch's bytes.
std::vector<Placed> distribute_data(const HostArray& batch, std::span<const DeviceInfo> targets,
                                    Remainder remainder = Remainder::last);
// The whole of |array| for each target. Shares its bytes.
std::vector<Placed> replicate(const HostArray& array, std::span<const DeviceInfo> targets);
// Joins the shards along axis 0. Throws invalid_argument if the shapes do not match or there are no shards.
HostArray gather_data(std::span<const Placed> shards);
// Rows [begin, end) along axis 0; shares the bytes. Throws out_of_range.
HostArray rows(const HostArray& array, std::int64_t begin, std::int64_t end);

// The device for a tensor of this size: |current| if it fits in its memory budget, else the CPU.
DeviceInfo device_for_bytes(std::uint64_t bytes, const DeviceInfo& current, std::span<const DeviceInfo> devices,
                            const Config& config = {});

}  // namespace tenon::placement

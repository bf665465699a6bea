#include "tenon/manager/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "manager/device_owners.h"
#include "tenon/error.h"

namespace tenon::placement {
namespace {

[[noreturn]] void nothing_visible() {
  throw Error(ErrorCode::failed_precondition, "No devices are visible", "check the drivers of the devices");
}

std::optional<std::string> if_known(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional<std::string>(text);
}

std::vector<std::string> labels(const std::vector<DeviceInfo>& devices) {
  std::vector<std::string> all;
  for (const DeviceInfo& device : devices) all.push_back(label(device));
  return all;
}

}  // namespace

std::vector<DeviceInfo> visible_devices(std::span<const DeviceInfo> devices) {
  std::vector<DeviceInfo> visible;
  std::copy_if(devices.begin(), devices.end(), std::back_inserter(visible),
               [](const DeviceInfo& d) { return d.available && d.same_as.empty(); });
  return visible;
}

std::vector<DeviceInfo> devices_of_kind(std::span<const DeviceInfo> devices, DeviceKind kind) {
  std::vector<DeviceInfo> of_kind = visible_devices(devices);
  std::erase_if(of_kind, [&](const DeviceInfo& device) { return device.kind != kind; });
  return of_kind;
}

std::vector<DeviceInfo> gpu_devices(std::span<const DeviceInfo> devices) { return devices_of_kind(devices, DeviceKind::gpu); }
std::vector<DeviceInfo> cpu_devices(std::span<const DeviceInfo> devices) { return devices_of_kind(devices, DeviceKind::cpu); }
std::vector<DeviceInfo> tpu_devices(std::span<const DeviceInfo> devices) { return devices_of_kind(devices, DeviceKind::tpu); }
bool has_gpu(std::span<const DeviceInfo> devices) { return gpu_count(devices) > 0; }
std::size_t device_count(std::span<const DeviceInfo> devices) { return visible_devices(devices).size(); }
std::size_t gpu_count(std::span<const DeviceInfo> devices) { return gpu_devices(devices).size(); }

std::string label(const DeviceInfo& device) { return fmt::format("{}:{} ({})", name(device.kind), device.name, device.id); }

DeviceKind primary_kind(std::span<const DeviceInfo> devices) {
  for (const DeviceKind kind : {DeviceKind::gpu, DeviceKind::tpu})
    if (!devices_of_kind(devices, kind).empty()) return kind;
  return DeviceKind::cpu;
}

DeviceInfo default_device(std::span<const DeviceInfo> devices) {
  const std::vector<DeviceInfo> targets = distribution_targets(devices);
  if (targets.empty()) nothing_visible();
  return targets.front();
}

Capabilities capabilities_of(std::span<const DeviceInfo> devices) {
  Capabilities known;
  known.device_type = primary_kind(devices);
  const std::vector<DeviceInfo> primary = devices_of_kind(devices, known.device_type);
  known.device_count = primary.size();
  known.visible_devices = labels(visible_devices(devices));
  known.supports_mixed_precision = known.device_type == DeviceKind::gpu || known.device_type == DeviceKind::tpu ||
                                   (!primary.empty() && primary.front().supports_mixed_precision);
  known.supports_distributed = primary.size() > 1;
  if (primary.empty()) return known;
  const DeviceInfo& first = primary.front();
  if (!first.backends.empty()) known.default_backend = first.backends.front();
  if (first.memory_total_bytes) known.total_memory_mb = *first.memory_total_bytes >> 20;
  known.compute_capability = if_known(first.compute_capability);
  known.driver_version = if_known(first.driver_version);
  if (const std::string_view version = first.runtime_version; version.starts_with("CUDA "))
    known.cuda_version = std::string(version.substr(5));
  return known;
}

Capabilities collect_capabilities(const std::function<std::vector<DeviceInfo>()>& collect) noexcept {
  Capabilities unknown;
  try {
    return capabilities_of(collect());
  } catch (const std::exception& error) {
    unknown.error = error.what();
  } catch (...) {
    unknown.error = "device detection failed without a message";
  }
  return unknown;
}

DeviceSummary summarize(std::span<const DeviceInfo> devices) {
  DeviceSummary summary;
  summary.capabilities = capabilities_of(devices);
  summary.devices = labels(visible_devices(devices));
  summary.gpu_devices = labels(gpu_devices(devices));
  summary.cpu_devices = labels(cpu_devices(devices));
  summary.tpu_devices = labels(tpu_devices(devices));
  if (summary.devices.empty()) return summary;
  const DeviceInfo chosen = default_device(devices);
  summary.default_device = label(chosen);
  if (!chosen.backends.empty()) summary.backend = chosen.backends.front();
  return summary;
}

std::vector<DeviceInfo> distribution_targets(std::span<const DeviceInfo> devices) {
  std::vector<DeviceInfo> targets = gpu_devices(devices);
  return targets.empty() ? visible_devices(devices) : targets;
}

std::vector<Shard> distribute_rows(std::int64_t rows, std::span<const DeviceInfo> targets, Remainder remainder) {
  if (targets.empty()) nothing_visible();
  if (rows < 0)
    throw Error(ErrorCode::invalid_argument, fmt::format("the number of rows of a batch must be positive, not {}", rows));
  const auto count = static_cast<std::int64_t>(targets.size());
  std::vector<Shard> shards;
  std::int64_t begin = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t size = rows / count;
    if (remainder == Remainder::balanced) {
      size += i < rows % count ? 1 : 0;
    } else if (i + 1 == count) {
      size = rows - begin;
    }
    shards.push_back({targets[static_cast<std::size_t>(i)].id, begin, begin + size});
    begin += size;
  }
  return shards;
}

HostArray rows(const HostArray& array, std::int64_t begin, std::int64_t end) {
  if (array.shape().rank() == 0) throw Error(ErrorCode::invalid_argument, "a scalar has no rows");
  if (begin < 0 || end < begin || end > array.shape()[0])
    throw Error(ErrorCode::out_of_range,
                fmt::format("rows {} to {} are out of range for a tensor with {} rows", begin, end, array.shape()[0]));
  const Shape shape = array.shape().with(0, end - begin);
  if (begin == 0 && end == array.shape()[0]) return array;
  // Tiles of a block format span 32 rows of a matrix: those cannot be cut anywhere.
  if (is_block(array.dtype()) && array.shape().rank() < 3) return rows(array.cast(DType::f32), begin, end).cast(array.dtype());
  const std::size_t row_bytes = array.shape()[0] == 0 ? 0 : array.bytes() / static_cast<std::size_t>(array.shape()[0]);
  const auto owner = std::make_shared<HostArray>(array);
  return HostArray::borrow(array.dtype(), shape, owner->data() + static_cast<std::size_t>(begin) * row_bytes, owner);
}

std::vector<Placed> distribute_data(const HostArray& batch, std::span<const DeviceInfo> targets, Remainder remainder) {
  if (batch.shape().rank() == 0) throw Error(ErrorCode::invalid_argument, "a scalar cannot be split over devices");
  std::vector<Placed> placed;
  for (const Shard& shard : distribute_rows(batch.shape()[0], targets, remainder))
    placed.push_back({shard.device, rows(batch, shard.begin, shard.end)});
  return placed;
}

std::vector<Placed> replicate(const HostArray& array, std::span<const DeviceInfo> targets) {
  if (targets.empty()) nothing_visible();
  std::vector<Placed> placed;
  for (const DeviceInfo& device : targets) placed.push_back({device.id, array});
  return placed;
}

HostArray gather_data(std::span<const Placed> shards) {
  if (shards.empty()) throw Error(ErrorCode::invalid_argument, "gather_data needs at least one shard");
  const HostArray& first = shards.front().array;
  std::int64_t total = 0;
  for (const Placed& shard : shards) {
    const HostArray& array = shard.array;
    if (array.dtype() != first.dtype() || array.shape().rank() == 0 || array.shape().rank() != first.shape().rank() ||
        !(array.shape().with(0, 0) == first.shape().with(0, 0)))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("shards {} {} and {} {} cannot be joined", name(first.dtype()), to_string(first.shape()),
                              name(array.dtype()), to_string(array.shape())));
    total += array.shape()[0];
  }
  const bool tiled = is_block(first.dtype()) && first.shape().rank() < 3;
  HostArray joined = HostArray::empty(tiled ? DType::f32 : first.dtype(), first.shape().with(0, total));
  std::byte* to = joined.mutable_data();
  for (const Placed& shard : shards) {
    const HostArray part = tiled ? shard.array.cast(DType::f32) : shard.array;
    if (part.bytes() != 0) std::memcpy(to, part.data(), part.bytes());
    to += part.bytes();
  }
  return tiled ? joined.cast(first.dtype()) : joined;
}

DeviceInfo device_for_bytes(std::uint64_t bytes, const DeviceInfo& current, std::span<const DeviceInfo> devices,
                            const Config& config) {
  const std::optional<std::uint64_t> budget = memory_budget_of(config, current);
  if (current.kind == DeviceKind::cpu || !budget || bytes <= *budget) return current;
  const std::vector<DeviceInfo> processors = cpu_devices(devices);
  return processors.empty() ? current : processors.front();
}

}  // namespace tenon::placement

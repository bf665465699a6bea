#include "tenon/manager/batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "tenon/error.h"

namespace tenon {
namespace {

// Batches beyond it are of no use, and products of them do not overflow.
constexpr std::int64_t kLargest = std::int64_t{1} << 40;

std::int64_t times(std::int64_t value, std::int64_t factor) {
  return value > kLargest / factor ? kLargest : std::min(kLargest, value * factor);
}

std::int64_t down_to_power_of_two(std::int64_t value) {
  return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(std::max<std::int64_t>(value, 1))));
}

bool has(const DeviceInfo& device, std::string_view part) {
  return device.name.find(part) != std::string::npos || device.architecture.find(part) != std::string::npos;
}

}  // namespace

BatchConfig batch_config(DeviceKind kind, std::int64_t base, const Config& config) {
  if (base < 1) throw Error(ErrorCode::invalid_argument, fmt::format("a batch must have at least 1 row, not {}", base));
  BatchConfig batch;
  batch.prefetch_factor = config.prefetch;
  switch (kind) {
    case DeviceKind::tpu:
      batch.batch_size = down_to_power_of_two(times(base, config.tpu_batch_factor));
      batch.max_batch_size = times(batch.batch_size, 4);
      batch.min_batch_size = std::max<std::int64_t>(1, batch.batch_size / 4);
      break;
    case DeviceKind::gpu:
    case DeviceKind::tenstorrent:
      batch.batch_size = times(base, 4);
      batch.max_batch_size = times(batch.batch_size, 8);
      break;
    case DeviceKind::cpu:
    case DeviceKind::other:
      batch.batch_size = base;
      batch.max_batch_size = times(base, 2);
      break;
  }
  const auto within = [&](std::int64_t value) {
    return std::clamp(value, config.batch_min, std::max(config.batch_min, config.batch_max));
  };
  batch.batch_size = within(batch.batch_size);
  if (kind == DeviceKind::tpu && batch.batch_size > config.batch_min)
    batch.batch_size = std::max(config.batch_min, down_to_power_of_two(batch.batch_size));
  batch.max_batch_size = std::max(batch.batch_size, within(batch.max_batch_size));
  batch.min_batch_size = std::min(batch.batch_size, within(batch.min_batch_size));
  return batch;
}

std::int64_t recommended_batch_size(double parameters, bool has_gpu, std::int64_t base) {
  if (!(parameters >= 0) || base < 1)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the number of parameters ({}) and the base ({}) must be positive", parameters, base));
  double size = static_cast<double>(std::min(base, kLargest));
  if (!has_gpu) size *= 0.25;
  if (parameters > 1e8) size *= 0.5;
  if (parameters < 1e6) size *= 2;
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(size));
}

std::string_view name(HardwareType type) noexcept {
  switch (type) {
    case HardwareType::tpu_v5e: return "TPU v5e";
    case HardwareType::tpu_v5p: return "TPU v5p";
    case HardwareType::tpu_v4: return "TPU v4";
    case HardwareType::h100: return "H100";
    case HardwareType::a100: return "A100";
    case HardwareType::v100: return "V100";
    case HardwareType::cpu: return "CPU";
    case HardwareType::unknown: return "unknown";
  }
  return "unknown";
}

HardwareType hardware_type(const DeviceInfo& device) {
  if (device.kind == DeviceKind::cpu) return HardwareType::cpu;
  if (device.kind == DeviceKind::tpu) {
    if (has(device, "v5p")) return HardwareType::tpu_v5p;
    if (has(device, "v5e") || has(device, "v5 lite") || has(device, "v5litepod")) return HardwareType::tpu_v5e;
    if (has(device, "v4")) return HardwareType::tpu_v4;
    return HardwareType::unknown;
  }
  if (device.kind != DeviceKind::gpu) return HardwareType::unknown;
  for (const std::string_view hopper : {"H100", "H200", "H800", "H20", "Hopper"})
    if (has(device, hopper)) return HardwareType::h100;
  for (const std::string_view ampere : {"A100", "A800"})
    if (has(device, ampere)) return HardwareType::a100;
  return has(device, "V100") ? HardwareType::v100 : HardwareType::unknown;
}

BatchSizeRecommendation batch_recommendation(HardwareType type) noexcept {
  switch (type) {
    case HardwareType::tpu_v5e: return {64, 256, 240};
    case HardwareType::tpu_v5p: return {128, 512, 480};
    case HardwareType::tpu_v4: return {64, 256, 192};
    case HardwareType::h100: return {64, 320, 298};
    case HardwareType::a100: return {32, 256, 240};
    case HardwareType::v100: return {16, 128, 96};
    case HardwareType::cpu: return {1, 32, 16};
    case HardwareType::unknown: break;
  }
  return {32, 128, 64};
}

BatchVerdict validate_batch_size(std::int64_t batch_size, HardwareType type) {
  const BatchSizeRecommendation advice = batch_recommendation(type);
  if (batch_size < advice.min_batch_size)
    return {false, fmt::format("a batch of {} is below the minimum of {} for {}; use {}", batch_size, advice.min_batch_size,
                               name(type), advice.optimal_batch_size)};
  if (batch_size < advice.critical_batch_size)
    return {true, fmt::format("a batch of {} works, but {} needs at least {} to be busy", batch_size, name(type),
                              advice.critical_batch_size)};
  return {true, fmt::format("a batch of {} keeps {} busy", batch_size, name(type))};
}

}  // namespace tenon

// Batches: rules of thumb for batch sizes.
//
// The rules use the kind of device, the size of a model, or the accelerator model; `tenon tune` measures instead. Plain functions
// of values; they do not touch a device.
//
//   BatchConfig batch = batch_config(DeviceKind::tpu, 5);                     // 512, up to 2048, from 128
//   recommended_batch_size(2e8, placement::has_gpu(devices));                 // 16
//   validate_batch_size(100, hardware_type(device)).message
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/device.h"
#include "tenon/manager/config.h"

namespace tenon {

struct BatchConfig {
  std::int64_t batch_size = 1;
  std::int64_t max_batch_size = 1;
  std::int64_t min_batch_size = 1;
  std::int64_t prefetch_factor = 2;  // number of batches prepared ahead
  friend bool operator==(const BatchConfig&, const BatchConfig&) = default;
};

// The batch sizes for |base| rows on a device of this kind. CPU: the base, at most twice the base. GPU and Tenstorrent: 4 x base,
// at most 8 times that. TPU: Config::tpu_batch_factor x base, rounded down to a power of two, at most 4 times and at least a
// quarter of that. All values are limited to Config::batch_min and batch_max. Throws
// invalid_argument for a base below 1.
BatchConfig batch_config(DeviceKind kind, std::int64_t base = 1, const Config& config = {});

// The batch size for a model of this many parameters: |base|, a quarter without a GPU, half above a hundred million parameters,
// twice below a million; at least 1.
std::int64_t recommended_batch_size(double parameters, bool has_gpu, std::int64_t base = 32);

enum class HardwareType : std::uint8_t { tpu_v5e, tpu_v5p, tpu_v4, h100, a100, v100, cpu, unknown };
std::string_view name(HardwareType type) noexcept;
// By name and architecture; newer models count as the nearest one of the list, e.g. an H200 as an H100.
HardwareType hardware_type(const DeviceInfo& device);

struct BatchSizeRecommendation {
  std::int64_t min_batch_size = 0;       // below this the device is mostly idle
  std::int64_t optimal_batch_size = 0;   // the device is busy
  std::int64_t critical_batch_size = 0;  // above this, compute is the limit rather than memory
  friend bool operator==(const BatchSizeRecommendation&, const BatchSizeRecommendation&) = default;
};
BatchSizeRecommendation batch_recommendation(HardwareType type) noexcept;

struct BatchVerdict {
  bool ok = false;
  std::string message;
};
// Not ok below the minimum; ok with a remark between the minimum and the critical size.
BatchVerdict validate_batch_size(std::int64_t batch_size, HardwareType type);

}  // namespace tenon

// bf16 images that enter a convolution: which of them need f32 products, and the f32 values of a tensor.
#pragma once

#include <algorithm>
#include <vector>

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/primitives/matmul/bf16/gemm_bf16.h"
#include "backends/cpu/primitives/primitives.h"
#include "backends/cpu/primitives/split.h"

namespace tenon::cpu {

// By image of a dense x [n, c, spatial...], whether its subnormal numbers or those of the weights matter (needs_subnormals). Each
// image is decided for itself, so that no result depends on the others.
inline std::vector<char> exact_images(ThreadPool& pool, const View& x, const Bf16Range& weights) {
  const std::int64_t images = x.shape[0], channels = x.shape[1],
                     plane = x.shape.elements() / std::max<std::int64_t>(1, images * channels);
  std::vector<char> exact(static_cast<std::size_t>(images));
  for_ranges(pool, images, channels * plane / 16, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto* const from = static_cast<const Bf16Bits*>(x.data) + i * channels * plane;
      exact[static_cast<std::size_t>(i)] = needs_subnormals(weights, range_of({from, channels, plane, plane, 1})) ? 1 : 0;
    }
  });
  return exact;
}

// Dense bf16 values in f32. Only for operands that need it, which are rare: takes memory.
inline std::vector<float> widened(const void* from, std::int64_t n) {
  std::vector<float> values(static_cast<std::size_t>(n));
  kernels().convert[static_cast<int>(DType::bf16)][static_cast<int>(DType::f32)](from, values.data(), n);
  return values;
}

}  // namespace tenon::cpu

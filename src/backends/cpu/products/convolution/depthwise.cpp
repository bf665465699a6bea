#include "backends/cpu/products/convolution/depthwise.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/products/convolution/planes.h"

namespace tenon::cpu {
namespace {

constexpr std::int64_t kWideRow = 24;  // elements; narrower rows are computed together
// The planes and the results of a band stay in the L1 cache.
constexpr std::int64_t kBandElements = 4 * 1024;

struct DepthwisePlan {
  std::int64_t channels, images, taps;
  Planes planes;

  DepthwisePlan(const View& x, const Shape& weight, const ConvAttr& attr, const Shape& out)
      : channels(x.shape[1]),
        images(x.shape[0]),
        taps(weight.elements() / weight[0]),
        planes(sliding_of(x, weight, attr, out), kBandElements) {}

  std::int64_t result_elements() const { return (planes.band * planes.pitch + 256 + 15) / 16 * 16; }
  std::size_t worker_bytes() const {
    const std::size_t offsets = (static_cast<std::size_t>(taps) * sizeof(std::int64_t) + 63) / 64 * 64;
    return static_cast<std::size_t>(planes.elements + 2 * result_elements()) * sizeof(float) + offsets;
  }
};

// What is done to the sums of one channel.
struct ChannelEnd {
  float scale = 1, shift = 0;
  bool relu = false;
};

// out[i] = sum of weight[t] * in[offset[t] + i] for i in [0, n), rounded up to
// whole blocks.
using TapKernel = void (*)(const float* in, const std::int64_t* offsets, const float* weight, std::int64_t taps, float* out,
                           std::int64_t n, bool exactly, const ChannelEnd& end);

#define TENON_TAP_KERNEL(Name, attribute, bytes)                                                                         \
  struct Name {                                                                                                          \
    typedef float Vector __attribute__((vector_size(bytes)));                                                            \
    static constexpr std::int64_t kLanes = bytes / sizeof(float);                                                        \
    template <int Vectors>                                                                                               \
    attribute static void block(const float* in, const std::int64_t* offsets, const float* weight, std::int64_t taps,    \
                                float* out, const ChannelEnd& end) {                                                     \
      Vector sum[Vectors] = {};                                                                                          \
      for (std::int64_t t = 0; t < taps; ++t) {                                                                          \
        const float* from = in + offsets[t];                                                                             \
        const float factor = weight[t];                                                                                  \
        _Pragma("GCC unroll 8") for (int v = 0; v < Vectors; ++v) {                                                      \
          Vector values;                                                                                                 \
          std::memcpy(&values, from + v * kLanes, sizeof values);                                                        \
          sum[v] += values * factor;                                                                                     \
        }                                                                                                                \
      }                                                                                                                  \
      for (int v = 0; v < Vectors; ++v) sum[v] = sum[v] * end.scale + end.shift;                                         \
      if (end.relu)                                                                                                      \
        for (int v = 0; v < Vectors; ++v) sum[v] = sum[v] < 0 ? Vector{} : sum[v];                                       \
      std::memcpy(out, sum, sizeof sum);                                                                                 \
    }                                                                                                                    \
    static void run(const float* in, const std::int64_t* offsets, const float* weight, std::int64_t taps, float* out,    \
                    std::int64_t n, bool exactly, const ChannelEnd& end) {                                               \
      std::int64_t i = 0;                                                                                                \
      for (; i + 8 * kLanes <= n; i += 8 * kLanes) block<8>(in + i, offsets, weight, taps, out + i, end);                \
      for (; i + 4 * kLanes <= n; i += 4 * kLanes) block<4>(in + i, offsets, weight, taps, out + i, end);                \
      for (; i + 2 * kLanes <= n; i += 2 * kLanes) block<2>(in + i, offsets, weight, taps, out + i, end);                \
      for (; i + kLanes <= n || (i < n && !exactly); i += kLanes) block<1>(in + i, offsets, weight, taps, out + i, end); \
      if (i >= n) return;                                                                                                \
      float rest[kLanes];                                                                                                \
      block<1>(in + i, offsets, weight, taps, rest, end);                                                                \
      std::memcpy(out + i, rest, static_cast<std::size_t>(n - i) * sizeof(float));                                       \
    }                                                                                                                    \
  };

#if defined(__x86_64__)
TENON_TAP_KERNEL(Avx2, [[gnu::target("avx2,fma")]], 32)
TENON_TAP_KERNEL(Avx512, [[gnu::target("avx512f,fma")]], 64)

TapKernel tap_kernel() {
  static const TapKernel kernel = __builtin_cpu_supports("avx512f") ? Avx512::run : Avx2::run;
  return kernel;
}
#else
TENON_TAP_KERNEL(Plain, , 16)
TapKernel tap_kernel() { return Plain::run; }
#endif

}  // namespace

std::size_t depthwise_scratch_bytes(const ThreadPool& pool, const View& x, const Shape& weight, const ConvAttr& attr,
                                    const Shape& out) {
  return DepthwisePlan(x, weight, attr, out).worker_bytes() * static_cast<std::size_t>(pool.threads());
}

void depthwise(ThreadPool& pool, const View& x, const float* weight, const Shape& weight_shape, const ConvAttr& attr,
               const Target& out, const Finish& finish, std::span<std::byte> scratch) {
  const DepthwisePlan plan(x, weight_shape, attr, out.shape);
  const Planes& planes = plan.planes;
  const Sliding& at = planes.at;
  const TapKernel kernel = tap_kernel();
  const std::int64_t bands = (at.out[1] + planes.band - 1) / planes.band;
  float* const to = static_cast<float*>(out.data);
  const auto run = [&](std::int64_t task, float* memory, float* result, const std::int64_t* offsets) {
    const std::int64_t first = task % bands * planes.band, rows = std::min(planes.band, at.out[1] - first);
    const std::int64_t channel = task / bands % plan.channels, image = task / bands / plan.channels;
    planes.fill(static_cast<const float*>(x.data) + image * x.strides[0] + channel * x.strides[1], 0, 1, first, rows, memory);
    const std::int64_t row = image * plan.channels + channel;
    float* const place = to + row * at.out[1] * at.out[2] + first * at.out[2];
    const float* const factors = weight + channel * plan.taps;
    Finish rest = finish;
    const TileEnd first_steps = end_of_tile(rest, channel);
    const ChannelEnd end{first_steps.scale ? *first_steps.scale : 1, first_steps.shift ? *first_steps.shift : 0,
                         first_steps.relu};
    if (at.out[2] >= kWideRow) {
      for (std::int64_t y = 0; y < rows; ++y)
        kernel(memory + y * planes.pitch, offsets, factors, plan.taps, place + y * at.out[2], at.out[2], true, end);
      if (!rest.is_empty()) rest.apply(place, place, row, first * at.out[2], rows * at.out[2]);
      return;
    }
    kernel(memory, offsets, factors, plan.taps, result, rows * planes.pitch, false, end);
    // Rows side by side, each written in whole vectors.
    float* const compact = result + plan.result_elements();
    for (std::int64_t y = 0; y < rows; ++y) {
      std::memcpy(compact + y * at.out[2], result + y * planes.pitch, 16 * sizeof(float));
      if (at.out[2] > 16) std::memcpy(compact + y * at.out[2] + 16, result + y * planes.pitch + 16, 16 * sizeof(float));
    }
    rest.apply(compact, place, row, first * at.out[2], rows * at.out[2]);
  };
  for_ranges(pool, plan.images * plan.channels * bands, planes.band * at.out[2] * plan.taps / 4,
             [&](std::int64_t begin, std::int64_t end, int worker) {
               float* const own =
                   reinterpret_cast<float*>(scratch.data() + plan.worker_bytes() * static_cast<std::size_t>(worker));
               float* const result = own + planes.elements;
               auto* const offsets = reinterpret_cast<std::int64_t*>(result + 2 * plan.result_elements());
               for (std::int64_t t = 0; t < plan.taps; ++t) offsets[t] = planes.offset(t);
               for (std::int64_t task = begin; task < end; ++task) run(task, own, result, offsets);
             });
}

}  // namespace tenon::cpu

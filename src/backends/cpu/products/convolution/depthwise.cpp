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
    return static_cast<std::size_t>(planes.elements + result_elements()) * sizeof(float) + offsets;
  }
};

// What is done to the sums of one channel.
struct ChannelEnd {
  float scale = 1, shift = 0;
  bool relu = false;
};

// Rows of the result whose taps are neighbouring rows of a plane: what is loaded for one is used for the others, too.
constexpr std::int64_t kRowsTogether = 4;

struct RowTaps {
  const std::int64_t* offsets;  // of the taps, as they are in the kernel
  const float* weight;
  std::int64_t slices, rows, cols;  // of the kernel
  std::int64_t pitch;
};

// kRowsTogether rows of |width| results, side by side; |in|: tap 0 of the first. What is after them may be overwritten unless
// they are the last ones.
using RowKernel = void (*)(const float* in, const RowTaps& taps, float* out, std::int64_t width, bool are_last,
                           const ChannelEnd& end);

// out[i] = sum of weight[t] * in[offset[t] + i] for i in [0, n), rounded up to
// whole blocks.
using TapKernel = void (*)(const float* in, const std::int64_t* offsets, const float* weight, std::int64_t taps, float* out,
                           std::int64_t n, bool exactly, const ChannelEnd& end);

#define TENON_TAP_KERNEL(Name, attribute, bytes)                                                                                 \
  struct Name {                                                                                                                  \
    typedef float Vector __attribute__((vector_size(bytes)));                                                                    \
    static constexpr std::int64_t kLanes = bytes / sizeof(float);                                                                \
    template <int Vectors>                                                                                                       \
    attribute static void block(const float* in, const std::int64_t* offsets, const float* weight, std::int64_t taps,            \
                                float* out, const ChannelEnd& end) {                                                             \
      Vector sum[Vectors] = {};                                                                                                  \
      for (std::int64_t t = 0; t < taps; ++t) {                                                                                  \
        const float* from = in + offsets[t];                                                                                     \
        const float factor = weight[t];                                                                                          \
        _Pragma("GCC unroll 8") for (int v = 0; v < Vectors; ++v) {                                                              \
          Vector values;                                                                                                         \
          std::memcpy(&values, from + v * kLanes, sizeof values);                                                                \
          sum[v] += values * factor;                                                                                             \
        }                                                                                                                        \
      }                                                                                                                          \
      for (int v = 0; v < Vectors; ++v) sum[v] = sum[v] * end.scale + end.shift;                                                 \
      if (end.relu)                                                                                                              \
        for (int v = 0; v < Vectors; ++v) sum[v] = sum[v] < 0 ? Vector{} : sum[v];                                               \
      std::memcpy(out, sum, sizeof sum);                                                                                         \
    }                                                                                                                            \
    static void run(const float* in, const std::int64_t* offsets, const float* weight, std::int64_t taps, float* out,            \
                    std::int64_t n, bool exactly, const ChannelEnd& end) {                                                       \
      std::int64_t i = 0;                                                                                                        \
      for (; i + 8 * kLanes <= n; i += 8 * kLanes) block<8>(in + i, offsets, weight, taps, out + i, end);                        \
      for (; i + 4 * kLanes <= n; i += 4 * kLanes) block<4>(in + i, offsets, weight, taps, out + i, end);                        \
      for (; i + 2 * kLanes <= n; i += 2 * kLanes) block<2>(in + i, offsets, weight, taps, out + i, end);                        \
      for (; i + kLanes <= n || (i < n && !exactly); i += kLanes) block<1>(in + i, offsets, weight, taps, out + i, end);         \
      if (i >= n) return;                                                                                                        \
      float rest[kLanes];                                                                                                        \
      block<1>(in + i, offsets, weight, taps, rest, end);                                                                        \
      std::memcpy(out + i, rest, static_cast<std::size_t>(n - i) * sizeof(float));                                               \
    }                                                                                                                            \
    template <int Vectors>                                                                                                       \
    attribute static void row_block(const float* in, const RowTaps& taps, float* out, std::int64_t out_step, std::int64_t width, \
                                    std::int64_t whole_rows, const ChannelEnd& end) {                                            \
      constexpr std::int64_t kRows = kRowsTogether;                                                                              \
      Vector sum[kRows][Vectors] = {};                                                                                           \
      const std::int64_t* offsets = taps.offsets;                                                                                \
      const float* weight = taps.weight;                                                                                         \
      for (std::int64_t slice = 0; slice < taps.slices;                                                                          \
           ++slice, weight += taps.rows * taps.cols, offsets += taps.rows * taps.cols)                                           \
        for (std::int64_t i = 0; i < taps.rows + kRows - 1; ++i)                                                                 \
          for (std::int64_t x = 0; x < taps.cols; ++x) {                                                                         \
            const float* const from = in + offsets[x] + i * taps.pitch;                                                          \
            const float* const factors = weight + i * taps.cols + x;                                                             \
            Vector values[Vectors];                                                                                              \
            _Pragma("GCC unroll 4") for (int v = 0; v < Vectors; ++v)                                                            \
                std::memcpy(&values[v], from + v * kLanes, sizeof(Vector));                                                      \
            _Pragma("GCC unroll 4") for (std::int64_t r = 0; r < kRows; ++r) {                                                   \
              if (i < r || i - r >= taps.rows) continue;                                                                         \
              const float factor = factors[-r * taps.cols];                                                                      \
              _Pragma("GCC unroll 4") for (int v = 0; v < Vectors; ++v) sum[r][v] += values[v] * factor;                         \
            }                                                                                                                    \
          }                                                                                                                      \
      _Pragma("GCC unroll 4") for (std::int64_t r = 0; r < kRows; ++r) {                                                         \
        _Pragma("GCC unroll 4") for (int v = 0; v < Vectors; ++v) {                                                              \
          sum[r][v] = sum[r][v] * end.scale + end.shift;                                                                         \
          if (end.relu) sum[r][v] = sum[r][v] < 0 ? Vector{} : sum[r][v];                                                        \
        }                                                                                                                        \
        /* A copy: sums whose address is taken would not stay in registers. */                                                   \
        Vector row[Vectors];                                                                                                     \
        _Pragma("GCC unroll 4") for (int v = 0; v < Vectors; ++v) row[v] = sum[r][v];                                            \
        const bool is_whole = width >= Vectors * kLanes || r < whole_rows;                                                       \
        std::memcpy(out + r * out_step, row, is_whole ? sizeof row : static_cast<std::size_t>(width) * sizeof(float));           \
      }                                                                                                                          \
    }                                                                                                                            \
    static void run_rows(const float* in, const RowTaps& taps, float* out, std::int64_t width, bool are_last,                    \
                         const ChannelEnd& end) {                                                                                \
      constexpr std::int64_t kMost = bytes == 64 ? 4 : 2;                                                                        \
      const std::int64_t out_step = width;                                                                                       \
      /* What a row has too much is overwritten by the next one. */                                                              \
      const std::int64_t whole_rows = width > kMost * kLanes ? 0 : are_last ? kRowsTogether - 1 : kRowsTogether;                 \
      for (; width > 0; width -= kMost * kLanes, in += kMost * kLanes, out += kMost * kLanes) {                                  \
        const std::int64_t vectors = (width + kLanes - 1) / kLanes;                                                              \
        const auto block = vectors >= kMost ? row_block<kMost>                                                                   \
                           : vectors == 3   ? row_block<std::min<std::int64_t>(3, kMost)>                                        \
                           : vectors == 2   ? row_block<2>                                                                       \
                                            : row_block<1>;                                                                        \
        block(in, taps, out, out_step, width, whole_rows, end);                                                                  \
      }                                                                                                                          \
    }                                                                                                                            \
  };

#if defined(__x86_64__)
TENON_TAP_KERNEL(Avx2, [[gnu::target("avx2,fma")]], 32)
TENON_TAP_KERNEL(Avx512, [[gnu::target("avx512f,fma")]], 64)

TapKernel tap_kernel() {
  static const TapKernel kernel = __builtin_cpu_supports("avx512f") ? Avx512::run : Avx2::run;
  return kernel;
}
RowKernel row_kernel() {
  static const RowKernel kernel = __builtin_cpu_supports("avx512f") ? Avx512::run_rows : Avx2::run_rows;
  return kernel;
}
#else
TENON_TAP_KERNEL(Plain, , 16)
TapKernel tap_kernel() { return Plain::run; }
RowKernel row_kernel() { return Plain::run_rows; }
#endif

// Rows of fewer than kWideRow elements, side by side: in whole vectors, what is written too far is overwritten by the next row.
void join_rows(const float* from, std::int64_t pitch, std::int64_t rows, std::int64_t width, float* to) {
  const std::int64_t all = rows * width;
  for (std::int64_t y = 0; y < rows; ++y, from += pitch) {
    const std::int64_t done = y * width;
    if (done + 32 > all) {
      std::memcpy(to + done, from, static_cast<std::size_t>(width) * sizeof(float));
      continue;
    }
    std::memcpy(to + done, from, 16 * sizeof(float));
    if (width > 16) std::memcpy(to + done + 16, from + 16, 16 * sizeof(float));
  }
}

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
  const RowKernel rows_kernel = row_kernel();
  const std::int64_t bands = (at.out[1] + planes.band - 1) / planes.band, slice_places = at.out[1] * at.out[2];
  const bool has_row_taps = at.stride[1] == 1 && at.dilation[1] == 1;
  float* const to = static_cast<float*>(out.data);
  const auto run = [&](std::int64_t task, float* memory, float* result, const std::int64_t* offsets) {
    const std::int64_t first = task % bands * planes.band, rows = std::min(planes.band, at.out[1] - first);
    const std::int64_t slice = task / bands % at.out[0], row = task / bands / at.out[0], channel = row % plan.channels,
                       image = row / plan.channels;
    planes.fill(static_cast<const float*>(x.data) + image * x.strides[0] + channel * x.strides[1], slice, 1, first, rows, memory);
    const std::int64_t first_place = slice * slice_places + first * at.out[2];
    float* const place = to + row * at.out[0] * slice_places + first_place;
    const float* const factors = weight + channel * plan.taps;
    Finish rest = finish;
    const TileEnd first_steps = end_of_tile(rest, channel);
    const ChannelEnd end{first_steps.scale ? *first_steps.scale : 1, first_steps.shift ? *first_steps.shift : 0,
                         first_steps.relu};
    if (at.out[2] >= kWideRow) {
      const RowTaps taps{offsets, factors, at.size[0], at.size[1], at.size[2], planes.pitch};
      std::int64_t y = 0;
      for (; has_row_taps && y + kRowsTogether <= rows; y += kRowsTogether)
        rows_kernel(memory + y * planes.pitch, taps, place + y * at.out[2], at.out[2], y + kRowsTogether == rows, end);
      for (; y < rows; ++y)
        kernel(memory + y * planes.pitch, offsets, factors, plan.taps, place + y * at.out[2], at.out[2], true, end);
      if (!rest.is_empty()) rest.apply(place, place, row, first_place, rows * at.out[2]);
      return;
    }
    kernel(memory, offsets, factors, plan.taps, result, rows * planes.pitch, false, end);
    join_rows(result, planes.pitch, rows, at.out[2], place);
    if (!rest.is_empty()) rest.apply(place, place, row, first_place, rows * at.out[2]);
  };
  for_ranges(pool, plan.images * plan.channels * at.out[0] * bands, planes.band * at.out[2] * plan.taps / 4,
             [&](std::int64_t begin, std::int64_t end, int worker) {
               float* const own =
                   reinterpret_cast<float*>(scratch.data() + plan.worker_bytes() * static_cast<std::size_t>(worker));
               float* const result = own + planes.elements;
               auto* const offsets = reinterpret_cast<std::int64_t*>(result + plan.result_elements());
               for (std::int64_t t = 0; t < plan.taps; ++t) offsets[t] = planes.offset(t);
               for (std::int64_t task = begin; task < end; ++task) run(task, own, result, offsets);
             });
}

}  // namespace tenon::cpu

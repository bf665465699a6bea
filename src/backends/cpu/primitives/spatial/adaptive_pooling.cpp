#include "backends/cpu/primitives/spatial/adaptive_pooling.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/primitives/clones.h"
#include "backends/cpu/primitives/split.h"

namespace tenon::cpu {
namespace {

// Rows whose sums are formed in f32 before they are added in double.
constexpr std::int64_t kTogether = 16;

// Window |i| of |out| over |in| elements.
Range window_of(std::int64_t i, std::int64_t in, std::int64_t out) { return {i * in / out, ((i + 1) * in + out - 1) / out}; }

struct Spaces {
  Spatial in{1, 1, 1}, out{1, 1, 1};

  Spaces(const Shape& x, const Shape& y) {
    for (int axis = 2; axis < x.rank(); ++axis) {
      const auto to = static_cast<std::size_t>(axis + 3 - x.rank());
      in[to] = x[axis];
      out[to] = y[axis];
    }
    // Rows of which one window each has all are one long row.
    constexpr std::int64_t kLongest = 32 * 1024;
    for (int i = 0; i < 2 && out[2] == 1 && out[1] == 1 && in[1] * in[2] <= kLongest; ++i) {
      in = {1, in[0], in[1] * in[2]};
      out = {1, out[0], 1};
    }
  }
};

// A joined row, and what it takes to form it.
struct RowMemory {
  double* total;     // of sums
  float* joined;     // of the rows that were joined last
  float* converted;  // of one row

  static std::size_t bytes(std::int64_t width) {
    return (static_cast<std::size_t>(width) * (sizeof(double) + 2 * sizeof(float)) + 63) / 64 * 64;
  }
  RowMemory(std::byte* memory, std::int64_t width)
      : total(reinterpret_cast<double*>(memory)),
        joined(reinterpret_cast<float*>(total + width)),
        converted(joined + width) {}
};

TENON_CLONES void add_rows(float* __restrict to, const float* from, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) to[i] += from[i];
}
TENON_CLONES void add_to_total(double* __restrict to, const float* from, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) to[i] += static_cast<double>(from[i]);
}
// A NaN replaces every number and is kept.
float larger(float a, float b) { return a != a || b <= a ? a : b; }
TENON_CLONES void join_maxima(float* __restrict to, const float* from, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = to[i] != to[i] || from[i] <= to[i] ? to[i] : from[i];
}

// Long windows by four at a time, so that no sum waits for the one before it.
double sum_of(const double* from, std::int64_t n) {
  double sums[4] = {};
  std::int64_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (std::int64_t l = 0; l < 4; ++l) sums[l] += from[i + l];
  for (; i < n; ++i) sums[0] += from[i];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// The same for maxima.
float largest_of(const float* from, std::int64_t n) {
  float most[4] = {from[0], from[0], from[0], from[0]};
  std::int64_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (std::int64_t l = 0; l < 4; ++l) most[l] = larger(most[l], from[i + l]);
  for (; i < n; ++i) most[0] = larger(most[0], from[i]);
  return larger(larger(most[0], most[1]), larger(most[2], most[3]));
}

class Runner {
 public:
  Runner(const View& x, bool max, const Spaces& spaces, float* out, std::byte* memory)
      : x_(x),
        max_(max),
        in_(spaces.in),
        places_(spaces.out),
        out_(out),
        memory_(memory, spaces.in[2]),
        convert_(x.dtype == DType::f32 ? nullptr : kernels().convert[static_cast<int>(x.dtype)][static_cast<int>(DType::f32)]) {}

  // Row |number| of the result, counted over all planes.
  void run(std::int64_t number) {
    const std::int64_t plane = number / (places_[0] * places_[1]);
    const Range depths = window_of(number / places_[1] % places_[0], in_[0], places_[0]);
    const Range rows = window_of(number % places_[1], in_[1], places_[1]);
    const std::int64_t count = (depths.end - depths.begin) * (rows.end - rows.begin);
    float* const to = out_ + number * places_[2];
    const float* row = nullptr;
    for (std::int64_t d = depths.begin, i = 0; d < depths.end; ++d)
      for (std::int64_t h = rows.begin; h < rows.end; ++h, ++i) {
        row = values(((plane * in_[0] + d) * in_[1] + h) * in_[2]);
        if (count > 1) join(row, i, count);
      }
    if (count > 1) row = memory_.joined;
    if (max_)
      maxima(row, to);
    else
      means(row, count, to);
  }

 private:
  // A row of the input as f32.
  const float* values(std::int64_t first) const {
    if (!convert_) return static_cast<const float*>(x_.data) + first;
    convert_(static_cast<const std::byte*>(x_.data) + static_cast<std::size_t>(first) * element_bytes(x_.dtype),
             memory_.converted, in_[2]);
    return memory_.converted;
  }

  // Row |i| of |count|.
  void join(const float* row, std::int64_t i, std::int64_t count) {
    const auto bytes = static_cast<std::size_t>(in_[2]) * sizeof(float);
    if (i == 0 || (!max_ && i % kTogether == 0))
      std::memcpy(memory_.joined, row, bytes);
    else
      (max_ ? join_maxima : add_rows)(memory_.joined, row, in_[2]);
    if (max_ || (i + 1 < count && (i + 1) % kTogether != 0)) return;
    if (i < kTogether) std::fill_n(memory_.total, in_[2], 0.0);
    add_to_total(memory_.total, memory_.joined, in_[2]);
  }

  void maxima(const float* row, float* to) const {
    constexpr std::int64_t kLong = 32;
    const PartialReduceKernel reduce = kernels().partial_reduce[static_cast<int>(ReduceKind::max)][static_cast<int>(DType::f32)];
    for (std::int64_t i = 0; i < places_[2]; ++i) {
      const Range window = window_of(i, in_[2], places_[2]);
      if (window.end - window.begin >= kLong) {
        to[i] = static_cast<float>(reduce(row + window.begin, window.end - window.begin).f);
        continue;
      }
      to[i] = largest_of(row + window.begin, window.end - window.begin);
    }
  }

  void means(const float* row, std::int64_t count, float* to) const {
    const PartialReduceKernel reduce = kernels().partial_reduce[static_cast<int>(ReduceKind::sum)][static_cast<int>(DType::f32)];
    for (std::int64_t i = 0; i < places_[2]; ++i) {
      const Range window = window_of(i, in_[2], places_[2]);
      const std::int64_t n = window.end - window.begin;
      const double sum = count > 1 ? sum_of(memory_.total + window.begin, n) : reduce(row + window.begin, n).f;
      to[i] = static_cast<float>(sum / static_cast<double>(count * n));
    }
  }

  const View& x_;
  bool max_;
  Spatial in_, places_;
  float* out_;
  RowMemory memory_;
  ConvertKernel convert_;
};

}  // namespace

std::size_t adaptive_pool_scratch_bytes(const ThreadPool& pool, const Shape& x, const Shape& out) {
  return RowMemory::bytes(Spaces(x, out).in[2]) * static_cast<std::size_t>(pool.threads());
}

void adaptive_pool(ThreadPool& pool, const View& x, const AdaptivePoolAttr& attr, const Target& out,
                   std::span<std::byte> scratch) {
  if (out.shape.elements() == 0) return;
  const Spaces spaces(x.shape, out.shape);
  const std::int64_t rows = out.shape.elements() / spaces.out[2];
  const std::int64_t cost = spaces.in[2] * (spaces.in[0] / spaces.out[0] + 1) * (spaces.in[1] / spaces.out[1] + 1);
  for_ranges(pool, rows, cost, [&](std::int64_t begin, std::int64_t end, int worker) {
    std::byte* const own = scratch.data() + RowMemory::bytes(spaces.in[2]) * static_cast<std::size_t>(worker);
    Runner runner(x, attr.max, spaces, static_cast<float*>(out.data), own);
    for (std::int64_t row = begin; row < end; ++row) runner.run(row);
  });
}

}  // namespace tenon::cpu

#include "backends/cpu/primitives/spatial/conv_transpose.h"

#include <algorithm>
#include <vector>

#include "backends/cpu/primitives/clones.h"
#include "backends/cpu/primitives/matmul/gemm.h"
#include "backends/cpu/primitives/spatial/narrow_images.h"
#include "backends/cpu/primitives/split.h"
#include "tenon/error.h"

namespace tenon::cpu {
namespace {

Spatial spatial_of(const Shape& shape) {
  Spatial extents{1, 1, 1};
  for (int i = 2; i < shape.rank(); ++i) extents[static_cast<std::size_t>(i - 2)] = shape[i];
  return extents;
}
std::int64_t product(const Spatial& s) { return s[0] * s[1] * s[2]; }

// One convolution, and how it is divided. One to three axes; missing ones have extent 1, and come last.
struct Plan {
  std::int64_t images, groups, in_channels, out_channels;  // channels of one group
  Spatial in, window, out;
  std::int64_t lines, line;      // of the input: a line is its last axis
  std::int64_t channels, parts;  // of the result, at a time
  std::int64_t tile_lines;       // of the input, at a time

  Plan(const Shape& x, const Shape& weight, const Spatial& result, std::int64_t group_count, int threads)
      : images(x[0]),
        groups(group_count),
        in_channels(weight[0] / group_count),
        out_channels(weight[1]),
        in(spatial_of(x)),
        window(spatial_of(weight)),
        out(result) {
    // Lines run along the last axis there is, so that rows are long in one and two dimensions, too.
    const auto last = static_cast<std::size_t>(x.rank() - 3);
    line = in[last];
    lines = product(in) / line;
    const std::int64_t tasks = images * groups, wanted = (2 * threads + tasks - 1) / tasks;
    channels = std::max<std::int64_t>(1, std::min(out_channels, (out_channels + wanted - 1) / wanted));
    parts = (out_channels + channels - 1) / channels;
    constexpr std::int64_t kTileFloats = 128 * 1024;  // stays in the L2 cache
    tile_lines = std::clamp<std::int64_t>(kTileFloats / (channels * product(window) * line), 1, lines);
  }

  std::int64_t taps() const { return product(window); }
  std::int64_t tile_floats() const { return channels * taps() * tile_lines * line; }
};

void multiply(const Matrix<float>& a, const Matrix<float>& b, float* c, std::int64_t ldc) { gemm(a, b, c, ldc); }
void multiply(const Matrix<Bf16Bits>& a, const Matrix<Bf16Bits>& b, float* c, std::int64_t ldc) { gemm_bf16(a, b, c, ldc); }

TENON_CLONES void add_alternating(const float* even, const float* odd, float* __restrict to, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    to[2 * i] += even[i];
    to[2 * i + 1] += odd[i];
  }
}

class Task {
 public:
  Task(const Plan& plan, const ConvTransposeAttr& attr, int last, float* products)
      : plan_(plan),
        attr_(attr),
        last_(static_cast<std::size_t>(last)),
        products_(products) {}

  // Channels [begin, end) of a group's result. |x| and |out| are those of the group, |weight| its first kernel.
  template <class T>
  void run(const T* x, const T* weight, std::int64_t begin, std::int64_t end, float* out) const {
    const std::int64_t out_size = product(plan_.out), in_size = product(plan_.in), taps = plan_.taps();
    std::fill(out + begin * out_size, out + end * out_size, 0.0f);
    const std::int64_t rows = (end - begin) * taps;
    // The kernels of one input channel are a row: [in_channels, out_channels * taps].
    const Matrix<T> kernels{weight + begin * taps, plan_.in_channels, rows, plan_.out_channels * taps, 1};
    for (std::int64_t line = 0; line < plan_.lines; line += plan_.tile_lines) {
      const std::int64_t count = std::min(plan_.tile_lines, plan_.lines - line), places = count * plan_.line;
      const Matrix<T> part{x + line * plan_.line, plan_.in_channels, places, in_size, 1};
      multiply(kernels.transposed(), part, products_, places);
      const std::int64_t width = plan_.window[last_];
      const bool by_twos = attr_.stride[last_] == 2 && attr_.dilation[last_] == 1;
      for (std::int64_t row = 0, together = 1; row < rows; row += together) {
        together = by_twos && row % taps % width + 2 <= width ? 2 : 1;
        const std::int64_t next = together == 2 ? places : 0;
        for (std::int64_t l = 0; l < count; ++l)
          add_line(products_ + row * places + l * plan_.line, next, line + l, row % taps, out + (begin + row / taps) * out_size);
      }
    }
  }

 private:
  // Where place |i| of the input goes along an axis, for element |tap| of the kernel.
  std::int64_t target(std::size_t axis, std::int64_t i, std::int64_t tap) const {
    return i * attr_.stride[axis] + tap * attr_.dilation[axis] - attr_.pad_low[axis];
  }

  // Adds what one element of the kernel makes of a line; with |next|, the distance to what the next element makes, also that:
  // with steps of two the places of both alternate.
  void add_line(const float* from, std::int64_t next, std::int64_t line, std::int64_t tap, float* image) const {
    const Spatial taps{tap / (plan_.window[1] * plan_.window[2]), tap / plan_.window[2] % plan_.window[1], tap % plan_.window[2]};
    // The axes before the last one, outermost first.
    std::int64_t offset = 0;
    for (std::size_t axis = 0, rest = line, size = static_cast<std::size_t>(plan_.lines); axis < last_; ++axis) {
      size /= static_cast<std::size_t>(plan_.in[axis]);
      const std::int64_t place = target(axis, static_cast<std::int64_t>(rest / size), taps[axis]);
      rest %= size;
      if (place < 0 || place >= plan_.out[axis]) return;
      offset = (offset + place) * plan_.out[axis + 1];
    }
    const std::int64_t step = attr_.stride[last_], first = target(last_, 0, taps[last_]);
    float* const to = image + offset + first;
    const Range range = inside(first);
    if (next == 0) return add(from, range, to, step);
    const Range other = inside(first + 1), both{std::max(range.begin, other.begin), std::min(range.end, other.end)};
    if (both.begin >= both.end) {
      add(from, range, to, step);
      return add(from + next, other, to + 1, step);
    }
    add(from, {range.begin, both.begin}, to, step);
    add(from + next, {other.begin, both.begin}, to + 1, step);
    add_alternating(from + both.begin, from + next + both.begin, to + 2 * both.begin, both.end - both.begin);
    add(from, {both.end, range.end}, to, step);
    add(from + next, {both.end, other.end}, to + 1, step);
  }

  // The places of a line that go to places inside the result, if the first goes to |first|.
  Range inside(std::int64_t first) const {
    const std::int64_t step = attr_.stride[last_], extent = plan_.out[last_];
    return {first >= 0 ? 0 : (-first + step - 1) / step,
            first >= extent ? 0 : std::min(plan_.line, (extent - 1 - first) / step + 1)};
  }

  static void add(const float* from, Range range, float* to, std::int64_t step) {
    if (step == 1)
      for (std::int64_t i = range.begin; i < range.end; ++i) to[i] += from[i];
    else
      for (std::int64_t i = range.begin; i < range.end; ++i) to[i * step] += from[i];
  }

  const Plan& plan_;
  const ConvTransposeAttr& attr_;
  const std::size_t last_;
  float* const products_;
};

std::size_t worker_bytes(const Plan& plan) {
  return (static_cast<std::size_t>(plan.tile_floats()) * sizeof(float) + 63) / 64 * 64;
}

}  // namespace

std::size_t conv_transpose_scratch_bytes(const ThreadPool& pool, const Shape& x, const Shape& weight,
                                         const ConvTransposeAttr& attr) {
  // Of all images at a time, or of one.
  const std::size_t all = worker_bytes(Plan(x, weight, {}, attr.groups, pool.threads()));
  const std::size_t one = worker_bytes(Plan(x.with(0, 1), weight, {}, attr.groups, pool.threads()));
  return std::max(all, one) * static_cast<std::size_t>(pool.threads());
}

namespace {

template <class T>
void run_tasks(ThreadPool& pool, const Plan& plan, const T* x, const T* weight, const ConvTransposeAttr& attr, int last,
               float* out, std::byte* scratch) {
  const std::int64_t in_size = product(plan.in), out_size = product(plan.out);
  pool.for_each(plan.images * plan.groups * plan.parts, [&](std::int64_t task, int worker) {
    const std::int64_t part = task % plan.parts, at = task / plan.parts, group = at % plan.groups;
    float* products = reinterpret_cast<float*>(scratch + worker_bytes(plan) * static_cast<std::size_t>(worker));
    Task(plan, attr, last, products)
        .run(x + at * plan.in_channels * in_size, weight + group * plan.in_channels * plan.out_channels * plan.taps(),
             part * plan.channels, std::min(plan.out_channels, (part + 1) * plan.channels),
             out + at * plan.out_channels * out_size);
  });
}

// bf16 operands by the CPU's matrix instructions, or in f32 where subnormal numbers matter.
void run_narrow(ThreadPool& pool, const View& x, const View& weight, const ConvTransposeAttr& attr, const Target& out,
                std::byte* scratch) {
  const std::int64_t channels = weight.shape[0], kernel = weight.shape.elements() / channels, images = x.shape[0];
  const auto *const weights = static_cast<const Bf16Bits*>(weight.data), *const from = static_cast<const Bf16Bits*>(x.data);
  float* const to = static_cast<float*>(out.data);
  const int last = x.shape.rank() - 3;
  const std::vector<char> exact = exact_images(pool, x, range_of({weights, channels, kernel, kernel, 1}));
  if (std::ranges::find(exact, 1) == exact.end()) {
    const Plan plan(x.shape, weight.shape, spatial_of(out.shape), attr.groups, pool.threads());
    return run_tasks(pool, plan, from, weights, attr, last, to, scratch);
  }
  const Plan one(x.shape.with(0, 1), weight.shape, spatial_of(out.shape), attr.groups, pool.threads());
  const std::vector<float> wide_weights = widened(weights, weight.shape.elements());
  const std::int64_t pixels = x.shape.elements() / images, results = out.shape.elements() / images;
  for (std::int64_t image = 0; image < images; ++image) {
    if (exact[static_cast<std::size_t>(image)] == 0) {
      run_tasks(pool, one, from + image * pixels, weights, attr, last, to + image * results, scratch);
    } else {
      const std::vector<float> wide = widened(from + image * pixels, pixels);
      run_tasks(pool, one, wide.data(), wide_weights.data(), attr, last, to + image * results, scratch);
    }
  }
}

}  // namespace

bool has_conv_transpose16(DType dtype) { return dtype == DType::bf16 && bf16_unit() != Bf16Unit::none; }

void conv_transpose(ThreadPool& pool, const View& x, const View& weight, const ConvTransposeAttr& attr, const Target& out,
                    std::span<std::byte> scratch) {
  if (scratch.size() < conv_transpose_scratch_bytes(pool, x.shape, weight.shape, attr))
    throw Error(ErrorCode::internal, "conv_transpose: not enough scratch memory");
  if (x.dtype == DType::bf16) return run_narrow(pool, x, weight, attr, out, scratch.data());
  const Plan plan(x.shape, weight.shape, spatial_of(out.shape), attr.groups, pool.threads());
  run_tasks(pool, plan, static_cast<const float*>(x.data), static_cast<const float*>(weight.data), attr, x.shape.rank() - 3,
            static_cast<float*>(out.data), scratch.data());
}

}  // namespace tenon::cpu

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "backends/cpu/primitives/matmul/gemm.h"
#include "backends/cpu/primitives/primitives.h"
#include "backends/cpu/primitives/spatial/narrow_images.h"
#include "backends/cpu/primitives/spatial/sliding.h"
#include "backends/cpu/primitives/typed.h"
#include "backends/cpu/products/convolution/bf16/conv16_direct.h"

namespace tenon::cpu {
namespace {

std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

bool is_dense(const Shape& shape, const Strides& strides) {
  std::int64_t expected = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    if (shape[axis] != 1 && strides[static_cast<std::size_t>(axis)] != expected) return false;
    expected *= shape[axis];
  }
  return true;
}

Spatial kernel_size(const Shape& weight) {
  Spatial size{1, 1, 1};
  for (int i = 2; i < weight.rank(); ++i) size[static_cast<std::size_t>(i - 2)] = weight[i];
  return size;
}

// Everything about one convolution that does not depend on the element type.
struct Plan {
  enum class Method {
    direct,     // taps added to rows of the result: few channels a group
    pointwise,  // 1x1: the input itself is the matrix
    columns,    // windows laid out as the columns of a matrix, a tile of places at a time
  };
  Sliding at;
  std::int64_t images, groups, in_channels, out_channels;  // channels of one group
  Strides x_strides;
  std::int64_t places, depth;  // depth: terms of one result
  std::int64_t tile = 0, tiles = 0;
  Method method;

  Plan(const View& x, const View& weight, const ConvAttr& attr, const Shape& out, int threads)
      : at(attr, kernel_size(weight.shape), x.shape, x.strides, out),
        images(x.shape[0]),
        groups(attr.groups),
        in_channels(weight.shape[1]),
        out_channels(weight.shape[0] / attr.groups),
        x_strides(x.strides),
        places(at.places()),
        depth(in_channels * at.window()) {
    method = choose();
    // A tile of columns stays in the caches, but is wide enough to be worth packing the kernel for; and there are enough tiles to
    // go round. Results do not depend on it (gemm.h).
    constexpr std::int64_t kTileElements = 256 * 1024, kNarrowest = 96;
    const std::int64_t tasks = std::max<std::int64_t>(1, images * groups);
    const std::int64_t wanted = tasks >= 2 * threads ? 1 : (2 * threads + tasks - 1) / tasks;
    const std::int64_t widest = std::max(kNarrowest, kTileElements / std::max<std::int64_t>(1, depth));
    tile = std::clamp((places + wanted - 1) / wanted, kNarrowest, widest);
    tile = std::min((tile + 31) / 32 * 32, std::max<std::int64_t>(1, places));
    tiles = (places + tile - 1) / tile;
  }

  Method choose() const {
    if (in_channels == 1 && out_channels <= 2) return Method::direct;
    const bool steps_once = at.stride == Spatial{1, 1, 1} && at.pad == Spatial{} && at.window() == 1;
    const bool unpadded = at.in == at.out;
    const bool dense_image = (at.in[2] == 1 || at.steps[2] == 1) && (at.in[1] == 1 || at.steps[1] == at.in[2]) &&
                             (at.in[0] == 1 || at.steps[0] == at.in[1] * at.in[2]);
    if (steps_once && unpadded && dense_image && is_blas_matrix(in_channels, places, x_strides[1], 1)) return Method::pointwise;
    return Method::columns;
  }

  std::int64_t image_offset(std::int64_t image, std::int64_t channel) const {
    return image * x_strides[0] + channel * x_strides[1];
  }
};

// Short runs: no call for each.
template <class T>
T* copy_short(const T* from, std::int64_t n, T* to) {
  constexpr std::int64_t kAtOnce = 16 / sizeof(T), kLongest = 16 * kAtOnce;
  if (n < kAtOnce || n > kLongest) {
    if (n > kLongest) return std::copy_n(from, n, to);
    for (std::int64_t i = 0; i < n; ++i) to[i] = from[i];
    return to + n;
  }
  std::int64_t i = 0;
  for (; i + kAtOnce <= n; i += kAtOnce) std::memcpy(to + i, from + i, 16);
  std::memcpy(to + n - kAtOnce, from + n - kAtOnce, 16);
  return to + n;
}

// One row of the column matrix: tap (channel, t0, t1, t2) at places [begin, end).
template <class T>
void lay_out_tap(const Sliding& at, const T* image, std::int64_t t0, std::int64_t t1, std::int64_t t2, std::int64_t begin,
                 std::int64_t end, T* to) {
  const std::int64_t step = at.stride[2] * at.steps[2];
  const Range all = at.inside(t2, 0, at.out[2]);
  std::int64_t place0 = begin / at.out[2] / at.out[1], place1 = begin / at.out[2] % at.out[1], c0 = begin % at.out[2];
  for (std::int64_t place = begin; place < end; c0 = 0) {
    const std::int64_t c1 = std::min(at.out[2], c0 + end - place);
    const std::int64_t a = at.source(0, place0, t0), b = at.source(1, place1, t1);
    place += c1 - c0;
    if (++place1 == at.out[1]) {
      place1 = 0;
      ++place0;
    }
    if (!at.is_inside(0, a) || !at.is_inside(1, b)) {
      to = std::fill_n(to, c1 - c0, T{});
      continue;
    }
    const std::int64_t first = std::clamp(all.begin, c0, c1);
    const Range range{first, std::clamp(all.end, first, c1)};
    const T* from = image + a * at.steps[0] + b * at.steps[1] + at.source(2, range.begin, t2) * at.steps[2];
    const std::int64_t n = range.end - range.begin;
    for (std::int64_t i = c0; i < range.begin; ++i) *to++ = T{};
    if (step == 1) {
      to = copy_short(from, n, to);
    } else {
      for (std::int64_t i = 0; i < n; ++i) *to++ = from[i * step];
    }
    for (std::int64_t i = range.end; i < c1; ++i) *to++ = T{};
  }
}

// Windows that step once over a dense image whose size the result has: a tap is the image, shifted, and zero where that reaches
// over an edge.
bool is_shift(const Sliding& at) {
  return at.stride == Spatial{1, 1, 1} && at.in == at.out && at.steps[2] == 1 && at.steps[1] == at.in[2] &&
         (at.in[0] == 1 || at.steps[0] == at.in[1] * at.in[2]);
}

template <class T>
void lay_out_shifted(const Sliding& at, const T* image, std::int64_t t0, std::int64_t t1, std::int64_t t2, std::int64_t begin,
                     std::int64_t end, T* to) {
  const std::int64_t s0 = at.source(0, 0, t0), s1 = at.source(1, 0, t1), s2 = at.source(2, 0, t2), width = at.out[2];
  const std::int64_t shift = (s0 * at.in[1] + s1) * width + s2;
  const std::int64_t first = std::clamp(-shift, begin, end), last = std::clamp(at.places() - shift, first, end);
  std::fill(to, to + (first - begin), T{});
  std::copy(image + first + shift, image + last + shift, to + (first - begin));
  std::fill(to + (last - begin), to + (end - begin), T{});
  const auto clear = [&](std::int64_t from, std::int64_t until) {
    for (std::int64_t i = std::max(from, begin); i < std::min(until, end); ++i) to[i - begin] = T{};
  };
  std::int64_t place0 = begin / width / at.out[1], place1 = begin / width % at.out[1];
  for (std::int64_t row = begin / width * width; row < end; row += width) {
    if (!at.is_inside(0, place0 + s0) || !at.is_inside(1, place1 + s1))
      clear(row, row + width);
    else if (s2 < 0)
      clear(row, row + std::min(-s2, width));
    else if (s2 > 0)
      clear(row + std::max<std::int64_t>(0, width - s2), row + width);
    if (++place1 == at.out[1]) {
      place1 = 0;
      ++place0;
    }
  }
}

template <class T>
void lay_out_columns(const Plan& plan, const T* image, std::int64_t begin, std::int64_t end, T* columns) {
  const Sliding& at = plan.at;
  const auto lay_out = is_shift(at) ? lay_out_shifted<T> : lay_out_tap<T>;
  for (std::int64_t c = 0; c < plan.in_channels; ++c)
    for (std::int64_t t0 = 0; t0 < at.size[0]; ++t0)
      for (std::int64_t t1 = 0; t1 < at.size[1]; ++t1)
        for (std::int64_t t2 = 0; t2 < at.size[2]; ++t2, columns += end - begin)
          lay_out(at, image + c * plan.x_strides[1], t0, t1, t2, begin, end, columns);
}

// c = kernel x columns; bf16 operands have an f32 result.
template <class T>
void multiply(const Matrix<T>& kernel, const Matrix<T>& columns, T* c, std::int64_t ldc) {
  if (kernel.rows == 1) return gemv(columns.transposed(), kernel.data, 1, c);
  gemm(kernel, columns, c, ldc);
}
void multiply(const Matrix<Bf16Bits>& kernel, const Matrix<Bf16Bits>& columns, float* c, std::int64_t ldc) {
  gemm_bf16(kernel, columns, c, ldc);
}

template <class T, class Sum>
void by_matrix(ThreadPool& pool, const Plan& plan, const T* x, const T* weight, Sum* out, std::byte* scratch) {
  const std::size_t per_thread = aligned(static_cast<std::size_t>(plan.depth * plan.tile) * sizeof(T));
  const std::int64_t tasks = plan.images * plan.groups * plan.tiles;
  const std::int64_t cost = plan.depth * plan.tile * (1 + plan.out_channels / 16);
  const auto run = [&](std::int64_t task, int worker) {
    const std::int64_t begin = task % plan.tiles * plan.tile, end = std::min(plan.places, begin + plan.tile);
    const std::int64_t group = task / plan.tiles % plan.groups, image = task / plan.tiles / plan.groups;
    const T* from = x + plan.image_offset(image, group * plan.in_channels);
    const Matrix<T> kernel{weight + group * plan.out_channels * plan.depth, plan.out_channels, plan.depth, plan.depth, 1};
    Matrix<T> columns{from + begin, plan.depth, end - begin, plan.x_strides[1], 1};
    if (plan.method == Plan::Method::columns) {
      T* laid_out = reinterpret_cast<T*>(scratch + per_thread * static_cast<std::size_t>(worker));
      lay_out_columns(plan, from, begin, end, laid_out);
      columns = {laid_out, plan.depth, end - begin, end - begin, 1};
    }
    multiply(kernel, columns, out + (image * plan.groups + group) * plan.out_channels * plan.places + begin, plan.places);
  };
  for_ranges(pool, tasks, cost, [&](std::int64_t begin, std::int64_t end, int worker) {
    for (std::int64_t task = begin; task < end; ++task) run(task, worker);
  });
}

// One row of the result: every tap inside the input is added to the whole row.
template <class T>
void direct_row(const Plan& plan, const T* image, const T* weight, std::int64_t place0, std::int64_t place1, T* out) {
  const Sliding& at = plan.at;
  const std::int64_t step = at.stride[2] * at.steps[2];
  const bool is_long = plan.depth > kUnchecked / at.out[2];
  std::fill_n(out, at.out[2], T{});
  for (std::int64_t c = 0; c < plan.in_channels; ++c)
    for (std::int64_t t0 = 0; t0 < at.size[0]; ++t0)
      for (std::int64_t t1 = 0; t1 < at.size[1]; ++t1) {
        const std::int64_t a = at.source(0, place0, t0), b = at.source(1, place1, t1);
        if (is_long) check_stop();
        const T* taps = weight + ((c * at.size[0] + t0) * at.size[1] + t1) * at.size[2];
        if (!at.is_inside(0, a) || !at.is_inside(1, b)) continue;
        const T* line = image + c * plan.x_strides[1] + a * at.steps[0] + b * at.steps[1];
        for (std::int64_t t2 = 0; t2 < at.size[2]; ++t2) {
          const Range range = at.inside(t2, 0, at.out[2]);
          const T* from = line + at.source(2, range.begin, t2) * at.steps[2];
          T* to = out + range.begin;
          const std::int64_t n = range.end - range.begin;
          const T factor = taps[t2];
          if (step == 1) {
            for (std::int64_t i = 0; i < n; ++i) to[i] += factor * from[i];
          } else {
            for (std::int64_t i = 0; i < n; ++i) to[i] += factor * from[i * step];
          }
        }
      }
}

template <class T>
void direct(ThreadPool& pool, const Plan& plan, const T* x, const T* weight, T* out) {
  const std::int64_t channels = plan.groups * plan.out_channels, rows = plan.at.out[0] * plan.at.out[1];
  for_ranges(pool, plan.images * channels * rows, plan.at.out[2] * plan.depth, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t row = i % rows, channel = i / rows % channels, image = i / rows / channels;
      const T* from = x + plan.image_offset(image, channel / plan.out_channels * plan.in_channels);
      direct_row(plan, from, weight + channel * plan.depth, row / plan.at.out[1], row % plan.at.out[1], out + i * plan.at.out[2]);
    }
  });
}

// Padding is skipped, not multiplied: zeros in the columns can represent it only if no factor is infinite or NaN.
template <class T>
bool zeros_may_stand_for_padding(const T* weight, std::int64_t n) {
  T sum{};
  for (std::int64_t i = 0; i < n; ++i) sum += weight[i] * T{};
  return sum == T{};
}

bool has_padding(const Sliding& at) {
  for (std::size_t axis = 0; axis < 3; ++axis)
    if (at.pad[axis] > 0 || at.source(axis, at.out[axis] - 1, at.size[axis] - 1) >= at.in[axis]) return true;
  return false;
}

}  // namespace

std::size_t conv_scratch_bytes(const ThreadPool& pool, const View& x, const View& weight, const ConvAttr& attr,
                               const Shape& out) {
  if (out.elements() == 0 || weight.shape.elements() == 0) return 0;
  const Plan plan(x, weight, attr, out, pool.threads());
  const std::size_t element = element_bytes(weight.dtype);
  std::size_t bytes = 0;
  if (!is_dense(weight.shape, weight.strides)) bytes += aligned(static_cast<std::size_t>(weight.shape.elements()) * element);
  if (plan.method == Plan::Method::columns)
    bytes += aligned(static_cast<std::size_t>(plan.depth * plan.tile) * element) * static_cast<std::size_t>(pool.threads());
  return bytes;
}

void conv(ThreadPool& pool, const View& x, const View& weight, const ConvAttr& attr, const Target& out,
          std::span<std::byte> scratch) {
  if (out.shape.elements() == 0) return;
  if (weight.shape.elements() == 0) return fill(pool, out, 0);
  if (scratch.size() < conv_scratch_bytes(pool, x, weight, attr, out.shape))
    throw Error(ErrorCode::internal, "conv: not enough scratch memory");
  const Plan plan(x, weight, attr, out.shape, pool.threads());
  const auto run = [&]<class T>(T) {
    const T* kernel = static_cast<const T*>(weight.data);
    std::byte* free = scratch.data();
    if (!is_dense(weight.shape, weight.strides)) {
      copy(pool, weight, dense_target(free, weight.dtype, weight.shape));
      kernel = reinterpret_cast<const T*>(free);
      free += aligned(static_cast<std::size_t>(weight.shape.elements()) * sizeof(T));
    }
    const T* from = static_cast<const T*>(x.data);
    T* to = static_cast<T*>(out.data);
    const bool exact = !has_padding(plan.at) || zeros_may_stand_for_padding(kernel, weight.shape.elements());
    if (plan.method == Plan::Method::direct || !exact) {
      direct(pool, plan, from, kernel, to);
    } else {
      by_matrix(pool, plan, from, kernel, to, free);
    }
  };
  if (out.dtype == DType::f32) return run(float{});
  if (out.dtype == DType::f64) return run(double{});
  throw Error(ErrorCode::internal, "convolution in " + std::string(name(out.dtype)));
}

bool has_conv16(DType dtype, const View& x, const View& weight, const ConvAttr& attr, const Shape& out) {
  constexpr std::int64_t kWorthIt = 32 * 32 * 32;
  if (dtype != DType::bf16 || x.dtype != dtype || weight.dtype != dtype || bf16_unit() == Bf16Unit::none) return false;
  if (out.elements() == 0 || weight.shape.elements() == 0 || !is_dense(x.shape, x.strides)) return false;
  const Plan plan(x, weight, attr, out, 1);
  return plan.method != Plan::Method::direct && plan.out_channels > 1 && plan.out_channels * plan.depth * plan.places >= kWorthIt;
}

namespace {

// Subnormal or infinite numbers that matter: one image in f32. Rare, so memory is taken when it happens.
void conv_exactly(ThreadPool& pool, const View& x, const View& weight, const ConvAttr& attr, const Target& out) {
  const std::vector<float> wide_x = widened(x.data, x.shape.elements()), wide_w = widened(weight.data, weight.shape.elements());
  const View from = dense_view(wide_x.data(), DType::f32, x.shape), kernel = dense_view(wide_w.data(), DType::f32, weight.shape);
  std::vector<std::byte> scratch(conv_scratch_bytes(pool, from, kernel, attr, out.shape));
  conv(pool, from, kernel, attr, out, scratch);
}

// Those that subnormal numbers do not matter to, by the CPU's own instructions.
void conv_in_pairs(ThreadPool& pool, const View& x, const View& weight, const ConvAttr& attr, const Target& out,
                   std::span<std::byte> scratch) {
  if (has_direct_conv16(x, weight.shape, attr, out.shape)) return direct_conv16(pool, x, weight, attr, out, scratch);
  by_matrix(pool, Plan(x, weight, attr, out.shape, pool.threads()), static_cast<const Bf16Bits*>(x.data),
            static_cast<const Bf16Bits*>(weight.data), static_cast<float*>(out.data), scratch.data());
}

}  // namespace

std::size_t conv16_scratch_bytes(const ThreadPool& pool, const View& x, const View& weight, const ConvAttr& attr,
                                 const Shape& out) {
  if (has_direct_conv16(x, weight.shape, attr, out)) return direct_conv16_scratch_bytes(pool, x, weight.shape, attr, out);
  return conv_scratch_bytes(pool, x, weight, attr, out);
}

void conv16(ThreadPool& pool, const View& x, const View& weight, const ConvAttr& attr, const Target& out,
            std::span<std::byte> scratch) {
  const auto* const kernel = static_cast<const Bf16Bits*>(weight.data);
  const std::int64_t outs = weight.shape[0], images = x.shape[0], pixels = x.shape.elements() / images;
  const Bf16Range of_kernel = range_of({kernel, outs, weight.shape.elements() / outs, weight.shape.elements() / outs, 1});
  std::vector<char> is_exact = exact_images(pool, x, of_kernel);
  if (of_kernel.has_huge && has_padding(Plan(x, weight, attr, out.shape, 1).at)) std::ranges::fill(is_exact, 1);
  if (std::ranges::find(is_exact, 1) == is_exact.end()) return conv_in_pairs(pool, x, weight, attr, out, scratch);
  View one = x;
  Target to = out;
  one.shape = x.shape.with(0, 1);
  to.shape = out.shape.with(0, 1);
  std::vector<std::byte> own(conv16_scratch_bytes(pool, one, weight, attr, to.shape));
  for (std::int64_t image = 0; image < images; ++image) {
    one.data = static_cast<const Bf16Bits*>(x.data) + image * pixels;
    to.data = static_cast<float*>(out.data) + image * to.shape.elements();
    if (is_exact[static_cast<std::size_t>(image)])
      conv_exactly(pool, one, weight, attr, to);
    else
      conv_in_pairs(pool, one, weight, attr, to, own);
  }
}

}  // namespace tenon::cpu

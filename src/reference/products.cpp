#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "base/threads/stop_scope.h"
#include "reference/kernels.h"

namespace tenon::reference {
namespace {

// Extents and attributes of the (up to three) spatial axes; missing axes have extent 1 and no effect.
Spatial spatial_extents(const Shape& shape) {
  Spatial extents{1, 1, 1};
  for (int i = 2; i < shape.rank(); ++i) extents[static_cast<std::size_t>(i - 2)] = shape[i];
  return extents;
}

// Calls f(kernel offset, input offset) for every element of the window at output position |out| that is inside the input.
template <class Attr, class F>
void for_each_in_window(const Attr& attr, const Spatial& size, const Spatial& extents, const Spatial& out, F&& f) {
  const auto place = [&](std::size_t axis, std::int64_t k) {
    return out[axis] * attr.stride[axis] - attr.pad_low[axis] + k * attr.dilation[axis];
  };
  for (std::int64_t i = 0; i < size[0]; ++i) {
    const std::int64_t a = place(0, i);
    if (a < 0 || a >= extents[0]) continue;
    for (std::int64_t j = 0; j < size[1]; ++j) {
      const std::int64_t b = place(1, j);
      if (b < 0 || b >= extents[1]) continue;
      for (std::int64_t k = 0; k < size[2]; ++k) {
        const std::int64_t c = place(2, k);
        if (c < 0 || c >= extents[2]) continue;
        f((i * size[1] + j) * size[2] + k, (a * extents[1] + b) * extents[2] + c);
      }
    }
  }
}

template <class F>
void for_each_place(const Spatial& extents, F&& f) {
  Spatial at{};
  for (at[0] = 0; at[0] < extents[0]; ++at[0])
    for (at[1] = 0; at[1] < extents[1]; ++at[1])
      for (at[2] = 0; at[2] < extents[2]; ++at[2]) {
        check_stop();
        f(at);
      }
}

std::int64_t product(const Spatial& extents) { return extents[0] * extents[1] * extents[2]; }

// How the terms of a product are added. A plain sum of n doubles is off by less than n * 2^-53 of the sum of their sizes: for
// results of up to 24 bits that is 2^29 times finer than the best that can be computed in f32, at a sixth of the time.
enum class Summing { compensated, plain };
Summing summing_for(DType dtype) { return dtype == DType::f64 ? Summing::compensated : Summing::plain; }

// |Columns| sums side by side. |next(c)| is the next term of sum c.
template <int Columns, Summing how>
struct SumsSideBySide {
  double sums[Columns] = {}, lost[Columns] = {};

  [[gnu::always_inline]] void add(auto&& next) {
    if constexpr (how == Summing::plain) {
      for (int c = 0; c < Columns; ++c) sums[c] += next(c);
      return;
    }
    for (int c = 0; c < Columns; ++c) {
      const double x = next(c), sum = sums[c], total = sum + x;
      const double first = (sum - total) + x, second = (x - total) + sum;
      lost[c] += std::fabs(sum) >= std::fabs(x) ? first : second;
      sums[c] = total;
    }
  }
  [[gnu::always_inline]] void store(double* to) const {
    for (int c = 0; c < Columns; ++c) to[c] = std::isfinite(sums[c]) ? sums[c] + lost[c] : sums[c];
  }
};

// |Columns| sums of a row of a product side by side: the same sums in the same order as one after the other, but independent of
// each other, so that the compiler uses vector instructions.
template <int Columns, Summing how>
[[gnu::always_inline]] inline void columns_of_row(const double* a, std::int64_t step_a, const double* b, std::int64_t cols,
                                                  std::int64_t inner, double* to) {
  SumsSideBySide<Columns, how> sums;
  for (std::int64_t k = 0; k < inner; ++k) {
    const double factor = a[k * step_a];
    const double* const row = b + k * cols;
    sums.add([=](int c) { return factor * row[c]; });
  }
  sums.store(to);
}

template <Summing how>
[[gnu::always_inline]] inline void row_body(const double* a, std::int64_t step_a, const double* b, std::int64_t cols,
                                            std::int64_t inner, double* to) {
  std::int64_t j = 0;
  if constexpr (how == Summing::plain)
    for (; j + 32 <= cols; j += 32) columns_of_row<32, how>(a, step_a, b + j, cols, inner, to + j);
  for (; j + 16 <= cols; j += 16) columns_of_row<16, how>(a, step_a, b + j, cols, inner, to + j);
  for (; j + 8 <= cols; j += 8) columns_of_row<8, how>(a, step_a, b + j, cols, inner, to + j);
  for (; j < cols; ++j) columns_of_row<1, how>(a, step_a, b + j, cols, inner, to + j);
}

template <Summing how>
void row_narrow(const double* a, std::int64_t step_a, const double* b, std::int64_t cols, std::int64_t inner, double* to) {
  row_body<how>(a, step_a, b, cols, inner, to);
}

#if defined(__x86_64__) && !defined(__AVX2__)
// Compiled twice, and chosen when the program starts. Without FMA: the results are the same.
template <Summing how>
__attribute__((target("avx2"))) void row_wide(const double* a, std::int64_t step_a, const double* b, std::int64_t cols,
                                              std::int64_t inner, double* to) {
  row_body<how>(a, step_a, b, cols, inner, to);
}
const bool kHasWide = __builtin_cpu_supports("avx2") != 0;
template <Summing how>
auto row_of_product() {
  return kHasWide ? row_wide<how> : row_narrow<how>;
}
#else
template <Summing how>
auto row_of_product() {
  return row_narrow<how>;
}
#endif

// Of (up to three) spatial axes: the last one last, and |missing| before them.
template <class Extents>
Spatial right_aligned(const Extents& of_axes, int axes, std::int64_t missing) {
  Spatial aligned{missing, missing, missing};
  for (int i = 0; i < axes; ++i) aligned[static_cast<std::size_t>(3 - axes + i)] = of_axes[static_cast<std::size_t>(i)];
  return aligned;
}

// A line of the results of a convolution, along the last axis.
struct ConvolutionRow {
  Spatial in, size, stride, pad, dilation;
  std::int64_t channels;  // of a group
  const double* image = nullptr;
  const double* kernel = nullptr;
  std::array<std::int64_t, 2> at{};  // on the other axes
};

// |Columns| results from |first| on. With |Checked| some of their windows may leave the image.
template <int Columns, bool Checked, Summing how>
[[gnu::always_inline]] inline void columns_of_convolution(const ConvolutionRow& row, std::int64_t first, double* to) {
  SumsSideBySide<Columns, how> sums;
  const double* factor = row.kernel;
  for (std::int64_t c = 0; c < row.channels; ++c) {
    for (std::int64_t i = 0; i < row.size[0]; ++i) {
      const std::int64_t a = row.at[0] * row.stride[0] - row.pad[0] + i * row.dilation[0];
      for (std::int64_t j = 0; j < row.size[1]; ++j) {
        const std::int64_t b = row.at[1] * row.stride[1] - row.pad[1] + j * row.dilation[1];
        if (a < 0 || a >= row.in[0] || b < 0 || b >= row.in[1]) {
          factor += row.size[2];
          continue;
        }
        const double* const line = row.image + ((c * row.in[0] + a) * row.in[1] + b) * row.in[2];
        for (std::int64_t k = 0; k < row.size[2]; ++k, ++factor) {
          const std::int64_t from = first * row.stride[2] - row.pad[2] + k * row.dilation[2];
          if (Checked && (from < 0 || from >= row.in[2])) continue;
          sums.add([&, f = *factor, step = row.stride[2]](int column) { return f * line[from + column * step]; });
        }
      }
    }
  }
  sums.store(to);
}

template <Summing how>
[[gnu::always_inline]] inline void convolution_row_body(const ConvolutionRow& row, std::int64_t columns, double* to) {
  const auto is_inside = [&](std::int64_t first, std::int64_t last) {
    return first * row.stride[2] >= row.pad[2] &&
           last * row.stride[2] - row.pad[2] + (row.size[2] - 1) * row.dilation[2] < row.in[2];
  };
  for (std::int64_t at = 0; at < columns;) {
    if (at + 16 <= columns && is_inside(at, at + 15)) {
      columns_of_convolution<16, false, how>(row, at, to + at);
      at += 16;
    } else if (at + 4 <= columns && is_inside(at, at + 3)) {
      columns_of_convolution<4, false, how>(row, at, to + at);
      at += 4;
    } else {
      columns_of_convolution<1, true, how>(row, at, to + at);
      ++at;
    }
  }
}

template <Summing how>
void convolution_row_narrow(const ConvolutionRow& row, std::int64_t columns, double* to) {
  convolution_row_body<how>(row, columns, to);
}

#if defined(__x86_64__) && !defined(__AVX2__)
template <Summing how>
__attribute__((target("avx2"))) void convolution_row_wide(const ConvolutionRow& row, std::int64_t columns, double* to) {
  convolution_row_body<how>(row, columns, to);
}
template <Summing how>
auto row_of_convolution() {
  return kHasWide ? convolution_row_wide<how> : convolution_row_narrow<how>;
}
#else
template <Summing how>
auto row_of_convolution() {
  return convolution_row_narrow<how>;
}
#endif

std::vector<double> transposed(const double* b, std::int64_t rows, std::int64_t cols) {
  std::vector<double> out(static_cast<std::size_t>(rows * cols));
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < cols; ++j) out[static_cast<std::size_t>(j * rows + i)] = b[i * cols + j];
  return out;
}

template <class T>
T dot(const T* a, std::int64_t stride_a, const T* b, std::int64_t stride_b, std::int64_t n) {
  Sum<T> sum;
  for (std::int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_integral_v<T>)
      sum.add(static_cast<T>(static_cast<std::uint64_t>(a[i * stride_a]) * static_cast<std::uint64_t>(b[i * stride_b])));
    else
      sum.add(a[i * stride_a] * b[i * stride_b]);
  }
  return sum.value();
}

}  // namespace

HostArray evaluate_matmul(const Node& node, const HostArray& a, const HostArray& b) {
  const MatMulAttr& attr = node.as<MatMulAttr>();
  const int rank = node.shape.rank();
  const std::int64_t rows = node.shape[rank - 2], cols = node.shape[rank - 1];
  const std::int64_t inner = a.shape()[attr.transpose_a ? rank - 2 : rank - 1];
  const std::int64_t row_a = attr.transpose_a ? 1 : inner, step_a = attr.transpose_a ? rows : 1;
  const std::int64_t step_b = attr.transpose_b ? 1 : cols, col_b = attr.transpose_b ? inner : 1;
  HostArray out = HostArray::empty(storage_dtype(node.dtype), node.shape);
  if (out.elements() == 0) return out;
  const std::int64_t batches = out.elements() / (rows * cols);
  with_type(out.dtype(), [&]<class T>(T) {
    T* to = mutable_data<T>(out);
    const std::int64_t rows_at_once = std::max<std::int64_t>(1, (1 << 16) / std::max<std::int64_t>(1, inner * cols));
    for (std::int64_t n = 0; n < batches; ++n, to += rows * cols) {
      const T* pa = data<T>(a) + n * rows * inner;
      const T* pb = data<T>(b) + n * inner * cols;
      if constexpr (std::is_same_v<T, double>) {
        const std::vector<double> transposed_b = attr.transpose_b ? transposed(pb, cols, inner) : std::vector<double>();
        const double* const rows_of_b = attr.transpose_b ? transposed_b.data() : pb;
        const auto row_of =
            summing_for(node.dtype) == Summing::plain ? row_of_product<Summing::plain>() : row_of_product<Summing::compensated>();
        const auto rows_from = [&](std::int64_t first, std::int64_t count) {
          for (std::int64_t i = first; i < first + count; ++i)
            row_of(pa + i * row_a, step_a, rows_of_b, cols, inner, to + i * cols);
        };
        in_chunks(rows, rows_from, rows_at_once);
        check_stop();
      } else {
        for (std::int64_t i = 0; i < rows; ++i, check_stop())
          for (std::int64_t j = 0; j < cols; ++j) to[i * cols + j] = dot(pa + i * row_a, step_a, pb + j * col_b, step_b, inner);
      }
    }
  });
  return out;
}

HostArray evaluate_conv(const Node& node, const HostArray& x, const HostArray& weight) {
  const ConvAttr& attr = node.as<ConvAttr>();
  const int axes = node.shape.rank() - 2;
  const Spatial places = right_aligned(spatial_extents(node.shape), axes, 1);
  ConvolutionRow row{.in = right_aligned(spatial_extents(x.shape()), axes, 1),
                     .size = right_aligned(spatial_extents(weight.shape()), axes, 1),
                     .stride = right_aligned(attr.stride, axes, 1),
                     .pad = right_aligned(attr.pad_low, axes, 0),
                     .dilation = right_aligned(attr.dilation, axes, 1),
                     .channels = weight.shape()[1]};
  const std::int64_t channels = x.shape()[1], outs = node.shape[1], lines = places[0] * places[1];
  HostArray out = HostArray::empty(DType::f64, node.shape);
  double* const to = mutable_data<double>(out);
  const std::int64_t each = std::max<std::int64_t>(1, places[2] * row.channels * product(row.size));
  const auto row_of = summing_for(node.dtype) == Summing::plain ? row_of_convolution<Summing::plain>()
                                                                : row_of_convolution<Summing::compensated>();
  const auto lines_from = [&](std::int64_t first, std::int64_t count) {
    ConvolutionRow mine = row;
    for (std::int64_t line = first; line < first + count; ++line) {
      const std::int64_t image = line / lines, n = image / outs, o = image % outs, group = o / (outs / attr.groups);
      mine.image = data<double>(x) + (n * channels + group * row.channels) * product(row.in);
      mine.kernel = data<double>(weight) + o * row.channels * product(row.size);
      mine.at = {line % lines / places[1], line % places[1]};
      row_of(mine, places[2], to + line * places[2]);
      check_stop();
    }
  };
  if (out.elements() > 0) in_chunks(node.shape[0] * outs * lines, lines_from, std::max<std::int64_t>(1, (1 << 16) / each));
  return out;
}

HostArray evaluate_window(const Node& node, const HostArray& x) {
  const WindowAttr& attr = node.as<WindowAttr>();
  const Spatial in = spatial_extents(x.shape()), places = spatial_extents(node.shape);
  HostArray out = HostArray::empty(x.dtype(), node.shape);
  const std::int64_t images = node.shape[0] * node.shape[1];
  with_type(x.dtype(), [&]<class T>(T) {
    T* to = mutable_data<T>(out);
    for (std::int64_t n = 0; n < images; ++n) {
      const T* image = data<T>(x) + n * product(in);
      for_each_place(places, [&](const Spatial& at) {
        T best = std::is_integral_v<T> ? std::numeric_limits<T>::lowest() : -std::numeric_limits<T>::infinity();
        Sum<T> sum;
        for_each_in_window(attr, attr.size, in, at, [&](std::int64_t, std::int64_t i) {
          sum.add(image[i]);
          if (best == best && !(image[i] <= best)) best = image[i];  // a NaN is taken, and stays
        });
        *to++ = attr.max ? best : sum.value();
      });
    }
  });
  return out;
}

}  // namespace tenon::reference

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "base/stop_scope.h"
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

// |Columns| sums of a row of a product side by side: the same sums in the same order as one after the other, but independent of
// each other, so that the compiler uses vector instructions.
template <int Columns>
[[gnu::always_inline]] inline void columns_of_row(const double* a, std::int64_t step_a, const double* b, std::int64_t cols,
                                                  std::int64_t inner, double* to) {
  double sums[Columns] = {}, lost[Columns] = {};
  for (std::int64_t k = 0; k < inner; ++k) {
    const double factor = a[k * step_a];
    const double* const row = b + k * cols;
    for (int c = 0; c < Columns; ++c) {
      const double x = factor * row[c], sum = sums[c], next = sum + x;
      const double first = (sum - next) + x, second = (x - next) + sum;
      lost[c] += std::fabs(sum) >= std::fabs(x) ? first : second;
      sums[c] = next;
    }
  }
  for (int c = 0; c < Columns; ++c) to[c] = std::isfinite(sums[c]) ? sums[c] + lost[c] : sums[c];
}

[[gnu::always_inline]] inline void row_body(const double* a, std::int64_t step_a, const double* b, std::int64_t cols,
                                            std::int64_t inner, double* to) {
  std::int64_t j = 0;
  for (; j + 16 <= cols; j += 16) columns_of_row<16>(a, step_a, b + j, cols, inner, to + j);
  for (; j + 8 <= cols; j += 8) columns_of_row<8>(a, step_a, b + j, cols, inner, to + j);
  for (; j < cols; ++j) columns_of_row<1>(a, step_a, b + j, cols, inner, to + j);
}

void row_narrow(const double* a, std::int64_t step_a, const double* b, std::int64_t cols, std::int64_t inner, double* to) {
  row_body(a, step_a, b, cols, inner, to);
}

#if defined(__x86_64__) && !defined(__AVX2__)
// Compiled twice, and chosen when the program starts. Without FMA: the results are the same.
__attribute__((target("avx2"))) void row_wide(const double* a, std::int64_t step_a, const double* b, std::int64_t cols,
                                              std::int64_t inner, double* to) {
  row_body(a, step_a, b, cols, inner, to);
}
const auto row_of_product = __builtin_cpu_supports("avx2") != 0 ? row_wide : row_narrow;
#else
constexpr auto row_of_product = row_narrow;
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
        const std::vector<double> turned = attr.transpose_b ? transposed(pb, cols, inner) : std::vector<double>();
        const double* const rows_of_b = attr.transpose_b ? turned.data() : pb;
        const auto rows_from = [&](std::int64_t first, std::int64_t count) {
          for (std::int64_t i = first; i < first + count; ++i)
            row_of_product(pa + i * row_a, step_a, rows_of_b, cols, inner, to + i * cols);
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
  const Spatial in = spatial_extents(x.shape()), size = spatial_extents(weight.shape()), places = spatial_extents(node.shape);
  const std::int64_t channels = x.shape()[1], outs = node.shape[1], per_group = weight.shape()[1];
  HostArray out = HostArray::empty(DType::f64, node.shape);
  double* to = mutable_data<double>(out);
  for (std::int64_t n = 0; n < node.shape[0]; ++n)
    for (std::int64_t o = 0; o < outs; ++o) {
      const std::int64_t group = o / (outs / attr.groups);
      for_each_place(places, [&](const Spatial& at) {
        CompensatedSum sum;
        for (std::int64_t c = 0; c < per_group; ++c) {
          const double* image = data<double>(x) + (n * channels + group * per_group + c) * product(in);
          const double* kernel = data<double>(weight) + (o * per_group + c) * product(size);
          for_each_in_window(attr, size, in, at, [&](std::int64_t k, std::int64_t i) { sum.add(kernel[k] * image[i]); });
        }
        *to++ = sum.value();
      });
    }
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

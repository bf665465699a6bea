#include <algorithm>
#include <cstdint>
#include <cstring>

#include "backends/cpu/primitives/matmul/gemm.h"

#if defined(__x86_64__)
#define TENON_AVX2 [[gnu::target("avx2,fma")]]
#endif

namespace tenon::cpu {
namespace {

constexpr std::int64_t kRun = 2048;      // elements of x at a time: they stay in the L1 cache
constexpr std::int64_t kRows = 64;       // rows whose sums are kept at the same time
constexpr std::int64_t kShortRun = 128;  // terms added in T before they go to double
constexpr std::int64_t kColumns = 256;   // results at a time if the matrix is stored by columns

// 32 bytes of T, and as many doubles.
template <class T>
struct Vectors;
template <>
struct Vectors<float> {
  typedef float Lanes __attribute__((vector_size(32)));
  typedef double Wide __attribute__((vector_size(64)));
};
template <>
struct Vectors<double> {
  typedef double Lanes __attribute__((vector_size(32)));
  typedef double Wide __attribute__((vector_size(32)));
};

// The same two loops are compiled twice: a macro, because an attribute cannot be a template argument, and because a shared inline
// function compiled for AVX2 could be the one the linker keeps for everybody.
#define TENON_GEMV_LOOPS(suffix, attribute)                                                                                   \
  template <class T>                                                                                                          \
  attribute double dot_##suffix(const T* a, const T* b, std::int64_t n) {                                                     \
    constexpr int kLanes = 32 / sizeof(T);                                                                                    \
    using Lanes = typename Vectors<T>::Lanes;                                                                                 \
    using Wide = typename Vectors<T>::Wide;                                                                                   \
    Lanes sums[4] = {};                                                                                                       \
    std::int64_t i = 0;                                                                                                       \
    for (; i + 4 * kLanes <= n; i += 4 * kLanes) _Pragma("GCC unroll 4") for (int v = 0; v < 4; ++v) {                        \
        Lanes x, y;                                                                                                           \
        std::memcpy(&x, a + i + v * kLanes, sizeof x);                                                                        \
        std::memcpy(&y, b + i + v * kLanes, sizeof y);                                                                        \
        sums[v] += x * y;                                                                                                     \
      }                                                                                                                       \
    const Wide all = (__builtin_convertvector(sums[0], Wide) + __builtin_convertvector(sums[1], Wide)) +                      \
                     (__builtin_convertvector(sums[2], Wide) + __builtin_convertvector(sums[3], Wide));                       \
    double sum = 0;                                                                                                           \
    _Pragma("GCC unroll 8") for (int l = 0; l < kLanes; l += 2) sum += all[l] + all[l + 1];                                   \
    for (; i < n; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);                                          \
    return sum;                                                                                                               \
  }                                                                                                                           \
  template <class T>                                                                                                          \
  attribute void add_rows_##suffix(const T* rows, std::int64_t stride, const T* x, std::int64_t x_stride, std::int64_t count, \
                                   std::int64_t n, double* sums) {                                                            \
    T run[kColumns] = {};                                                                                                     \
    std::int64_t p = 0;                                                                                                       \
    for (; p + 4 <= count; p += 4, rows += 4 * stride) {                                                                      \
      const T x0 = x[p * x_stride], x1 = x[(p + 1) * x_stride], x2 = x[(p + 2) * x_stride], x3 = x[(p + 3) * x_stride];       \
      const T *r0 = rows, *r1 = rows + stride, *r2 = rows + 2 * stride, *r3 = rows + 3 * stride;                              \
      for (std::int64_t j = 0; j < n; ++j) run[j] += (x0 * r0[j] + x1 * r1[j]) + (x2 * r2[j] + x3 * r3[j]);                   \
    }                                                                                                                         \
    for (; p < count; ++p, rows += stride) {                                                                                  \
      const T x0 = x[p * x_stride];                                                                                           \
      for (std::int64_t j = 0; j < n; ++j) run[j] += x0 * rows[j];                                                            \
    }                                                                                                                         \
    for (std::int64_t j = 0; j < n; ++j) sums[j] += static_cast<double>(run[j]);                                              \
  }

TENON_GEMV_LOOPS(base, )
#if defined(__x86_64__)
TENON_GEMV_LOOPS(avx2, TENON_AVX2)
#endif

template <class T>
struct Loops {
  double (*dot)(const T* a, const T* b, std::int64_t n);
  void (*add_rows)(const T* rows, std::int64_t stride, const T* x, std::int64_t x_stride, std::int64_t count, std::int64_t n,
                   double* sums);
};

template <class T>
const Loops<T>& loops() {
#if defined(__x86_64__)
  static const Loops<T> best = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")
                                   ? Loops<T>{dot_avx2<T>, add_rows_avx2<T>}
                                   : Loops<T>{dot_base<T>, add_rows_base<T>};
#else
  static const Loops<T> best{dot_base<T>, add_rows_base<T>};
#endif
  return best;
}

// Rows of the matrix are contiguous.
template <class T>
void by_dots(const Matrix<T>& a, const T* x, std::int64_t x_stride, T* y) {
  const auto dot = loops<T>().dot;
  T gathered[kRun];
  for (std::int64_t i = 0; i < a.rows; i += kRows) {
    const std::int64_t rows = std::min(kRows, a.rows - i);
    double sums[kRows] = {};
    for (std::int64_t p = 0; p < a.cols; p += kRun) {
      const std::int64_t n = std::min(kRun, a.cols - p);
      const T* part = x + p * x_stride;
      if (x_stride != 1) {
        for (std::int64_t q = 0; q < n; ++q) gathered[q] = part[q * x_stride];
        part = gathered;
      }
      for (std::int64_t r = 0; r < rows; ++r) sums[r] += dot(a.data + (i + r) * a.row_stride + p, part, n);
    }
    for (std::int64_t r = 0; r < rows; ++r) y[i + r] = static_cast<T>(sums[r]);
  }
}

// Columns of the matrix are contiguous.
template <class T>
void by_columns(const Matrix<T>& a, const T* x, std::int64_t x_stride, T* y) {
  const auto add_rows = loops<T>().add_rows;
  for (std::int64_t i = 0; i < a.rows; i += kColumns) {
    const std::int64_t n = std::min(kColumns, a.rows - i);
    double sums[kColumns] = {};
    for (std::int64_t p = 0; p < a.cols; p += kShortRun)
      add_rows(a.data + i + p * a.col_stride, a.col_stride, x + p * x_stride, x_stride, std::min(kShortRun, a.cols - p), n, sums);
    for (std::int64_t j = 0; j < n; ++j) y[i + j] = static_cast<T>(sums[j]);
  }
}

template <class T>
void product(const Matrix<T>& a, const T* x, std::int64_t x_stride, T* y) {
  if (a.col_stride == 1 || a.cols == 1) {
    by_dots(a, x, x_stride, y);
  } else {
    by_columns(a, x, x_stride, y);
  }
}

}  // namespace

void gemv(const Matrix<float>& a, const float* x, std::int64_t x_stride, float* y) { product(a, x, x_stride, y); }
void gemv(const Matrix<double>& a, const double* x, std::int64_t x_stride, double* y) { product(a, x, x_stride, y); }

}  // namespace tenon::cpu

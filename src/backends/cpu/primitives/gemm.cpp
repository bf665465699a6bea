#include "backends/cpu/primitives/gemm.h"

#include <cblas.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "backends/cpu/primitives/gemm_blocked.h"

// The switches of the two libraries that may be linked; the one that is not there is null.
extern "C" {
[[gnu::weak]] void bli_thread_set_num_threads(std::int64_t threads);
[[gnu::weak]] void openblas_set_num_threads(int threads);
}

#if defined(__x86_64__)
#define TENON_AVX2 [[gnu::target("avx2,fma")]]
#else
#define TENON_AVX2
#endif

namespace tenon::cpu {
namespace {

// The library's own threads would only fight with our pool.
void use_one_blas_thread() {
  [[maybe_unused]] static const bool once = [] {
    if (bli_thread_set_num_threads != nullptr) bli_thread_set_num_threads(1);
    if (openblas_set_num_threads != nullptr) openblas_set_num_threads(1);
    return true;
  }();
}

// Up to this many multiplications, packing the operands costs more than it brings.
constexpr std::int64_t kSmallProduct = 192 * 192 * 192;
constexpr std::int64_t kSmallTurned = 32 * 32 * 32;  // the same where b is stored by columns
// At most a block of the packed product, which then adds the same terms in the same order.
constexpr std::int64_t kSmallInner = 192;
constexpr std::int64_t kTinyProduct = 64;

template <class T>
void plain_product(const Matrix<T>& a, const Matrix<T>& b, T* c, std::int64_t ldc) {
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t j = 0; j < b.cols; ++j) {
      T sum{};
      for (std::int64_t p = 0; p < a.cols; ++p)
        sum += a.data[i * a.row_stride + p * a.col_stride] * b.data[p * b.row_stride + j * b.col_stride];
      c[i * ldc + j] = sum;
    }
}

template <class T>
struct Wide {
  typedef T Vector __attribute__((vector_size(32)));
  static constexpr std::int64_t kLanes = 32 / sizeof(T);
  static constexpr std::int64_t kCols = 2 * kLanes;  // of a tile: two vectors
};

// Rows x (two vectors) of c in registers. |panel| holds the columns of b side by side, |step| apart from row to row.
template <class T, int Rows>
TENON_AVX2 void tile(const Matrix<T>& a, const T* panel, std::int64_t step, T* c, std::int64_t ldc, std::int64_t cols) {
  using Vector = typename Wide<T>::Vector;
  constexpr std::int64_t kLanes = Wide<T>::kLanes;
  Vector sum[Rows][2] = {};
  const T* column = a.data;
  for (std::int64_t p = 0; p < a.cols; ++p, column += a.col_stride, panel += step) {
    Vector left, right;
    std::memcpy(&left, panel, sizeof left);
    std::memcpy(&right, panel + kLanes, sizeof right);
    for (int r = 0; r < Rows; ++r) {
      const T factor = column[r * a.row_stride];
      sum[r][0] += left * factor;
      sum[r][1] += right * factor;
    }
  }
  for (int r = 0; r < Rows; ++r) {
    if (cols == Wide<T>::kCols) {
      std::memcpy(c + r * ldc, sum[r], sizeof sum[r]);
    } else {
      std::memcpy(c + r * ldc, sum[r], static_cast<std::size_t>(cols) * sizeof(T));
    }
  }
}

template <class T>
TENON_AVX2 void small_product(const Matrix<T>& a, const Matrix<T>& b, T* c, std::int64_t ldc) {
  constexpr std::int64_t kCols = Wide<T>::kCols;
  alignas(64) T packed[kSmallInner * kCols];
  for (std::int64_t j = 0; j < b.cols; j += kCols) {
    const std::int64_t cols = std::min(kCols, b.cols - j);
    const T* panel = b.data + j * b.col_stride;
    std::int64_t step = b.row_stride;
    if (b.col_stride != 1 || cols < kCols) {
      for (std::int64_t p = 0; p < b.rows; ++p) {
        T* to = packed + p * kCols;
        for (std::int64_t q = 0; q < cols; ++q) to[q] = panel[p * b.row_stride + q * b.col_stride];
        for (std::int64_t q = cols; q < kCols; ++q) to[q] = T{};
      }
      panel = packed;
      step = kCols;
    }
    std::int64_t i = 0;
    for (; i + 6 <= a.rows; i += 6) tile<T, 6>(a.band(i, i + 6), panel, step, c + i * ldc + j, ldc, cols);
    const Matrix<T> rest = a.band(i, a.rows);
    T* to = c + i * ldc + j;
    switch (rest.rows) {
      case 5: tile<T, 5>(rest, panel, step, to, ldc, cols); break;
      case 4: tile<T, 4>(rest, panel, step, to, ldc, cols); break;
      case 3: tile<T, 3>(rest, panel, step, to, ldc, cols); break;
      case 2: tile<T, 2>(rest, panel, step, to, ldc, cols); break;
      case 1: tile<T, 1>(rest, panel, step, to, ldc, cols); break;
      default: break;
    }
  }
}

// How the BLAS is told about a matrix.
struct Layout {
  bool transposed = false;
  int leading = 1;
};

Layout layout_of(std::int64_t rows, std::int64_t cols, std::int64_t row_stride, std::int64_t col_stride) {
  if (cols == 1 || col_stride == 1) return {false, static_cast<int>(rows == 1 ? std::max<std::int64_t>(1, cols) : row_stride)};
  return {true, static_cast<int>(col_stride)};
}

template <class T>
void blas_product(const Matrix<T>& a, const Matrix<T>& b, T* c, std::int64_t ldc) {
  use_one_blas_thread();
  const Layout la = layout_of(a.rows, a.cols, a.row_stride, a.col_stride);
  const Layout lb = layout_of(b.rows, b.cols, b.row_stride, b.col_stride);
  const auto ta = la.transposed ? CblasTrans : CblasNoTrans, tb = lb.transposed ? CblasTrans : CblasNoTrans;
  const int m = static_cast<int>(a.rows), n = static_cast<int>(b.cols), k = static_cast<int>(a.cols), to = static_cast<int>(ldc);
  if constexpr (sizeof(T) == 4) {
    cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, 1, a.data, la.leading, b.data, lb.leading, 0, c, to);
  } else {
    cblas_dgemm(CblasRowMajor, ta, tb, m, n, k, 1, a.data, la.leading, b.data, lb.leading, 0, c, to);
  }
}

template <class T>
void product(const Matrix<T>& a, const Matrix<T>& b, T* c, std::int64_t ldc) {
  const std::int64_t work = a.rows * b.cols * a.cols;
  if (work <= kTinyProduct) return plain_product(a, b, c, ldc);
  if (!has_blocked_gemm()) return blas_product(a, b, c, ldc);
  const std::int64_t limit = b.col_stride == 1 ? kSmallProduct : kSmallTurned;
  if (work <= limit && a.cols <= kSmallInner) return small_product(a, b, c, ldc);
  blocked_gemm(a, b, c, ldc);
}

}  // namespace

bool is_blas_matrix(std::int64_t rows, std::int64_t cols, std::int64_t row_stride, std::int64_t col_stride) {
  // Libraries with 32-bit sizes are the rule.
  constexpr std::int64_t kLimit = std::numeric_limits<int>::max();
  if (rows > kLimit || cols > kLimit) return false;
  const auto lines_apart = [&](std::int64_t lines, std::int64_t stride, std::int64_t length) {
    return lines <= 1 || (stride >= std::max<std::int64_t>(1, length) && stride <= kLimit);
  };
  const bool by_rows = (cols <= 1 || col_stride == 1) && lines_apart(rows, row_stride, cols);
  const bool by_cols = (rows <= 1 || row_stride == 1) && lines_apart(cols, col_stride, rows);
  return by_rows || by_cols;
}

void gemm(const Matrix<float>& a, const Matrix<float>& b, float* c, std::int64_t ldc) { product(a, b, c, ldc); }
void gemm(const Matrix<double>& a, const Matrix<double>& b, double* c, std::int64_t ldc) { product(a, b, c, ldc); }

}  // namespace tenon::cpu

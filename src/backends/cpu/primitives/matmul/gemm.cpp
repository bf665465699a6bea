#include "backends/cpu/primitives/matmul/gemm.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/primitives/matmul/gemm_blocked.h"
#include "base/threads/stop_scope.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define TENON_AVX2 [[gnu::target("avx2,fma")]]
#else
#define TENON_AVX2
#endif

namespace tenon::cpu {
namespace {

// Up to this many multiplications, packing the operands costs more than it gains.
constexpr std::int64_t kSmallProduct = 192 * 192 * 192;
constexpr std::int64_t kSmallTransposed = 32 * 32 * 32;  // the same if b is stored by columns
// At most a block of the packed product, which then adds the same terms in the same order.
constexpr std::int64_t kSmallInner = 192;
constexpr std::int64_t kTinyProduct = 64;

// For CPUs without AVX2. The inner loop runs along rows of b and c, which compilers vectorise. Every element of c is a sum of
// sums of kSmallInner terms, in their order: long sums stay accurate, and a product that is cut into parts gives the same bits.
template <class T>
void plain_product(const Matrix<T>& a, const Matrix<T>& b, T* c, std::int64_t ldc) {
  constexpr std::int64_t kCols = 256;
  T sums[kCols];
  for (std::int64_t i = 0; i < a.rows; ++i) {
    if (i % 16 == 15) check_stop();
    for (std::int64_t j = 0; j < b.cols; j += kCols) {
      const std::int64_t cols = std::min(kCols, b.cols - j);
      T* const to = c + i * ldc + j;
      std::fill_n(to, cols, T{});
      for (std::int64_t begin = 0; begin < a.cols; begin += kSmallInner) {
        std::fill_n(sums, cols, T{});
        for (std::int64_t p = begin; p < std::min(begin + kSmallInner, a.cols); ++p) {
          const T factor = a.data[i * a.row_stride + p * a.col_stride];
          const T* const from = b.data + p * b.row_stride + j * b.col_stride;
          for (std::int64_t q = 0; q < cols; ++q) sums[q] += factor * from[q * b.col_stride];
        }
        for (std::int64_t q = 0; q < cols; ++q) to[q] += sums[q];
      }
    }
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

// At most 32 columns: one or two vectors a row, without packing where b is stored by rows.
constexpr std::int64_t kNarrow = 32;

bool narrow_product(const Matrix<double>&, const Matrix<double>&, double*, std::int64_t) { return false; }

#if defined(__x86_64__)
template <int Rows, int Vectors>
[[gnu::target("avx512f")]] void narrow_rows(const Matrix<float>& a, const float* b, std::int64_t step, __mmask16 last, float* c,
                                            std::int64_t ldc) {
  __m512 sums[Rows][Vectors];
  _Pragma("GCC unroll 8") for (int r = 0; r < Rows; ++r) for (int v = 0; v < Vectors; ++v) sums[r][v] = _mm512_setzero_ps();
  const float* column = a.data;
  for (std::int64_t p = 0; p < a.cols; ++p, b += step, column += a.col_stride) {
    __m512 line[Vectors];
    for (int v = 0; v < Vectors; ++v)
      line[v] = v + 1 < Vectors ? _mm512_loadu_ps(b + 16 * v) : _mm512_maskz_loadu_ps(last, b + 16 * v);
    _Pragma("GCC unroll 8") for (int r = 0; r < Rows; ++r) {
      const __m512 factor = _mm512_set1_ps(column[r * a.row_stride]);
      for (int v = 0; v < Vectors; ++v) sums[r][v] = _mm512_fmadd_ps(factor, line[v], sums[r][v]);
    }
  }
  _Pragma("GCC unroll 8") for (int r = 0; r < Rows; ++r) for (int v = 0; v < Vectors; ++v)
      _mm512_mask_storeu_ps(c + r * ldc + 16 * v, v + 1 < Vectors ? static_cast<__mmask16>(0xffff) : last, sums[r][v]);
}

template <int Vectors>
[[gnu::target("avx512f")]] void narrow_blocks(const Matrix<float>& a, const float* b, std::int64_t step, __mmask16 last, float* c,
                                              std::int64_t ldc) {
  std::int64_t i = 0;
  for (; i + 8 <= a.rows; i += 8) narrow_rows<8, Vectors>(a.band(i, i + 8), b, step, last, c + i * ldc, ldc);
  for (; i + 4 <= a.rows; i += 4) narrow_rows<4, Vectors>(a.band(i, i + 4), b, step, last, c + i * ldc, ldc);
  for (; i + 2 <= a.rows; i += 2) narrow_rows<2, Vectors>(a.band(i, i + 2), b, step, last, c + i * ldc, ldc);
  if (i < a.rows) narrow_rows<1, Vectors>(a.band(i, i + 1), b, step, last, c + i * ldc, ldc);
}

[[gnu::target("avx512f")]] bool narrow_product(const Matrix<float>& a, const Matrix<float>& b, float* c, std::int64_t ldc) {
  static const bool has = __builtin_cpu_supports("avx512f");
  if (!has) return false;
  const float* from = b.data;
  std::int64_t step = b.row_stride;
  float packed[kSmallInner * kNarrow];
  if (b.col_stride != 1) {
    for (std::int64_t q = 0; q < b.cols; ++q)
      for (std::int64_t p = 0; p < b.rows; ++p) packed[p * kNarrow + q] = b.data[q * b.col_stride + p * b.row_stride];
    from = packed;
    step = kNarrow;
  }
  const auto last = static_cast<__mmask16>((1u << (b.cols > 16 ? b.cols - 16 : b.cols)) - 1);
  (b.cols > 16 ? narrow_blocks<2> : narrow_blocks<1>)(a, from, step, last, c, ldc);
  return true;
}
#else
bool narrow_product(const Matrix<float>&, const Matrix<float>&, float*, std::int64_t) { return false; }
#endif

template <class T>
void product(const Matrix<T>& a, const Matrix<T>& b, T* c, std::int64_t ldc) {
  if (b.cols <= kNarrow && a.cols <= kSmallInner && narrow_product(a, b, c, ldc)) return;
  const std::int64_t work = a.rows * b.cols * a.cols;
  if (work <= kTinyProduct || !has_blocked_gemm()) return plain_product(a, b, c, ldc);
  const std::int64_t limit = b.col_stride == 1 ? kSmallProduct : kSmallTransposed;
  if (work <= limit && a.cols <= kSmallInner) return small_product(a, b, c, ldc);
  blocked_gemm(a, b, c, ldc);
}

}  // namespace

bool is_blas_matrix(std::int64_t rows, std::int64_t cols, std::int64_t row_stride, std::int64_t col_stride) {
  const auto lines_apart = [&](std::int64_t lines, std::int64_t stride, std::int64_t length) {
    return lines <= 1 || stride >= std::max<std::int64_t>(1, length);
  };
  const bool by_rows = (cols <= 1 || col_stride == 1) && lines_apart(rows, row_stride, cols);
  const bool by_cols = (rows <= 1 || row_stride == 1) && lines_apart(cols, col_stride, rows);
  return by_rows || by_cols;
}

void gemm(const Matrix<float>& a, const Matrix<float>& b, float* c, std::int64_t ldc) { product(a, b, c, ldc); }
void gemm(const Matrix<double>& a, const Matrix<double>& b, double* c, std::int64_t ldc) { product(a, b, c, ldc); }

}  // namespace tenon::cpu

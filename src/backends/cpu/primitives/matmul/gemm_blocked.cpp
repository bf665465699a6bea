#include "backends/cpu/primitives/matmul/gemm_blocked.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/primitives/matmul/pack_panel.h"
#include "backends/cpu/primitives/matmul/packing_memory.h"
#include "base/threads/stop_scope.h"

#if defined(__x86_64__)
namespace tenon::cpu {
namespace {

// Adds (or, for the first block of the inner axis, writes) one tile: rows x cols of c. Panels hold |depth| steps, each of them
// kRows elements of a or kCols elements of b.
template <class T>
using Micro = void (*)(const T* a, const T* b, std::int64_t depth, T* c, std::int64_t ldc, std::int64_t rows, std::int64_t cols,
                       bool add);

// Compiled for each instruction set: a macro, because an attribute cannot be a template argument. The sums of a tile stay in
// registers: rows x 2 vectors (1 at the right edge), and three more for b and the factor.
#define TENON_MICRO_KERNEL(Name, attribute, bytes, panel_rows)                                                          \
  struct Name {                                                                                                         \
    template <class T>                                                                                                  \
    struct Wide {                                                                                                       \
      typedef T Vector __attribute__((vector_size(bytes)));                                                             \
    };                                                                                                                  \
    static constexpr int kRows = panel_rows;                                                                            \
    template <class T>                                                                                                  \
    static constexpr int kCols = static_cast<int>(2 * bytes / sizeof(T));                                               \
                                                                                                                        \
    template <class T, int Rows, int Vectors>                                                                           \
    attribute static void tile(const T* a, const T* b, std::int64_t depth, T* c, std::int64_t ldc, std::int64_t rows,   \
                               std::int64_t cols, bool add) {                                                           \
      using Vector = typename Wide<T>::Vector;                                                                          \
      constexpr std::int64_t kLanes = bytes / sizeof(T);                                                                \
      for (std::int64_t r = 0; r < rows; ++r) {                                                                         \
        __builtin_prefetch(c + r * ldc, 1);                                                                             \
        __builtin_prefetch(c + r * ldc + cols - 1, 1);                                                                  \
      }                                                                                                                 \
      Vector sum[Rows][Vectors] = {};                                                                                   \
      for (std::int64_t p = 0; p < depth; ++p, a += kRows, b += 2 * kLanes) {                                           \
        Vector left_, right_;                                                                                           \
        std::memcpy(&left_, b, sizeof left_);                                                                           \
        if (Vectors > 1) std::memcpy(&right_, b + kLanes, sizeof right_);                                               \
        _Pragma("GCC unroll 16") for (int r = 0; r < Rows; ++r) {                                                       \
          sum[r][0] += left_ * a[r];                                                                                    \
          if constexpr (Vectors > 1) sum[r][1] += right_ * a[r];                                                        \
        }                                                                                                               \
      }                                                                                                                 \
      if (cols == Vectors * kLanes && rows == Rows) {                                                                   \
        _Pragma("GCC unroll 16") for (int r = 0; r < Rows; ++r, c += ldc)                                               \
            _Pragma("GCC unroll 2") for (int v = 0; v < Vectors; ++v) {                                                 \
          if (add) {                                                                                                    \
            Vector before;                                                                                              \
            std::memcpy(&before, c + v * kLanes, sizeof before);                                                        \
            sum[r][v] += before;                                                                                        \
          }                                                                                                             \
          std::memcpy(c + v * kLanes, &sum[r][v], sizeof(Vector));                                                      \
        }                                                                                                               \
        return;                                                                                                         \
      }                                                                                                                 \
      T edge[Rows][Vectors * kLanes];                                                                                   \
      _Pragma("GCC unroll 16") for (int r = 0; r < Rows; ++r) _Pragma("GCC unroll 2") for (int v = 0; v < Vectors; ++v) \
          std::memcpy(&edge[r][v * kLanes], &sum[r][v], sizeof(Vector));                                                \
      for (std::int64_t r = 0; r < rows; ++r, c += ldc)                                                                 \
        for (std::int64_t j = 0; j < cols; ++j) c[j] = add ? c[j] + edge[r][j] : edge[r][j];                            \
    }                                                                                                                   \
    template <class T, int Vectors>                                                                                     \
    static Micro<T> for_rows(std::int64_t rows) {                                                                       \
      if (rows > 8) return tile<T, panel_rows, Vectors>;                                                                \
      if (rows > 4) return tile<T, std::min(panel_rows, 8), Vectors>;                                                   \
      return rows > 2 ? tile<T, 4, Vectors> : tile<T, 2, Vectors>;                                                      \
    }                                                                                                                   \
    template <class T>                                                                                                  \
    static Micro<T> best(std::int64_t rows, std::int64_t cols) {                                                        \
      return cols > kCols<T> / 2 ? for_rows<T, 2>(rows) : for_rows<T, 1>(rows);                                         \
    }                                                                                                                   \
  };

TENON_MICRO_KERNEL(Avx2, [[gnu::target("avx2,fma")]], 32, 6)
TENON_MICRO_KERNEL(Avx512, [[gnu::target("avx512f,fma")]], 64, 14)

// Block sizes: a panel of a (kRows x kDepth) stays in the L1 cache, a block of b (kDepth x kBlockCols) in the L2 cache.
template <class T>
constexpr std::int64_t kDepth = sizeof(T) == 4 ? 384 : 192;
constexpr std::int64_t kBlockCols = 320;
constexpr std::int64_t kBlockPanels = 144;  // of a, packed at a time

// |lines| lines as consecutive panels of |Width|.
template <int Width, class T>
void pack(const T* from, std::int64_t line_stride, std::int64_t step_stride, std::int64_t lines, std::int64_t depth, T* to) {
  if (line_stride != 1) {
    for (std::int64_t line = 0; line < lines; line += Width)
      pack_panel<Width>(from + line * line_stride, line_stride, step_stride, std::min<std::int64_t>(Width, lines - line), depth,
                        to + line * depth);
    return;
  }
  // Step by step across all panels: the source is read along its lines, a page at a time.
  const std::int64_t full = lines / Width * Width;
  for (std::int64_t p = 0; p < depth; ++p, from += step_stride) {
    for (std::int64_t line = 0; line < full; line += Width)
      std::memcpy(to + line * depth + p * Width, from + line, Width * sizeof(T));
    if (full == lines) continue;
    T* rest = to + full * depth + p * Width;
    for (std::int64_t l = 0; l < Width; ++l) rest[l] = l < lines - full ? from[full + l] : T{};
  }
}

template <class Isa, class T>
void product(const Matrix<T>& a, const Matrix<T>& b, T* c, std::int64_t ldc) {
  constexpr int kRows = Isa::kRows, kCols = Isa::template kCols<T>;
  PackingMemory<> memory_a, memory_b;
  const std::int64_t depth_limit = std::min(kDepth<T>, a.cols);
  const std::int64_t panels = (a.rows + kRows - 1) / kRows, block_panels = std::min(panels, kBlockPanels);
  const std::int64_t block_cols = std::min(kBlockCols, (b.cols + kCols - 1) / kCols * kCols);
  T* packed_a = memory_a.get<T>(block_panels * kRows * depth_limit);
  T* packed_b = memory_b.get<T>(block_cols * depth_limit);

  for (std::int64_t p = 0; p < a.cols; p += depth_limit) {
    const std::int64_t depth = std::min(depth_limit, a.cols - p);
    for (std::int64_t first = 0; first < panels; first += block_panels) {
      const std::int64_t last = std::min(panels, first + block_panels);
      const std::int64_t row = first * kRows;
      pack<kRows>(a.data + row * a.row_stride + p * a.col_stride, a.row_stride, a.col_stride,
                  std::min(last * kRows, a.rows) - row, depth, packed_a);
      for (std::int64_t j = 0; j < b.cols; j += block_cols) {
        const std::int64_t cols = std::min(block_cols, b.cols - j);
        if (j > 0) check_stop();
        pack<kCols>(b.data + j * b.col_stride + p * b.row_stride, b.col_stride, b.row_stride, cols, depth, packed_b);
        for (std::int64_t q = first; q < last; ++q) {
          const std::int64_t rows = std::min<std::int64_t>(kRows, a.rows - q * kRows);
          for (std::int64_t n = 0; n < cols; n += kCols) {
            const std::int64_t width = std::min<std::int64_t>(kCols, cols - n);
            Isa::template best<T>(rows, width)(packed_a + (q - first) * kRows * depth, packed_b + n * depth, depth,
                                               c + q * kRows * ldc + j + n, ldc, rows, width, p > 0);
          }
        }
      }
    }
  }
}

template <class T>
void dispatch(const Matrix<T>& a, const Matrix<T>& b, T* c, std::int64_t ldc) {
  static const bool wide = __builtin_cpu_supports("avx512f");
  if (wide) return product<Avx512>(a, b, c, ldc);
  product<Avx2>(a, b, c, ldc);
}

}  // namespace

bool has_blocked_gemm() {
  static const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return has;
}

void blocked_gemm(const Matrix<float>& a, const Matrix<float>& b, float* c, std::int64_t ldc) { dispatch(a, b, c, ldc); }
void blocked_gemm(const Matrix<double>& a, const Matrix<double>& b, double* c, std::int64_t ldc) { dispatch(a, b, c, ldc); }

}  // namespace tenon::cpu
#else

namespace tenon::cpu {

bool has_blocked_gemm() { return false; }
void blocked_gemm(const Matrix<float>&, const Matrix<float>&, float*, std::int64_t) {}
void blocked_gemm(const Matrix<double>&, const Matrix<double>&, double*, std::int64_t) {}

}  // namespace tenon::cpu
#endif

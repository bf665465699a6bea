#include "backends/cpu/products/gemm_packed.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/primitives/matmul/pack_panel.h"
#include "backends/cpu/primitives/matmul/packing_memory.h"
#include "base/threads/stop_scope.h"

#if defined(__x86_64__)

namespace tenon::cpu {
namespace {

constexpr std::int64_t kDepth = 384;

// One tile: rows x cols of c. The right panel holds |depth| steps of kCols
// elements. Element (r, p) of the left operand is left[r * row_stride + p], or
// left[p * kRows + r] if it is packed.
using Micro = void (*)(const float* left, std::int64_t row_stride, const float* right, std::int64_t depth, float* c,
                       std::int64_t ldc, std::int64_t cols, bool add, const TileEnd* end);

// Compiled for each instruction set: a macro, because an attribute cannot be a
// template argument. Rows of an unpacked left operand are addressed as base,
// base + stride and base + 2 stride, so that kRows of them need few registers.
#define TENON_PACKED_KERNEL(Name, attribute, bytes, panel_rows)                                                                 \
  struct Name {                                                                                                                 \
    typedef float Vector __attribute__((vector_size(bytes)));                                                                   \
    static constexpr std::int64_t kLanes = bytes / sizeof(float);                                                               \
    static constexpr int kRows = panel_rows;                                                                                    \
    static constexpr std::int64_t kCols = 2 * kLanes;                                                                           \
                                                                                                                                \
    template <int Rows, int Vectors, bool Packed>                                                                               \
    attribute static void tile(const float* left, std::int64_t row_stride, const float* right, std::int64_t depth, float* c,    \
                               std::int64_t ldc, std::int64_t cols, bool add, const TileEnd* end) {                             \
      constexpr int kBases = (Rows + 2) / 3;                                                                                    \
      const float* base[kBases];                                                                                                \
      for (int b = 0; b < kBases; ++b) base[b] = left + (Packed ? 0 : 3 * b * row_stride);                                      \
      /* Sums that nobody takes the address of: g++ would store them in every step. */                                          \
      Vector running[Rows][Vectors] = {};                                                                                       \
      for (std::int64_t p = 0; p < depth; ++p, right += kCols) {                                                                \
        Vector first, second = {};                                                                                              \
        std::memcpy(&first, right, sizeof first);                                                                               \
        if (Vectors > 1) std::memcpy(&second, right + kLanes, sizeof second);                                                   \
        _Pragma("GCC unroll 16") for (int r = 0; r < Rows; ++r) {                                                               \
          const float factor = Packed ? left[r] : base[r / 3][(r % 3) * row_stride + p];                                        \
          running[r][0] += first * factor;                                                                                      \
          if constexpr (Vectors > 1) running[r][1] += second * factor;                                                          \
        }                                                                                                                       \
        if (Packed) left += kRows;                                                                                              \
      }                                                                                                                         \
      Vector sum[Rows][Vectors];                                                                                                \
      _Pragma("GCC unroll 16") for (int r = 0; r < Rows; ++r) {                                                                 \
        sum[r][0] = running[r][0];                                                                                              \
        if constexpr (Vectors > 1) sum[r][1] = running[r][1];                                                                   \
      }                                                                                                                         \
      if (add && cols == Vectors * kLanes) {                                                                                    \
        _Pragma("GCC unroll 16") for (int r = 0; r < Rows; ++r) {                                                               \
          Vector before[Vectors];                                                                                               \
          std::memcpy(before, c + r * ldc, sizeof before);                                                                      \
          for (int v = 0; v < Vectors; ++v) sum[r][v] += before[v];                                                             \
        }                                                                                                                       \
      } else if (add) {                                                                                                         \
        _Pragma("GCC unroll 16") for (int r = 0; r < Rows; ++r) {                                                               \
          Vector before[Vectors] = {};                                                                                          \
          std::memcpy(before, c + r * ldc, static_cast<std::size_t>(cols) * sizeof(float));                                     \
          for (int v = 0; v < Vectors; ++v) sum[r][v] += before[v];                                                             \
        }                                                                                                                       \
      }                                                                                                                         \
      if (end) {                                                                                                                \
        if (end->scale)                                                                                                         \
          _Pragma("GCC unroll 16") for (int r = 0; r < Rows; ++r) for (int v = 0; v < Vectors; ++v) sum[r][v] *= end->scale[r]; \
        if (end->shift)                                                                                                         \
          _Pragma("GCC unroll 16") for (int r = 0; r < Rows; ++r) for (int v = 0; v < Vectors; ++v) sum[r][v] += end->shift[r]; \
        if (end->relu)                                                                                                          \
          _Pragma("GCC unroll 16") for (int r = 0; r < Rows; ++r) for (int v = 0; v < Vectors; ++v) sum[r][v] =                 \
              sum[r][v] < 0 ? Vector{} : sum[r][v];                                                                             \
      }                                                                                                                         \
      if (cols == Vectors * kLanes) {                                                                                           \
        _Pragma("GCC unroll 16") for (int r = 0; r < Rows; ++r) std::memcpy(c + r * ldc, sum[r], sizeof sum[r]);                \
      } else {                                                                                                                  \
        _Pragma("GCC unroll 16") for (int r = 0; r < Rows; ++r)                                                                 \
            std::memcpy(c + r * ldc, sum[r], static_cast<std::size_t>(cols) * sizeof(float));                                   \
      }                                                                                                                         \
    }                                                                                                                           \
    template <int Vectors, bool Packed>                                                                                         \
    static Micro for_rows(std::int64_t rows) {                                                                                  \
      switch (rows) {                                                                                                           \
        case 1: return tile<1, Vectors, Packed>;                                                                                \
        case 2: return tile<2, Vectors, Packed>;                                                                                \
        case 3: return tile<3, Vectors, Packed>;                                                                                \
        case 4: return tile<4, Vectors, Packed>;                                                                                \
        case 5: return tile<5, Vectors, Packed>;                                                                                \
        case 6: return tile<6, Vectors, Packed>;                                                                                \
        case 7: return tile<std::min(7, panel_rows), Vectors, Packed>;                                                          \
        case 8: return tile<std::min(8, panel_rows), Vectors, Packed>;                                                          \
        case 9: return tile<std::min(9, panel_rows), Vectors, Packed>;                                                          \
        case 10: return tile<std::min(10, panel_rows), Vectors, Packed>;                                                        \
        case 11: return tile<std::min(11, panel_rows), Vectors, Packed>;                                                        \
        default: return tile<panel_rows, Vectors, Packed>;                                                                      \
      }                                                                                                                         \
    }                                                                                                                           \
    template <bool Packed>                                                                                                      \
    static Micro best(std::int64_t rows, std::int64_t cols) {                                                                   \
      return cols > kLanes ? for_rows<2, Packed>(rows) : for_rows<1, Packed>(rows);                                             \
    }                                                                                                                           \
  };

TENON_PACKED_KERNEL(Avx2, [[gnu::target("avx2,fma")]], 32, 6)
TENON_PACKED_KERNEL(Avx512, [[gnu::target("avx512f,fma")]], 64, 12)

std::int64_t rounded_up(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit * unit; }

// Rows are divided into tiles of equal size rather than into full ones and a
// rest: 16 rows are 8 and 8, not 12 and 4.
struct Tiles {
  std::int64_t count, large,
      larger;  // the first |larger| tiles have large + 1 rows
  Tiles(std::int64_t rows, std::int64_t most) : count((rows + most - 1) / most), large(rows / count), larger(rows % count) {}
};

template <class Isa>
void right_product(const Matrix<float>& a, const float* packed, std::int64_t cols, std::int64_t first, std::int64_t last,
                   float* c, std::int64_t ldc) {
  // A block of rows stays in the L2 cache while the panels of b go by: packed if there are many, because rows at the distance of
  // a page would share a few sets of the L1 cache.
  constexpr std::int64_t kBlockRows = 240, kWorthPacking = 4;
  const std::int64_t padded = rounded_up(cols, Isa::kCols);
  const bool packs = last - first >= kWorthPacking * Isa::kCols && a.rows >= Isa::kRows;
  PackingMemory<> memory;
  float* const panels = packs ? memory.get<float>(rounded_up(std::min(kBlockRows, a.rows), Isa::kRows) * kDepth) : nullptr;
  for (std::int64_t row = 0; row < a.rows; row += kBlockRows) {
    const std::int64_t rows = std::min(kBlockRows, a.rows - row);
    const Tiles tiles(rows, Isa::kRows);
    for (std::int64_t p = 0; p < a.cols; p += kDepth) {
      const std::int64_t depth = std::min(kDepth, a.cols - p);
      check_stop();
      if (packs) {
        std::int64_t r = row;
        for (std::int64_t t = 0; t < tiles.count; ++t) {
          const std::int64_t n = tiles.large + (t < tiles.larger ? 1 : 0);
          pack_panel<Isa::kRows>(a.data + r * a.row_stride + p, a.row_stride, 1, n, depth, panels + t * Isa::kRows * depth);
          r += n;
        }
      }
      for (std::int64_t j = first; j < last; j += Isa::kCols) {
        const std::int64_t width = std::min<std::int64_t>(Isa::kCols, last - j);
        const float* const panel = packed + p * padded + j * depth;
        std::int64_t r = row;
        for (std::int64_t t = 0; t < tiles.count; ++t) {
          const std::int64_t n = tiles.large + (t < tiles.larger ? 1 : 0);
          if (packs)
            Isa::template best<true>(n, width)(panels + t * Isa::kRows * depth, 1, panel, depth, c + r * ldc + j, ldc, width,
                                               p > 0, nullptr);
          else
            Isa::template best<false>(n, width)(a.data + r * a.row_stride + p, a.row_stride, panel, depth, c + r * ldc + j, ldc,
                                                width, p > 0, nullptr);
          r += n;
        }
      }
    }
  }
}

template <class Isa>
void left_product(const float* packed, std::int64_t rows, std::int64_t first, std::int64_t last, std::int64_t begin,
                  std::int64_t depth, const float* right, std::int64_t cols, float* c, std::int64_t ldc, const TileEnd* end) {
  const float* const block = packed + begin * rounded_up(rows, Isa::kRows);
  for (std::int64_t i = first; i < last; i += Isa::kRows) {
    const std::int64_t n = std::min<std::int64_t>(Isa::kRows, last - i);
    TileEnd own;
    if (end) own = {end->scale ? end->scale + i : nullptr, end->shift ? end->shift + i : nullptr, end->relu};
    for (std::int64_t j = 0; j < cols; j += Isa::kCols) {
      const std::int64_t width = std::min<std::int64_t>(Isa::kCols, cols - j);
      Isa::template best<true>(n, width)(block + i * depth, 1, right + j * depth, depth, c + (i - first) * ldc + j, ldc, width,
                                         begin > 0, end ? &own : nullptr);
    }
  }
}

// [block of the inner axis][panel][step][line]; the lines that the last panel
// lacks are zero.
template <class At>
void pack(std::int64_t lines, std::int64_t depth, std::int64_t width, float* to, At at) {
  for (std::int64_t p0 = 0; p0 < depth; p0 += kDepth) {
    const std::int64_t steps = std::min(kDepth, depth - p0);
    for (std::int64_t line = 0; line < lines; line += width)
      for (std::int64_t p = 0; p < steps; ++p)
        for (std::int64_t l = line; l < line + width; ++l) *to++ = l < lines ? at(l, p0 + p) : 0.0f;
  }
}

bool has_wide() {
  static const bool wide = __builtin_cpu_supports("avx512f");
  return wide;
}

}  // namespace

bool has_packed_gemm() {
  static const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return has;
}

const PackedLayout& packed_layout() {
  static const PackedLayout layout =
      has_wide() ? PackedLayout{Avx512::kRows, Avx512::kCols, kDepth} : PackedLayout{Avx2::kRows, Avx2::kCols, kDepth};
  return layout;
}

std::int64_t packed_right_elements(std::int64_t depth, std::int64_t cols) {
  return depth * rounded_up(cols, packed_layout().cols);
}
std::int64_t packed_left_elements(std::int64_t rows, std::int64_t depth) {
  return depth * rounded_up(rows, packed_layout().rows);
}

void pack_right(const Matrix<float>& b, float* packed) {
  pack(b.cols, b.rows, packed_layout().cols, packed,
       [&](std::int64_t line, std::int64_t step) { return b.data[step * b.row_stride + line * b.col_stride]; });
}

void pack_left(const Matrix<float>& a, float* packed) {
  pack(a.rows, a.cols, packed_layout().rows, packed,
       [&](std::int64_t line, std::int64_t step) { return a.data[line * a.row_stride + step * a.col_stride]; });
}

void gemm_packed_right(const Matrix<float>& a, const float* packed, std::int64_t cols, std::int64_t first, std::int64_t last,
                       float* c, std::int64_t ldc) {
  if (has_wide()) return right_product<Avx512>(a, packed, cols, first, last, c, ldc);
  right_product<Avx2>(a, packed, cols, first, last, c, ldc);
}

void gemm_packed_left(const float* packed, std::int64_t rows, std::int64_t first, std::int64_t last, std::int64_t begin,
                      std::int64_t depth, const float* right, std::int64_t cols, float* c, std::int64_t ldc, const TileEnd* end) {
  if (has_wide()) return left_product<Avx512>(packed, rows, first, last, begin, depth, right, cols, c, ldc, end);
  left_product<Avx2>(packed, rows, first, last, begin, depth, right, cols, c, ldc, end);
}

}  // namespace tenon::cpu
#else

namespace tenon::cpu {

bool has_packed_gemm() { return false; }
const PackedLayout& packed_layout() {
  static const PackedLayout layout{1, 32, 384};
  return layout;
}
std::int64_t packed_right_elements(std::int64_t, std::int64_t) { return 0; }
std::int64_t packed_left_elements(std::int64_t, std::int64_t) { return 0; }
void pack_right(const Matrix<float>&, float*) {}
void pack_left(const Matrix<float>&, float*) {}
void gemm_packed_right(const Matrix<float>&, const float*, std::int64_t, std::int64_t, std::int64_t, float*, std::int64_t) {}
void gemm_packed_left(const float*, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, const float*,
                      std::int64_t, float*, std::int64_t) {}

}  // namespace tenon::cpu
#endif

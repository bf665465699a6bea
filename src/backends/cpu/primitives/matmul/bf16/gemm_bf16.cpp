#include "backends/cpu/primitives/matmul/bf16/gemm_bf16.h"

#include <algorithm>

#include "backends/cpu/primitives/clones.h"
#include "backends/cpu/primitives/matmul/amx_tiles.h"
#include "backends/cpu/primitives/matmul/bf16/gemm_bf16_blocks.h"
#include "backends/cpu/primitives/matmul/packing_memory.h"

#if defined(__x86_64__) && defined(__linux__)
#include <immintrin.h>
#endif

namespace tenon::cpu {

Bf16Range& Bf16Range::operator|=(const Bf16Range& other) {
  has_subnormals = has_subnormals || other.has_subnormals;
  has_tiny_lines = has_tiny_lines || other.has_tiny_lines;
  has_huge = has_huge || other.has_huge;
  return *this;
}

namespace {

// The largest number of a line without the sign, and in |subnormals| something else than zero if there are any: 1 to 0x7f, no
// exponent, but a fraction. Both operands of every product are searched, so this must be as fast as reading them.
TENON_CLONES unsigned search_line(const Bf16Bits* from, std::int64_t length, std::int64_t step, unsigned* subnormals) {
  std::uint16_t found = 0, largest = 0;
  if (step == 1) {
    for (std::int64_t j = 0; j < length; ++j) {
      const auto magnitude = static_cast<std::uint16_t>(from[j] & 0x7fff);
      found = static_cast<std::uint16_t>(found | (static_cast<std::uint16_t>(magnitude - 1) < 0x7f ? 1 : 0));
      largest = largest < magnitude ? magnitude : largest;
    }
  } else {
    for (std::int64_t j = 0; j < length; ++j) {
      const auto magnitude = static_cast<std::uint16_t>(from[j * step] & 0x7fff);
      found = static_cast<std::uint16_t>(found | (static_cast<std::uint16_t>(magnitude - 1) < 0x7f ? 1 : 0));
      largest = largest < magnitude ? magnitude : largest;
    }
  }
  *subnormals = found;
  return largest;
}

}  // namespace

Bf16Range range_of(const Matrix<Bf16Bits>& matrix) {
  constexpr unsigned kTiny = (127 - 60) << 7, kHuge = (127 + 64) << 7;  // the bits of 2^-60 and 2^64
  const bool by_rows = matrix.col_stride == 1;
  const std::int64_t lines = by_rows ? matrix.rows : matrix.cols, length = by_rows ? matrix.cols : matrix.rows;
  const std::int64_t stride = by_rows ? matrix.row_stride : matrix.col_stride, step = by_rows ? 1 : matrix.row_stride;
  Bf16Range range;
  if (stride == length && step == 1) {
    // Dense: short lines one by one take longer, and are of interest only if there are subnormal numbers.
    unsigned subnormals = 0;
    const unsigned largest = search_line(matrix.data, lines * length, 1, &subnormals);
    if (subnormals == 0) return {false, false, largest >= kHuge};
  }
  for (std::int64_t i = 0; i < lines; ++i) {
    unsigned subnormals = 0;
    const unsigned largest = search_line(matrix.data + i * stride, length, step, &subnormals);
    range |= {subnormals != 0, subnormals != 0 && largest < kTiny, largest >= kHuge};
  }
  return range;
}

bool needs_subnormals(const Bf16Range& a, const Bf16Range& b) {
  return (a.has_subnormals && (a.has_tiny_lines || b.has_huge)) || (b.has_subnormals && (b.has_tiny_lines || a.has_huge));
}

#if defined(__x86_64__) && defined(__linux__)
namespace {

// Rows x 32 results in registers: two vectors a row, or one at the right edge, and three more for b and the factor.
struct Avx512Unit {
  static constexpr std::int64_t kRows = 14, kSteps = 2;

  static void pack_a(const Bf16Bits* from, std::int64_t line_stride, std::int64_t step_stride, std::int64_t lines,
                     std::int64_t depth, std::int64_t padded, Bf16Bits* to) {
    bf16::pack_pairs<14>({from, line_stride, step_stride, lines, depth}, padded / 2, to);
  }

  // The first |rows| rows and |cols| columns are stored.
  template <int Rows, int Vectors>
  [[gnu::target("avx512f,avx512bf16")]] static void rows_of(const Bf16Bits* a, const Bf16Bits* b, std::int64_t pairs, float* c,
                                                            std::int64_t ldc, std::int64_t rows, std::int64_t cols, bool add) {
    __m512 sums[Rows][Vectors];
    _Pragma("GCC unroll 16") for (int r = 0; r < Rows; ++r) for (int v = 0; v < Vectors; ++v) sums[r][v] = _mm512_setzero_ps();
    for (std::int64_t p = 0; p < pairs; ++p, a += 2 * kRows, b += 64) {
      __m512bh right[Vectors];
      for (int v = 0; v < Vectors; ++v) right[v] = (__m512bh)_mm512_load_si512(b + 32 * v);
      _Pragma("GCC unroll 16") for (int r = 0; r < Rows; ++r) {
        int pair = 0;
        std::memcpy(&pair, a + 2 * r, sizeof pair);
        const auto factor = (__m512bh)_mm512_set1_epi32(pair);
        for (int v = 0; v < Vectors; ++v) sums[r][v] = _mm512_dpbf16_ps(sums[r][v], factor, right[v]);
      }
    }
    const std::int64_t last = cols - 16 * (Vectors - 1);
    const auto mask = static_cast<__mmask16>(last >= 16 ? 0xffffu : (1u << last) - 1);
    _Pragma("GCC unroll 16") for (int r = 0; r < Rows; ++r) {
      if (r >= rows) break;
      for (int v = 0; v < Vectors; ++v) {
        float* const to = c + r * ldc + 16 * v;
        const __mmask16 stored = v + 1 < Vectors ? static_cast<__mmask16>(0xffff) : mask;
        _mm512_mask_storeu_ps(to, stored, add ? _mm512_add_ps(_mm512_maskz_loadu_ps(stored, to), sums[r][v]) : sums[r][v]);
      }
    }
  }

  static void tile(const Bf16Bits* a, const Bf16Bits* b, std::int64_t depth, float* c, std::int64_t ldc, std::int64_t rows,
                   std::int64_t cols, bool add) {
    using Tile = void (*)(const Bf16Bits*, const Bf16Bits*, std::int64_t, float*, std::int64_t, std::int64_t, std::int64_t, bool);
    static constexpr Tile tiles[2][5] = {{rows_of<2, 1>, rows_of<4, 1>, rows_of<6, 1>, rows_of<10, 1>, rows_of<kRows, 1>},
                                         {rows_of<2, 2>, rows_of<4, 2>, rows_of<6, 2>, rows_of<10, 2>, rows_of<kRows, 2>}};
    const int size = rows > 10 ? 4 : rows > 6 ? 3 : rows > 4 ? 2 : rows > 2 ? 1 : 0;
    tiles[cols > 16 ? 1 : 0][size](a, b, depth / 2, c, ldc, rows, cols, add);
  }
};

struct AmxTiles {
  // c (32 x 32) = or, with |add|, += the sum over |blocks| of a panel of a, [32][32], times one of b, [16 pairs][32][2].
  [[gnu::target("amx-tile,amx-bf16")]] static void accumulate(const Bf16Bits* a, const Bf16Bits* b, std::int64_t blocks, float* c,
                                                              std::int64_t ldc, bool add) {
    const std::int64_t stride = ldc * static_cast<std::int64_t>(sizeof(float));
    if (add) {
      _tile_loadd(0, c, stride);
      _tile_loadd(1, c + 16, stride);
      _tile_loadd(2, c + 16 * ldc, stride);
      _tile_loadd(3, c + 16 * ldc + 16, stride);
    } else {
      _tile_zero(0);
      _tile_zero(1);
      _tile_zero(2);
      _tile_zero(3);
    }
    for (std::int64_t block = 0; block < blocks; ++block, a += 32 * 32, b += 16 * 64) {
      _tile_loadd(4, a, 64);
      _tile_loadd(6, b, 128);
      _tile_dpbf16ps(0, 4, 6);
      _tile_loadd(7, b + 32, 128);
      _tile_dpbf16ps(1, 4, 7);
      _tile_loadd(5, a + 16 * 32, 64);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, c, stride);
    _tile_stored(1, c + 16, stride);
    _tile_stored(2, c + 16 * ldc, stride);
    _tile_stored(3, c + 16 * ldc + 16, stride);
  }
};

Bf16Unit find_unit() {
  if (tile_units().bf16) return Bf16Unit::amx;
  return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512f") ? Bf16Unit::avx512 : Bf16Unit::none;
}

}  // namespace

Bf16Unit bf16_unit() {
  static const Bf16Unit unit = find_unit();
  return unit;
}

void gemm_bf16(const Matrix<Bf16Bits>& a, const Matrix<Bf16Bits>& b, float* c, std::int64_t ldc) {
  PackingMemory<(16 << 10)> memory[2];
  const auto memory_a = [&](std::int64_t elements) { return memory[0].get<Bf16Bits>(elements); };
  const auto memory_b = [&](std::int64_t elements) { return memory[1].get<Bf16Bits>(elements); };
  if (bf16_unit() == Bf16Unit::avx512) return bf16::product(Avx512Unit{}, a, b, c, ldc, memory_a, memory_b);
  const TileUse use(TileConfiguration::square());
  bf16::product(bf16::TileUnit<AmxTiles>{}, a, b, c, ldc, memory_a, memory_b);
}

#else

Bf16Unit bf16_unit() { return Bf16Unit::none; }
void gemm_bf16(const Matrix<Bf16Bits>&, const Matrix<Bf16Bits>&, float*, std::int64_t) {}

#endif

}  // namespace tenon::cpu

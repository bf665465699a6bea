// The blocking and packing of a bfloat16 product, for any unit that multiplies one tile.
//
// A unit has kRows, kCols (32), kSteps (the inner steps that a panel of a is a multiple of), pack_a() and tile(). A panel of b
// holds pairs of steps: [pair][32 columns][2], 128 bytes a pair, which AVX-512 reads as two vectors and AMX as two tiles side by
// side. Missing rows, columns and steps are zeros. The test of the AMX unit runs this with tiles emulated in plain C++.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "backends/cpu/primitives/matmul/bf16/gemm_bf16.h"
#include "backends/cpu/primitives/matmul/bf16/pack_pairs.h"

namespace tenon::cpu::bf16 {

constexpr std::int64_t kDepth = 512;      // inner steps of a block
constexpr std::int64_t kBlockCols = 512;  // columns of b packed at a time: 512 KiB
constexpr std::int64_t kBlockRows = 1024;
constexpr std::int64_t kCols = 32;

constexpr std::int64_t rounded_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

// to[block of 32 steps][line][32]: rows of AMX tiles.
template <int Width>
void pack_rows(const Bf16Bits* from, std::int64_t line_stride, std::int64_t step_stride, std::int64_t lines, std::int64_t depth,
               Bf16Bits* to) {
  const std::int64_t blocks = rounded_up(depth, 32) / 32;
  if (lines < Width || depth % 32 != 0) std::memset(to, 0, static_cast<std::size_t>(blocks * Width * 32) * sizeof(Bf16Bits));
  if (line_stride == 1 && step_stride != 1) {
    // A transposed matrix: read along its lines in memory, and write within a tile.
    for (std::int64_t s = 0; s < depth; ++s)
      for (std::int64_t l = 0; l < lines; ++l) to[(s / 32 * Width + l) * 32 + s % 32] = from[s * step_stride + l];
    return;
  }
  for (std::int64_t block = 0; block < blocks; ++block)
    for (std::int64_t l = 0; l < lines; ++l) {
      const std::int64_t first = block * 32, steps = std::min<std::int64_t>(32, depth - first);
      const Bf16Bits* source = from + l * line_stride + first * step_stride;
      Bf16Bits* row = to + (block * Width + l) * 32;
      if (step_stride == 1 && steps == 32)
        std::memcpy(row, source, 32 * sizeof(Bf16Bits));
      else if (step_stride == 1)
        std::memcpy(row, source, static_cast<std::size_t>(steps) * sizeof(Bf16Bits));
      else
        for (std::int64_t s = 0; s < steps; ++s) row[s] = source[s * step_stride];
    }
}

// |memory_a| and |memory_b| give room for a number of elements.
template <class Unit, class MemoryA, class MemoryB>
void product(const Unit& unit, const Matrix<Bf16Bits>& a, const Matrix<Bf16Bits>& b, float* c, std::int64_t ldc,
             MemoryA&& memory_a, MemoryB&& memory_b) {
  constexpr std::int64_t kRows = Unit::kRows;
  const std::int64_t depth_limit = std::min(kDepth, rounded_up(a.cols, Unit::kSteps));
  const std::int64_t block_rows = std::min(rounded_up(a.rows, kRows), kBlockRows / kRows * kRows);
  const std::int64_t block_cols = std::min(rounded_up(b.cols, kCols), kBlockCols);
  Bf16Bits* const packed_a = memory_a(block_rows * depth_limit);
  Bf16Bits* const packed_b = memory_b(block_cols * depth_limit);
  for (std::int64_t p = 0; p < a.cols; p += depth_limit) {
    const std::int64_t depth = std::min(depth_limit, a.cols - p), padded = rounded_up(depth, Unit::kSteps);
    for (std::int64_t i = 0; i < a.rows; i += block_rows) {
      const std::int64_t rows = std::min(block_rows, a.rows - i);
      for (std::int64_t r = 0; r < rows; r += kRows)
        unit.pack_a(a.data + (i + r) * a.row_stride + p * a.col_stride, a.row_stride, a.col_stride, std::min(kRows, rows - r),
                    depth, padded, packed_a + r * padded);
      for (std::int64_t j = 0; j < b.cols; j += block_cols) {
        const std::int64_t cols = std::min(block_cols, b.cols - j);
        for (std::int64_t n = 0; n < cols; n += kCols)
          pack_pairs<static_cast<int>(kCols)>(
              {b.data + (j + n) * b.col_stride + p * b.row_stride, b.col_stride, b.row_stride, std::min(kCols, cols - n), depth},
              padded / 2, packed_b + n * padded);
        for (std::int64_t r = 0; r < rows; r += kRows)
          for (std::int64_t n = 0; n < cols; n += kCols)
            unit.tile(packed_a + r * padded, packed_b + n * padded, padded, c + (i + r) * ldc + j + n, ldc,
                      std::min(kRows, rows - r), std::min(kCols, cols - n), p > 0);
      }
    }
  }
}

// Adds a tile that was formed beside c to it.
inline void store_edge(const float* edge, float* c, std::int64_t ldc, std::int64_t rows, std::int64_t cols, bool add) {
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t j = 0; j < cols; ++j) c[r * ldc + j] = add ? c[r * ldc + j] + edge[r * kCols + j] : edge[r * kCols + j];
}

// 32 x 32 results as two by two tiles of 16 x 16. |Tiles| has the instructions: zero, load, multiply (tile 0..3 += 4 or 5 times
// 6 or 7) and store; strides in bytes.
template <class Tiles>
struct TileUnit {
  static constexpr std::int64_t kRows = 32, kSteps = 32;

  static void pack_a(const Bf16Bits* from, std::int64_t line_stride, std::int64_t step_stride, std::int64_t lines,
                     std::int64_t depth, std::int64_t, Bf16Bits* to) {
    pack_rows<32>(from, line_stride, step_stride, lines, depth, to);
  }

  static void tile(const Bf16Bits* a, const Bf16Bits* b, std::int64_t depth, float* c, std::int64_t ldc, std::int64_t rows,
                   std::int64_t cols, bool add) {
    if (rows == 32 && cols == kCols) return Tiles::accumulate(a, b, depth / 32, c, ldc, add);
    // In the order of whole tiles, so that no result depends on where a product is cut.
    alignas(64) float sums[32 * kCols] = {};
    for (std::int64_t r = 0; add && r < rows; ++r) std::copy_n(c + r * ldc, cols, sums + r * kCols);
    Tiles::accumulate(a, b, depth / 32, sums, kCols, add);
    store_edge(sums, c, ldc, rows, cols, false);
  }
};

}  // namespace tenon::cpu::bf16

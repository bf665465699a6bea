// Products with one operand that was packed beforehand: weights are copied once
// into the order in which the micro-kernel reads them, and then used by many
// products.
//
// Every element of the result is the same sequence of operations, whatever part
// of a product is asked for at a time and however many rows it has: sums of
// kDepth terms in their order, added in their order. One thread; thread safety
// as gemm.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/primitives/matmul/gemm.h"
#include "backends/cpu/products/epilogue.h"

namespace tenon::cpu {

// False on CPUs without AVX2: then nothing below may be called.
bool has_packed_gemm();

// The geometry of panels on this CPU.
struct PackedLayout {
  std::int64_t rows;   // of a panel of the left operand
  std::int64_t cols;   // of a panel of the right operand
  std::int64_t depth;  // terms that are summed at a time
};
const PackedLayout& packed_layout();

// --- A packed right operand: c = a x b ---
std::int64_t packed_right_elements(std::int64_t depth, std::int64_t cols);
void pack_right(const Matrix<float>& b, float* packed);
// Columns [first, last) of c = a x b; |first| is a multiple of
// packed_layout().cols. a has unit stride along its rows. c points at the
// result's first column, not at |first|.
void gemm_packed_right(const Matrix<float>& a, const float* packed, std::int64_t cols, std::int64_t first, std::int64_t last,
                       float* c, std::int64_t ldc);

// --- A packed left operand, and panels of a right one ---
std::int64_t packed_left_elements(std::int64_t rows, std::int64_t depth);
void pack_left(const Matrix<float>& a, float* packed);
// c (+)= rows [first, last) of a, terms [begin, begin + depth), x the |cols|
// columns that |right| holds as panels of packed_layout().cols, each
// [depth][cols]. |first| is a multiple of packed_layout().rows, |begin| of
// .depth, depth <= .depth. Adds to c unless |begin| is 0. c points at row
// |first|.
void gemm_packed_left(const float* packed, std::int64_t rows, std::int64_t first, std::int64_t last, std::int64_t begin,
                      std::int64_t depth, const float* right, std::int64_t cols, float* c, std::int64_t ldc,
                      const TileEnd* end = nullptr);

}  // namespace tenon::cpu

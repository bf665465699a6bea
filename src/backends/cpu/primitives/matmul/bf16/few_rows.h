// Products of a few rows with a bfloat16 matrix, which is read once, where it lies: packing it would cost more than the product.
//
// Sums are formed in f32 by the dot products of AVX-512 BF16, which count subnormal numbers as zero. Every element of c is the
// same sequence of operations, whatever part of a product is asked for at a time. Thread safety: as gemm.h.
#pragma once

#include <cstdint>

#include "backends/cpu/primitives/matmul/bf16/gemm_bf16.h"
#include "backends/cpu/primitives/matmul/gemm.h"

namespace tenon::cpu {

inline constexpr std::int64_t kFewRows = 16;
// Whether this CPU has the instructions.
bool multiplies_few_rows();

// c[i * row_step + j * col_step] = the product, overwritten. a has at most kFewRows rows; b satisfies is_blas_matrix(). Returns
// whether a or b has a subnormal number: c then holds nothing of use.
bool multiply_few_rows(const Matrix<Bf16Bits>& a, const Matrix<Bf16Bits>& b, float* c, std::int64_t row_step,
                       std::int64_t col_step);

}  // namespace tenon::cpu

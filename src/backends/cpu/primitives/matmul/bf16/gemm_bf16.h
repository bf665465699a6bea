// Products of bfloat16 matrices by the CPU's own instructions, accumulated in f32: AMX tiles, or AVX-512 BF16 dot products.
//
// c = a x b overwrites c. Every element of c is the same sequence of operations, whatever part of a product is asked for at a
// time. Both instruction sets count subnormal numbers as zero: needs_subnormals() finds operands that need the f32 product.
// Thread safety: as gemm.h. Packing memory belongs to the calling thread and is kept until it ends.
#pragma once

#include <cstdint>

#include "backends/cpu/primitives/matmul/gemm.h"

namespace tenon::cpu {

using Bf16Bits = std::uint16_t;

enum class Bf16Unit : std::uint8_t { none, avx512, amx };
// The best this CPU and its kernel allow.
Bf16Unit bf16_unit();

// What decides whether subnormal numbers of an operand (below 1.2e-38) may count as zero.
struct Bf16Range {
  bool has_subnormals = false;
  bool has_tiny_lines = false;  // a line of the memory with subnormal numbers, and none from 2^-60 on
  bool has_huge = false;        // a number from 2^64 on, an infinity or a NaN

  Bf16Range& operator|=(const Bf16Range& other);
};
Bf16Range range_of(const Matrix<Bf16Bits>& matrix);

// Whether the subnormal numbers of a or b matter: without them the error of a product is below 2^-62, and below 2^-66 of the line
// that they are in. Activations such as gelu produce many of them, which is no reason for a product at a tenth of the speed.
bool needs_subnormals(const Bf16Range& a, const Bf16Range& b);

// a and b must satisfy is_blas_matrix(); only if bf16_unit() is not none.
void gemm_bf16(const Matrix<Bf16Bits>& a, const Matrix<Bf16Bits>& b, float* c, std::int64_t ldc);

}  // namespace tenon::cpu

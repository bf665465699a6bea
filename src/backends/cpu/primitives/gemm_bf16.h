// Products of bfloat16 matrices by the CPU's own instructions, accumulated in f32: AMX tiles, or AVX-512 BF16 dot products.
//
// c = a x b overwrites c. Every element of c is the same sequence of operations, whatever part of a product is asked for at a
// time. Both instruction sets count subnormal numbers as zero: has_subnormals() finds operands that need the f32 product.
// Thread safety: as gemm.h. Packing memory belongs to the calling thread and is kept until it ends.
#pragma once

#include <cstdint>

#include "backends/cpu/primitives/gemm.h"

namespace tenon::cpu {

using Bf16Bits = std::uint16_t;

enum class Bf16Unit : std::uint8_t { none, avx512, amx };
// The best this CPU and its kernel allow.
Bf16Unit bf16_unit();

// Whether some number of the matrix is subnormal.
bool has_subnormals(const Matrix<Bf16Bits>& matrix);

// a and b as is_blas_matrix demands; only if bf16_unit() is not none.
void gemm_bf16(const Matrix<Bf16Bits>& a, const Matrix<Bf16Bits>& b, float* c, std::int64_t ldc);

}  // namespace tenon::cpu

// The packed product: c = a x b for matrices too large for the registers and the L1 cache.
//
// Both operands are copied ("packed") block by block into the order in which a micro-kernel reads them, so any strides will do.
// Every element of c is the same sequence of operations, whatever part of a product is asked for at a time: cutting a product
// into parts, for threads or otherwise, never changes a result. That is why we do not leave this to a BLAS, which rounds
// differently for matrices of different sizes (and, cut into parts it takes for small, runs at half its speed). Thread safety: as
// gemm.h. Packing memory belongs to the calling thread and is kept until it ends.
#pragma once

#include "backends/cpu/primitives/matmul/gemm.h"

namespace tenon::cpu {

// False on CPUs without AVX2: then there is no micro-kernel for it.
bool has_blocked_gemm();

void blocked_gemm(const Matrix<float>& a, const Matrix<float>& b, float* c, std::int64_t ldc);
void blocked_gemm(const Matrix<double>& a, const Matrix<double>& b, double* c, std::int64_t ldc);

}  // namespace tenon::cpu

// A product with packed weights over the threads of a pool, with its epilogue.
#pragma once

#include "backends/cpu/products/epilogue.h"
#include "backends/cpu/products/gemm_packed.h"
#include "base/threads/thread_pool.h"

namespace tenon::cpu {

// out [a.rows, cols], dense. a has unit stride along its rows.
void packed_matmul(ThreadPool& pool, const Matrix<float>& a, const float* packed, std::int64_t cols, float* out,
                   const Finish& finish);

// The epilogue of a whole result, in place: where the product was computed in
// another way.
void finish_rows(ThreadPool& pool, const Finish& finish, std::int64_t rows, float* out);

}  // namespace tenon::cpu

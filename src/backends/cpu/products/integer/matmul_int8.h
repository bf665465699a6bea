// A batched product of 8-bit integers over the threads of a pool.
#pragma once

#include <span>

#include "backends/cpu/primitives/primitives.h"
#include "backends/cpu/products/integer/gemm_int8.h"

namespace tenon::cpu {

struct Int8Product {
  std::int64_t batches = 1, rows = 0, cols = 0, depth = 0;
  bool is_shared = false;  // all batches have the same b
};

// a is dense, [batches, rows, depth]; b [.., depth, cols] with any strides;
// zero points in f32, dense, or without data.
struct Int8Operands {
  View a, b, a_zero, b_zero;
  const std::byte* packed = nullptr;  // b, if it was packed before
};

// The last two axes of a view in 8 bits.
Int8Matrix int8_matrix(const View& view);

std::size_t int8_product_scratch_bytes(const ThreadPool& pool, const Int8Product& shape);
void int8_product(ThreadPool& pool, const Int8Product& shape, const Int8Operands& operands, const Target& out,
                  std::span<std::byte> scratch);

}  // namespace tenon::cpu

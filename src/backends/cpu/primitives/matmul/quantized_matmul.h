// The product of f32 rows with a matrix of 4 or 8-bit codes, in integers (QuantizedMatMulAttr).
//
// Rows of x become 8-bit integers once, with a step per 32 columns. Sixteen rows of the matrix are taken together, one per lane:
// four columns of each are multiplied and added by one instruction (AVX-512 VNNI; two with AVX2). Their codes are unpacked once
// for up to eight rows of x. Sixteen rows of x and more are multiplied in AMX tiles, with the bits of VNNI. Thread safety:
// touches only its arguments.
#pragma once

#include "backends/cpu/primitives/primitives.h"

namespace tenon::cpu {

struct QuantizedMatrix {
  const std::uint8_t* codes = nullptr;
  const void* scales = nullptr;
  const void* minima = nullptr;  // null if there are none
  bool has_half_scales = false;
};

// The instructions that products are made of. Each gives the same results but for the rounding of sums.
enum class IntegerUnit : std::uint8_t { base, avx2, vnni, amx };
bool has_integer_unit(IntegerUnit unit);
IntegerUnit best_integer_unit();

std::size_t quantized_matmul_scratch_bytes(const Shape& x, const QuantizedMatMulAttr& attr);
// |x| is dense; |out| is dense [m, n].
void quantized_matmul(ThreadPool& pool, const View& x, const QuantizedMatrix& matrix, const QuantizedMatMulAttr& attr,
                      const Target& out, std::span<std::byte> scratch, IntegerUnit unit = best_integer_unit());

}  // namespace tenon::cpu

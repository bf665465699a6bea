// Products of 8-bit integers, exact in 32 bits: c = (a - a_zero) x (b -
// b_zero), with packed weights b.
//
// Signed and unsigned operands in any combination; zero points may differ by
// row of a and by column of b. Sums wrap beyond 32 bits, as ONNX's do. One
// thread; thread safety as gemm.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tenon::cpu {

// False on CPUs without AVX2.
bool has_int8_gemm();

struct Int8Matrix {
  const void* data = nullptr;
  bool is_signed = false;
  std::int64_t rows = 0, cols = 0, row_stride = 0,
               col_stride = 0;  // in elements
};

std::size_t packed_int8_bytes(std::int64_t depth, std::int64_t cols);
// b's elements in the kernel's order, and their sums by column.
void pack_int8(const Int8Matrix& b, std::byte* packed);

// Zero points as 32-bit numbers: one, or one per row (column).
struct ZeroPoints {
  const std::int32_t* values = nullptr;  // nullptr: 0
  bool is_single = true;

  std::int32_t at(std::int64_t i) const { return values == nullptr ? 0 : values[is_single ? 0 : i]; }
};

// Scratch for |rows| rows of a at a time.
std::size_t int8_scratch_bytes(std::int64_t rows, std::int64_t depth);
// All columns of rows [0, a.rows) of c. |b_is_signed| as in the matrix that was
// packed.
void gemm_int8(const Int8Matrix& a, const std::byte* packed, bool b_is_signed, std::int64_t cols, const ZeroPoints& a_zero,
               const ZeroPoints& b_zero, std::int32_t* c, std::int64_t ldc, std::span<std::byte> scratch);

}  // namespace tenon::cpu

// The block formats bfloat8_b and bfloat4_b: 16 adjacent elements of a row share one 8-bit exponent; each element is a sign
// and an integer magnitude of 7 or 3 bits.
//
// A tensor is a sequence of matrices (its last two axes; a vector is one row), each divided into 32x32 tiles, row-major,
// padded with zeros. A tile is four faces of 16x16 (top left, top right, bottom left, bottom right): first the 64
// exponents, one per row of a face, then the faces' elements row by row; bfloat4_b puts the first of two elements in
// the low half of a byte. The value of an element is (-1)^s * m * 2^(E - 127 - 6), for bfloat4_b 2^(E - 127 - 2).
//
// Encoding: E is the largest f32 exponent of the block; each 24-bit significand is shifted right to it (the bits shifted
// out are discarded), then rounded to nearest even, and clamped to the largest magnitude. A zero magnitude has no sign;
// f32 subnormals count as zero. Infinities and NaN set E = 255, where a magnitude with its top bit set means infinity
// (no other bit set) or NaN; finite elements of the block lose nearly all precision.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tenon/array/dtype.h"
#include "tenon/array/shape.h"

namespace tenon {

inline constexpr std::int64_t kTileSide = 32;
inline constexpr std::int64_t kBlockElements = 16;

constexpr std::size_t tile_bytes(DType block) noexcept { return block == DType::bfloat8_b ? 1088 : 576; }

// One of |in| and |out| has shape.elements() floats, row-major; the other has storage_bytes(block, shape) bytes.
void encode_block(DType block, const Shape& shape, const float* in, void* out);
void decode_block(DType block, const Shape& shape, const void* in, float* out);

// One element of encoded bytes, by row-major index.
float decode_block_element(DType block, const Shape& shape, const void* in, std::int64_t index);

// The values of a row-major [rows, cols] array after encoding and decoding, without building tiles. |in| may be |out|.
void round_trip_block(DType block, const float* in, float* out, std::int64_t rows, std::int64_t cols);

}  // namespace tenon

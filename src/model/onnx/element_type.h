// The element types of ONNX, by their numbers in the format.
//
// Types that Tenon's arrays have are held as they are. The small types exist in models only as storage, so they are held in the
// next type that has all their values: 8-bit and smaller floats in f32, 4-bit and 2-bit integers in 8 bits.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tenon/array.h"
#include "tenon/array/dtype.h"

namespace tenon::onnx {

enum class ElementType : std::uint8_t {
  undefined = 0,
  f32 = 1,
  u8 = 2,
  i8 = 3,
  u16 = 4,
  i16 = 5,
  i32 = 6,
  i64 = 7,
  string = 8,
  boolean = 9,
  f16 = 10,
  f64 = 11,
  u32 = 12,
  u64 = 13,
  complex64 = 14,
  complex128 = 15,
  bf16 = 16,
  f8e4m3fn = 17,
  f8e4m3fnuz = 18,
  f8e5m2 = 19,
  f8e5m2fnuz = 20,
  u4 = 21,
  i4 = 22,
  f4e2m1 = 23,
  f8e8m0 = 24,
  u2 = 25,
  i2 = 26,
  f6e2m3 = 27,
  f6e3m2 = 28,
};
inline constexpr int kElementTypes = 29;

std::string_view name(ElementType type) noexcept;  // "float8e4m3fn"

// Throws unimplemented for complex numbers and strings, which no array holds.
DType held_as(ElementType type);
ElementType element_type(DType dtype) noexcept;

constexpr bool is_small_float(ElementType type) noexcept {
  return (type >= ElementType::f8e4m3fn && type <= ElementType::f8e5m2fnuz) || type == ElementType::f4e2m1 ||
         type == ElementType::f8e8m0 || type == ElementType::f6e2m3 || type == ElementType::f6e3m2;
}
constexpr bool is_small_integer(ElementType type) noexcept {
  return type == ElementType::u4 || type == ElementType::i4 || type == ElementType::u2 || type == ElementType::i2;
}
constexpr bool is_small(ElementType type) noexcept { return is_small_float(type) || is_small_integer(type); }
int bits(ElementType type) noexcept;  // of one element in a file; 0 for strings

// The value of a small float from its bits, and the bits of the nearest one (ties to even). With |saturate| values beyond the
// range become the largest finite one, else what the type has for infinity or NaN.
float small_float(ElementType type, unsigned bits) noexcept;
unsigned small_float_bits(ElementType type, float value, bool saturate) noexcept;
// f8e8m0 has powers of two only; this says how a value between two is rounded.
enum class ScaleRounding : std::uint8_t { nearest, up, down };
unsigned scale_bits(float value, bool saturate, ScaleRounding rounding) noexcept;

// |x| (any dtype) as values of a small type, held as held_as() says.
HostArray to_small(const HostArray& x, ElementType type, bool saturate, ScaleRounding rounding = ScaleRounding::up);

}  // namespace tenon::onnx

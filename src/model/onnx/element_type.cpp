#include "model/onnx/element_type.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "tenon/error.h"

namespace tenon::onnx {
namespace {

struct TypeRow {
  std::string_view name;
  int bits;
  DType held;
};

constexpr std::array<TypeRow, kElementTypes> kTypes{{
    {"undefined", 0, DType::f32},
    {"float", 32, DType::f32},
    {"uint8", 8, DType::u8},
    {"int8", 8, DType::i8},
    {"uint16", 16, DType::u16},
    {"int16", 16, DType::i16},
    {"int32", 32, DType::i32},
    {"int64", 64, DType::i64},
    {"string", 0, DType::u8},
    {"bool", 8, DType::boolean},
    {"float16", 16, DType::f16},
    {"double", 64, DType::f64},
    {"uint32", 32, DType::u32},
    {"uint64", 64, DType::u64},
    {"complex64", 64, DType::f32},
    {"complex128", 128, DType::f64},
    {"bfloat16", 16, DType::bf16},
    {"float8e4m3fn", 8, DType::f32},
    {"float8e4m3fnuz", 8, DType::f32},
    {"float8e5m2", 8, DType::f32},
    {"float8e5m2fnuz", 8, DType::f32},
    {"uint4", 4, DType::u8},
    {"int4", 4, DType::i8},
    {"float4e2m1", 4, DType::f32},
    {"float8e8m0", 8, DType::f32},
    {"uint2", 2, DType::u8},
    {"int2", 2, DType::i8},
    {"float6e2m3", 6, DType::f32},
    {"float6e3m2", 6, DType::f32},
}};

const TypeRow& row(ElementType type) { return kTypes[static_cast<std::size_t>(type)]; }

// How a small float's bits are read: sign, exponent, mantissa.
struct Layout {
  int exponent_bits, mantissa_bits, bias;
  unsigned finite;     // how many non-negative codes are finite
  bool unsigned_zero;  // the code of -0 is NaN, and there is no other
  bool has_infinity, has_nan;
};

Layout layout(ElementType type) {
  switch (type) {
    case ElementType::f8e4m3fn: return {4, 3, 7, 0x7f, false, false, true};
    case ElementType::f8e4m3fnuz: return {4, 3, 8, 0x80, true, false, true};
    case ElementType::f8e5m2: return {5, 2, 15, 0x7c, false, true, true};
    case ElementType::f8e5m2fnuz: return {5, 2, 16, 0x80, true, false, true};
    case ElementType::f6e2m3: return {2, 3, 1, 0x20, false, false, false};
    case ElementType::f6e3m2: return {3, 2, 3, 0x20, false, false, false};
    default: return {2, 1, 1, 0x8, false, false, false};
  }
}

float magnitude(const Layout& l, unsigned code) {
  const int exponent = static_cast<int>(code >> l.mantissa_bits);
  const int mantissa = static_cast<int>(code & ((1u << l.mantissa_bits) - 1));
  if (exponent == 0) return std::ldexp(static_cast<float>(mantissa), 1 - l.bias - l.mantissa_bits);
  return std::ldexp(static_cast<float>(mantissa + (1 << l.mantissa_bits)), exponent - l.bias - l.mantissa_bits);
}

unsigned sign_bit(const Layout& l) { return 1u << (l.exponent_bits + l.mantissa_bits); }

}  // namespace

std::string_view name(ElementType type) noexcept { return row(type).name; }
int bits(ElementType type) noexcept { return row(type).bits; }

DType held_as(ElementType type) {
  if (type == ElementType::undefined || type == ElementType::string || type == ElementType::complex64 ||
      type == ElementType::complex128)
    throw Error(ErrorCode::unimplemented, fmt::format("tensors of {} are not supported", name(type)));
  return row(type).held;
}

ElementType element_type(DType dtype) noexcept {
  for (int i = 1; i < static_cast<int>(ElementType::f8e4m3fn); ++i) {
    const auto type = static_cast<ElementType>(i);
    if (type == ElementType::string || type == ElementType::complex64 || type == ElementType::complex128) continue;
    if (row(type).held == dtype) return type;
  }
  return ElementType::f32;
}

float small_float(ElementType type, unsigned code) noexcept {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  if (type == ElementType::f8e8m0) return code == 0xff ? nan : std::ldexp(1.0f, static_cast<int>(code) - 127);
  const Layout l = layout(type);
  const unsigned sign = sign_bit(l), size = code & (sign - 1);
  if (l.unsigned_zero && code == sign) return nan;
  if (size >= l.finite) {
    if (l.has_infinity && size == l.finite)
      return code & sign ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::infinity();
    return nan;
  }
  const float value = magnitude(l, size);
  return code & sign ? -value : value;
}

unsigned small_float_bits(ElementType type, float value, bool saturate) noexcept {
  if (type == ElementType::f8e8m0) return scale_bits(value, saturate, ScaleRounding::up);
  const Layout l = layout(type);
  const unsigned sign = sign_bit(l), negative = std::signbit(value) ? sign : 0, nan = l.unsigned_zero ? sign : sign - 1;
  if (std::isnan(value)) return l.has_nan ? (l.unsigned_zero ? sign : nan | negative) : sign;
  const float size = std::abs(value);
  unsigned low = 0, high = l.finite;  // of neighbouring codes; |high| may be one past the last, where the next value would be
  while (high - low > 1) {
    const unsigned middle = (low + high) / 2;
    (magnitude(l, middle) <= size ? low : high) = middle;
  }
  const float below = magnitude(l, low);
  const float above = low + 1 < l.finite ? magnitude(l, low + 1) : below + (below - magnitude(l, low - 1));
  unsigned code = low;
  if (size - below > above - size || (size - below == above - size && low % 2 == 1)) ++code;
  if (std::isinf(size)) code = l.finite;
  if (code >= l.finite) {
    if (saturate || !l.has_nan)
      code = l.finite - 1;
    else if (l.has_infinity)
      code = l.finite;
    else
      return l.unsigned_zero ? sign : nan | negative;
  }
  return l.unsigned_zero && code == 0 ? 0 : code | negative;
}

unsigned scale_bits(float value, bool saturate, ScaleRounding rounding) noexcept {
  const auto all = std::bit_cast<std::uint32_t>(value);
  const unsigned exponent = all >> 23 & 0xff, fraction = all & 0x7fffff;
  if (exponent == 0xff) return 0xff;
  bool up = false;
  if (rounding == ScaleRounding::up) up = fraction != 0;
  if (rounding == ScaleRounding::nearest) up = fraction > 0x400000 || (fraction == 0x400000 && exponent > 0);
  if (saturate && exponent == 0xfe) up = false;
  return exponent + (up ? 1 : 0);
}

HostArray to_small(const HostArray& x, ElementType type, bool saturate, ScaleRounding rounding) {
  const std::int64_t count = x.elements();
  if (is_small_float(type)) {
    const HostArray from = x.cast(DType::f32);
    HostArray out = HostArray::empty(DType::f32, x.shape());
    const std::span<const float> values = from.view<float>();
    const std::span<float> result = out.mutable_view<float>();
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i)
      result[i] = small_float(type, type == ElementType::f8e8m0 ? scale_bits(values[i], saturate, rounding)
                                                                : small_float_bits(type, values[i], saturate));
    return out;
  }
  // Integers keep their low bits, as every conversion between integers of ONNX does.
  const HostArray from = x.cast(DType::i64);
  const std::span<const std::int64_t> values = from.view<std::int64_t>();
  const int width = bits(type);
  const bool is_signed = type == ElementType::i4 || type == ElementType::i2;
  HostArray wide = HostArray::empty(DType::i64, x.shape());
  const std::span<std::int64_t> result = wide.mutable_view<std::int64_t>();
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    std::int64_t low = values[i] & ((1 << width) - 1);
    if (is_signed && low >> (width - 1)) low -= 1 << width;
    result[i] = low;
  }
  return wide.cast(held_as(type));
}

}  // namespace tenon::onnx

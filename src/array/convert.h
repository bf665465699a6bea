// Conversions between element types: one scalar rule per pair, and loops over them.
//
// Every conversion rounds once, to nearest even; overflow of a float gives infinity; NaN stays a quiet NaN; subnormals
// are exact. To integers: truncation towards zero, saturation, NaN -> 0. Integers narrow by saturating. Every value except
// zero, including NaN, is true. f16 and bf16 are represented by their bits in std::uint16_t.
// Results for f16 do not depend on the thread's flush-to-zero state; those for f32 subnormals do.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "tenon/array/dtype.h"

namespace tenon {

// The storage of a dtype as a C++ type of its own.
struct Bool {
  std::uint8_t bits;
};
struct Half {
  std::uint16_t bits;
};
struct BFloat16 {
  std::uint16_t bits;
};

constexpr float half_to_float(std::uint16_t half) noexcept {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t magnitude = static_cast<std::uint32_t>(half & 0x7fffu) << 13;
  const std::uint32_t normal = magnitude + (112u << 23);
  // A subnormal is computed by subtracting normal numbers, so that it is correct even if subnormals are flushed.
  constexpr std::uint32_t kMagic = 113u << 23;
  const auto subnormal = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude + kMagic) - std::bit_cast<float>(kMagic));
  const std::uint32_t special = magnitude | 0x7f800000u | (magnitude > 0x0f800000u ? 0x00400000u : 0u);
  const std::uint32_t finite = magnitude < 0x00800000u ? subnormal : normal;
  return std::bit_cast<float>(sign | (magnitude >= 0x0f800000u ? special : finite));
}

constexpr std::uint16_t float_to_half(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  // From 65520 on, rounding carries into the exponent and gives infinity; from 2^16 on it would go beyond infinity.
  const std::uint32_t normal = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  // One ULP of 0.5f is the smallest f16, so the addition rounds to it.
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  const std::uint32_t special = magnitude > 0x7f800000u ? (0x7e00u | ((magnitude >> 13) & 0x3ffu)) : 0x7c00u;
  const std::uint32_t finite = magnitude < 0x38800000u ? subnormal : normal;
  return static_cast<std::uint16_t>(sign | (magnitude >= 0x47800000u ? special : finite));
}

constexpr float bfloat16_to_float(std::uint16_t bits) noexcept {
  const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
  const std::uint32_t quiet = (wide & 0x7fffffffu) > 0x7f800000u ? 0x00400000u : 0u;
  return std::bit_cast<float>(wide | quiet);
}

constexpr std::uint16_t float_to_bfloat16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const std::uint32_t quiet = (bits >> 16) | 0x0040u;
  return static_cast<std::uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}

// Rounding to odd: inexact results get an odd last bit. Rounding such a value again, to at least two bits fewer, gives
// the correctly rounded result (Boldo and Melquiond, 2008).
constexpr float double_to_float_odd(double value) noexcept {
  const auto nearest = static_cast<float>(value);
  const auto back = static_cast<double>(nearest);
  const double size = value < 0 ? -value : value, nearest_size = back < 0 ? -back : back;
  const auto bits = std::bit_cast<std::uint32_t>(nearest);
  const std::uint32_t odd = (bits - (nearest_size > size ? 1u : 0u)) | 1u;
  return std::bit_cast<float>(back == value || value != value ? bits : odd);
}

constexpr float magnitude_to_float_odd(std::uint64_t magnitude) noexcept {
  const int width = static_cast<int>(std::bit_width(magnitude));
  if (width <= 24) return static_cast<float>(magnitude);
  const int shift = width - 24;
  const std::uint64_t lost = magnitude & ((std::uint64_t{1} << shift) - 1);
  const std::uint64_t kept = (magnitude >> shift) | (lost != 0 ? 1u : 0u);
  return static_cast<float>(kept) * std::bit_cast<float>(static_cast<std::uint32_t>(127 + shift) << 23);
}

constexpr std::uint16_t double_to_half(double value) noexcept { return float_to_half(double_to_float_odd(value)); }
constexpr std::uint16_t double_to_bfloat16(double value) noexcept { return float_to_bfloat16(double_to_float_odd(value)); }

template <class Integer, class Float>
constexpr Integer float_to_integer(Float value) noexcept {
  using Limits = std::numeric_limits<Integer>;
  // The smallest value in range and the first one above: both are powers of two (or 0) and exact in any float type.
  constexpr auto low = static_cast<Float>(Limits::min());
  constexpr auto beyond = static_cast<Float>(Limits::max() / 2 + 1) * Float{2};
  if (value != value) return 0;
  if (value < low) return Limits::min();
  if (value >= beyond) return Limits::max();
  return static_cast<Integer>(value);
}

template <class To, class From>
constexpr To integer_to_integer(From value) noexcept {
  using Limits = std::numeric_limits<To>;
  if (std::cmp_less(value, Limits::min())) return Limits::min();
  if (std::cmp_greater(value, Limits::max())) return Limits::max();
  return static_cast<To>(value);
}

template <class Integer>
constexpr float integer_to_float_odd(Integer value) noexcept {
  if constexpr (sizeof(Integer) <= 2) return static_cast<float>(value);
  if (value < 0) return -magnitude_to_float_odd(~static_cast<std::uint64_t>(value) + 1);
  return magnitude_to_float_odd(static_cast<std::uint64_t>(value));
}

// The rule for one element. From and To are the integers, float, double, Bool, Half and BFloat16.
template <class To, class From>
constexpr To convert_element(From value) noexcept {
  constexpr bool from_half = std::is_same_v<From, Half>, from_bfloat = std::is_same_v<From, BFloat16>;
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (std::is_same_v<From, Bool>) {
    return convert_element<To>(static_cast<std::uint8_t>(value.bits != 0));
  } else if constexpr (std::is_same_v<To, Bool>) {
    if constexpr (from_half || from_bfloat)
      return {static_cast<std::uint8_t>((value.bits & 0x7fffu) != 0)};
    else
      return {static_cast<std::uint8_t>(value != From{})};
  } else if constexpr (from_half) {
    return convert_element<To>(half_to_float(value.bits));
  } else if constexpr (from_bfloat) {
    return convert_element<To>(bfloat16_to_float(value.bits));
  } else if constexpr (std::is_same_v<To, Half>) {
    if constexpr (std::is_integral_v<From>) return {float_to_half(integer_to_float_odd(value))};
    if constexpr (std::is_same_v<From, double>) return {double_to_half(value)};
    return {float_to_half(static_cast<float>(value))};
  } else if constexpr (std::is_same_v<To, BFloat16>) {
    if constexpr (std::is_integral_v<From>) return {float_to_bfloat16(integer_to_float_odd(value))};
    if constexpr (std::is_same_v<From, double>) return {double_to_bfloat16(value)};
    return {float_to_bfloat16(static_cast<float>(value))};
  } else if constexpr (std::is_floating_point_v<To>) {
    return static_cast<To>(value);
  } else if constexpr (std::is_floating_point_v<From>) {
    return float_to_integer<To>(value);
  } else {
    return integer_to_integer<To>(value);
  }
}

// Converts |n| elements. |in| and |out| are aligned to their elements and do not overlap, unless they are equal and the
// types have the same size. Neither type is a block format.
void convert_elements(DType from, const void* in, DType to, void* out, std::int64_t n);

// Makes every byte 0 or 1, because reading any other value as a bool is undefined behaviour.
void normalize_booleans(void* bytes, std::size_t n) noexcept;

}  // namespace tenon

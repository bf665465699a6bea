// Every pair of element types against a slow definition: the source's exact value as a long double (64 bits of
// significand hold every source type), rounded or clamped with ordinary arithmetic.
#include "array/convert.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace tenon {
namespace {

using Bits = std::uint64_t;

Bits bits_at(const std::vector<std::byte>& bytes, DType dtype, std::size_t i) {
  Bits out = 0;
  std::memcpy(&out, bytes.data() + i * element_bytes(dtype), element_bytes(dtype));
  return out;
}

struct FloatFormat {
  int precision, smallest_exponent, largest_exponent, bits;
};
FloatFormat format_of(DType dtype) {
  switch (dtype) {
    case DType::f16: return {11, -14, 15, 16};
    case DType::bf16: return {8, -126, 127, 16};
    case DType::f32: return {24, -126, 127, 32};
    default: return {53, -1022, 1023, 64};
  }
}

// Decodes sign, exponent and fraction by their meaning.
long double exact_value(DType dtype, Bits bits) {
  if (dtype == DType::boolean) return bits != 0 ? 1 : 0;
  if (is_unsigned_integer(dtype)) return static_cast<long double>(bits);
  const int width = 8 * static_cast<int>(element_bytes(dtype));
  if (is_signed_integer(dtype)) {
    const auto extended = static_cast<std::int64_t>(bits << (64 - width)) >> (64 - width);
    return static_cast<long double>(extended);
  }
  const FloatFormat format = format_of(dtype);
  const Bits fraction = bits & ((Bits{1} << (format.precision - 1)) - 1);
  const Bits exponent = (bits >> (format.precision - 1)) & ((Bits{1} << (format.bits - format.precision)) - 1);
  const bool negative = (bits >> (format.bits - 1)) != 0;
  long double size = 0;
  if (static_cast<int>(exponent) == 2 * format.largest_exponent + 1)
    size = fraction != 0 ? std::numeric_limits<long double>::quiet_NaN() : std::numeric_limits<long double>::infinity();
  else if (exponent == 0)
    size = std::ldexp(static_cast<long double>(fraction), format.smallest_exponent - format.precision + 1);
  else
    size = std::ldexp(1 + std::ldexp(static_cast<long double>(fraction), 1 - format.precision),
                      static_cast<int>(exponent) - format.largest_exponent);
  return negative ? -size : size;
}

Bits encode_float(const FloatFormat& format, long double value) {
  const Bits sign = std::signbit(value) ? Bits{1} << (format.bits - 1) : 0;
  const Bits infinity = static_cast<Bits>(2 * format.largest_exponent + 1) << (format.precision - 1);
  long double size = std::fabs(value);
  if (std::isinf(size)) return sign | infinity;
  if (size == 0) return sign;
  const int exponent = std::max(std::ilogb(size), format.smallest_exponent);
  const long double quantum = std::ldexp(1.0L, exponent - format.precision + 1);
  size = std::nearbyint(size / quantum) * quantum;  // both steps are exact but the rounding
  if (size >= std::ldexp(1.0L, format.largest_exponent + 1)) return sign | infinity;
  if (size < std::ldexp(1.0L, format.smallest_exponent))
    return sign | static_cast<Bits>(std::ldexp(size, format.precision - 1 - format.smallest_exponent));
  const int rounded_exponent = std::ilogb(size);
  const auto significand = static_cast<Bits>(std::ldexp(size, format.precision - 1 - rounded_exponent));
  return sign | (static_cast<Bits>(rounded_exponent + format.largest_exponent) << (format.precision - 1)) |
         (significand & ((Bits{1} << (format.precision - 1)) - 1));
}

Bits encode_integer(DType dtype, long double value) {
  if (std::isnan(value)) return 0;
  const int width = 8 * static_cast<int>(element_bytes(dtype));
  const int digits = is_signed_integer(dtype) ? width - 1 : width;
  const long double largest = std::ldexp(1.0L, digits) - 1, smallest = is_signed_integer(dtype) ? -std::ldexp(1.0L, digits) : 0;
  const long double whole = std::min(std::max(std::trunc(value), smallest), largest);
  const Bits bits = whole < 0 ? static_cast<Bits>(static_cast<std::int64_t>(whole)) : static_cast<Bits>(whole);
  return width == 64 ? bits : bits & ((Bits{1} << width) - 1);
}

bool is_quiet_nan(DType dtype, Bits bits) {
  return std::isnan(exact_value(dtype, bits)) && ((bits >> (format_of(dtype).precision - 2)) & 1) != 0;
}

// Everything for 8 and 16 bits. For wider types: both sides of every f16 and bf16 and of every midpoint between two,
// powers of two and their neighbours, all special bit patterns, and random bits.
std::vector<std::byte> sources(DType dtype) {
  const std::size_t size = element_bytes(dtype);
  std::vector<Bits> bits;
  if (dtype == DType::boolean) {
    bits = {0, 1};
  } else if (size <= 2) {
    for (Bits b = 0; b < (Bits{1} << (8 * size)); ++b) bits.push_back(b);
  } else {
    std::mt19937_64 random(42);
    for (int i = 0; i < 20000; ++i) bits.push_back(random());
    for (int shift = 0; shift < 64; ++shift)
      for (Bits delta : {Bits{0}, Bits{1}, ~Bits{0}}) {
        bits.push_back((Bits{1} << shift) + delta);
        bits.push_back(~(Bits{1} << shift) + delta);
        bits.push_back((~Bits{0} >> shift) + delta);
        bits.push_back((random() >> shift) + delta);
      }
    if (is_float(dtype))
      for (DType narrow : {DType::f16, DType::bf16})
        for (Bits b = 0; b < 0x10000; b += 1 + random() % 13) {
          const long double value = exact_value(narrow, b), next = exact_value(narrow, (b + 1) & 0xffff);
          for (long double v : {value, (value + next) / 2}) {
            if (!std::isfinite(v)) continue;
            const Bits exact = encode_float(format_of(dtype), v);
            for (Bits delta : {Bits{0}, Bits{1}, ~Bits{0}}) bits.push_back(exact + delta);
          }
        }
    else
      for (int shift = 0; shift < 57; ++shift)  // integers around the midpoints of bf16 and f16
        for (Bits top = 0x80; top < 0x1000; top += 1 + random() % 31)
          for (Bits delta : {Bits{0}, Bits{1}, ~Bits{0}}) bits.push_back((top << shift) + delta);
  }
  std::vector<std::byte> bytes(bits.size() * size);
  for (std::size_t i = 0; i < bits.size(); ++i) std::memcpy(bytes.data() + i * size, &bits[i], size);
  return bytes;
}

using Pair = std::tuple<DType, DType>;
class EveryPair : public testing::TestWithParam<Pair> {};

TEST_P(EveryPair, ConvertsAsDefined) {
  const auto [from, to] = GetParam();
  const std::vector<std::byte> in = sources(from);
  const std::size_t n = in.size() / element_bytes(from);
  std::vector<std::byte> out(n * element_bytes(to));
  convert_elements(from, in.data(), to, out.data(), static_cast<std::int64_t>(n));
  for (std::size_t i = 0; i < n; ++i) {
    const Bits source = bits_at(in, from, i), got = bits_at(out, to, i);
    const long double value = exact_value(from, source);
    if (from == to) {
      ASSERT_EQ(got, source);
    } else if (is_float(to) && std::isnan(value)) {
      ASSERT_TRUE(is_quiet_nan(to, got)) << std::hex << source << " -> " << got;
      ASSERT_EQ(std::signbit(exact_value(to, got)), std::signbit(value)) << std::hex << source << " -> " << got;
    } else {
      const Bits wanted = to == DType::boolean ? (value != 0 ? 1 : 0)
                          : is_float(to)       ? encode_float(format_of(to), value)
                                               : encode_integer(to, value);
      ASSERT_EQ(got, wanted) << std::hex << source << " is " << value;
    }
  }
}

std::vector<DType> element_types() {
  std::vector<DType> out;
  for (DType dtype : all_dtypes())
    if (!is_block(dtype)) out.push_back(dtype);
  return out;
}
INSTANTIATE_TEST_SUITE_P(Convert, EveryPair,
                         testing::Combine(testing::ValuesIn(element_types()), testing::ValuesIn(element_types())),
                         [](const testing::TestParamInfo<Pair>& pair) {
                           return std::string(name(std::get<0>(pair.param))) + "To" + std::string(name(std::get<1>(pair.param)));
                         });

TEST(Convert, DoubleToHalfRoundsOnce) {
  // Just above the midpoint of 1 and the next f16: through f32 it would fall onto the midpoint and round down.
  EXPECT_EQ(double_to_half(1 + 0x1p-11 + 0x1p-40), 0x3c01);
  EXPECT_EQ(float_to_half(static_cast<float>(1 + 0x1p-11 + 0x1p-40)), 0x3c00);
  EXPECT_EQ(double_to_bfloat16(1 + 0x1p-8 + 0x1p-40), 0x3f81);
}

TEST(Convert, LargeIntegersRoundOnceToBfloat16) {
  const std::int64_t value = (std::int64_t{1} << 40) + (std::int64_t{1} << 32) + 1;
  EXPECT_EQ(convert_element<BFloat16>(value).bits, float_to_bfloat16(0x1p40f) + 1);
  EXPECT_EQ(convert_element<BFloat16>(-value).bits, float_to_bfloat16(-0x1p40f) + 1);
}

TEST(Convert, WorksAtCompileTime) {
  static_assert(half_to_float(0x3c00) == 1.0f && float_to_half(65520.0f) == 0x7c00 && float_to_half(65519.996f) == 0x7bff);
  static_assert(float_to_bfloat16(1.0f) == 0x3f80 && bfloat16_to_float(0x4049) == 3.140625f);
  static_assert(float_to_integer<std::uint8_t>(300.0f) == 255 && float_to_integer<std::int8_t>(-1e9) == -128);
}

TEST(Convert, InPlaceWorksForTypesOfOneSize) {
  std::vector<float> values{1.5f, -2.5f, 3e9f};
  convert_elements(DType::f32, values.data(), DType::i32, values.data(), 3);
  std::vector<std::int32_t> got(3);
  std::memcpy(got.data(), values.data(), 12);
  EXPECT_EQ(got, (std::vector<std::int32_t>{1, -2, std::numeric_limits<std::int32_t>::max()}));
}

}  // namespace
}  // namespace tenon

// Floats of four to eight bits: the formats of OCP's FP8 and MX specifications.
//
// The non-negative codes of a format are ordered like their values, so rounding is a search in the table of values.
#pragma once

#include <array>
#include <cstdint>

namespace tenon {

struct MinifloatFormat {
  int exponent_bits, mantissa_bits, bias;
  std::uint8_t largest;        // the code of the largest finite value
  bool has_infinity, has_nan;  // infinity is the code after |largest|; NaN the largest code
};

inline constexpr MinifloatFormat kE4M3{4, 3, 7, 0x7e, false, true};
inline constexpr MinifloatFormat kE5M2{5, 2, 15, 0x7b, true, true};
inline constexpr MinifloatFormat kE3M2{3, 2, 3, 0x1f, false, false};
inline constexpr MinifloatFormat kE2M3{2, 3, 1, 0x1f, false, false};
inline constexpr MinifloatFormat kE2M1{2, 1, 1, 0x07, false, false};

class Minifloat {
 public:
  explicit Minifloat(const MinifloatFormat& format);
  static const Minifloat& of(const MinifloatFormat& format);

  int bits() const noexcept { return 1 + format_.exponent_bits + format_.mantissa_bits; }
  float largest() const noexcept { return values_[format_.largest]; }
  // Rounds to nearest, ties to even. Finite values saturate; infinity becomes infinity, else NaN, else the largest value.
  std::uint8_t encode(float value) const noexcept;
  float decode(std::uint8_t code) const noexcept;

 private:
  MinifloatFormat format_;
  std::array<float, 128> values_{};  // of the codes without a sign
};

}  // namespace tenon

#include "array/codec/minifloat.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon {

Minifloat::Minifloat(const MinifloatFormat& format) : format_(format) {
  const int steps = 1 << format.mantissa_bits;
  for (int code = 0; code < 1 << (format.exponent_bits + format.mantissa_bits); ++code) {
    const int exponent = code / steps, fraction = code % steps;
    values_[static_cast<std::size_t>(code)] =
        exponent == 0 ? std::ldexp(static_cast<float>(fraction), 1 - format.bias - format.mantissa_bits)
                      : std::ldexp(static_cast<float>(steps + fraction), exponent - format.bias - format.mantissa_bits);
    if (code <= format.largest) continue;
    const bool is_infinity = format.has_infinity && code == format.largest + 1;
    values_[static_cast<std::size_t>(code)] =
        is_infinity ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
  }
}

const Minifloat& Minifloat::of(const MinifloatFormat& format) {
  static const Minifloat e4m3(kE4M3), e5m2(kE5M2), e3m2(kE3M2), e2m3(kE2M3), e2m1(kE2M1);
  if (format.exponent_bits == 4) return e4m3;
  if (format.exponent_bits == 5) return e5m2;
  if (format.exponent_bits == 3) return e3m2;
  return format.mantissa_bits == 3 ? e2m3 : e2m1;
}

std::uint8_t Minifloat::encode(float value) const noexcept {
  const auto sign = static_cast<std::uint8_t>(std::signbit(value) ? 1 << (bits() - 1) : 0);
  const auto nan = static_cast<std::uint8_t>((1 << (bits() - 1)) - 1);
  const auto with_sign = [&](int code) { return static_cast<std::uint8_t>(code | sign); };
  if (std::isnan(value)) return with_sign(format_.has_nan ? nan : format_.largest);
  if (std::isinf(value)) return with_sign(format_.has_infinity ? format_.largest + 1 : format_.has_nan ? nan : format_.largest);
  const float size = std::fabs(value);
  const auto* const end = values_.data() + format_.largest + 1;
  const auto* const above = std::lower_bound(values_.data(), end, size);
  if (above == end) return with_sign(format_.largest);
  const int code = static_cast<int>(above - values_.data());
  if (*above == size || code == 0) return with_sign(code);
  const double low = static_cast<double>(size) - values_[static_cast<std::size_t>(code - 1)];
  const double high = static_cast<double>(*above) - size;
  if (low != high) return with_sign(low < high ? code - 1 : code);
  return with_sign(code % 2 == 0 ? code : code - 1);
}

float Minifloat::decode(std::uint8_t code) const noexcept {
  const int sign = 1 << (bits() - 1);
  const float size = values_[static_cast<std::size_t>(code & (sign - 1))];
  return (code & sign) != 0 ? -size : size;
}

}  // namespace tenon

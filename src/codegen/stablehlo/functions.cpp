#include "codegen/stablehlo/functions.h"

#include <limits>
#include <numbers>

#include "math/special.h"
#include "math/stablehlo_coefficients.h"

namespace tenon::stablehlo {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kLn2 = std::numbers::ln2;

DType bits_dtype(const Term& x) { return x.dtype() == DType::f64 ? DType::i64 : DType::i32; }
Term bits(const Term& x) { return bitcast(x, bits_dtype(x)); }
Term from_bits(const Term& x) { return bitcast(x, x.dtype() == DType::i64 ? DType::f64 : DType::f32); }
Term bits_like(const Term& x, std::uint64_t value) {
  const Shape shape = x.shape();
  return x.writer().splat_bits(value, x.dtype(), shape);
}

bool goes_wide(const Term& x) { return x.dtype() == DType::f32 && x.writer().target().wide; }
Term wide(const Term& x) { return convert(x, DType::f64); }
Term narrow(const Term& x) { return convert(x, DType::f32); }

// c0 + c1 z + c2 z^2 + ...
template <std::size_t N>
Term polynomial(const Term& z, const double (&c)[N]) {
  Term sum = z.like(c[N - 1]);
  for (std::size_t i = N - 1; i-- > 0;) sum = sum * z + c[i];
  return sum;
}

// A 1 that is opaque to compilers, so that (1 + x) - 1 is not simplified.
Term opaque_one(const Term& x) { return select(is_nan(x), x, 1.0); }

// x in [low, high], or NaN.
Term clamp(const Term& x, double low, double high) {
  const Term above = select(x < low, low, x);
  return select(above > high, high, above);
}

// 2^n for an integer n within the exponents of normal numbers.
Term power_of_two(const Term& n) {
  const bool is_wide = n.dtype() == DType::f64;
  const Term exponent = convert(n, is_wide ? DType::i64 : DType::i32) + (is_wide ? 1023.0 : 127.0);
  return from_bits(exponent << (is_wide ? 52 : 23));
}

// x = 2^e m with m between sqrt(1/2) and sqrt(2), for positive normal x.
struct Split {
  Term e, m;
};
Split split(const Term& x) {
  const bool is_wide = x.dtype() == DType::f64;
  const std::uint64_t half_root = is_wide ? 0x3fe6a09e667f3bcdu : 0x3f3504f3u;
  const Term moved = bits(x) - bits_like(bits(x), half_root);
  const Term e = convert(moved >> (is_wide ? 52 : 23), x.dtype());
  const Term rest = moved & bits_like(moved, is_wide ? 0xfffffffffffffu : 0x7fffffu);
  return {e, from_bits(rest + bits_like(rest, half_root))};
}

Term is_positive_number(const Term& x) { return (x > 0.0) & (x < kInfinity); }

// 2^n exp(r) for |r| up to ln(2) / 2, where XLA's own exponential is off by 3 ULP. Scales in two steps, because 2^n alone may be
// outside the range of normal numbers.
Term scaled_exp(const Term& n, const Term& r) {
  const Term half = unary("floor", n * 0.5);
  return (1.0 + (r + r * r * polynomial(r, coefficients::kExpm1))) * power_of_two(half) * power_of_two(n - half);
}

}  // namespace

Term is_nan(const Term& x) { return x != x; }
Term is_inf(const Term& x) { return abs(x) == kInfinity; }
Term signbit(const Term& x) { return bits(x) < 0.0; }
Term abs(const Term& x) { return unary("abs", x); }
// Does not use masks, because a compiler generated wrong code for them.
Term copysign(const Term& x, const Term& y) {
  const Term size = abs(x);
  return select(signbit(y), -size, size);
}
// Uses comparisons, because some compilers confuse maxima that ignore NaN with those that propagate it.
Term min(const Term& x, const Term& y) { return select((x < y) | is_nan(x), x, y); }
Term max(const Term& x, const Term& y) { return select((x > y) | is_nan(x), x, y); }
Term floor(const Term& x) { return unary("floor", x); }
Term ceil(const Term& x) { return unary("ceil", x); }
Term trunc(const Term& x) { return select(x < 0.0, ceil(x), floor(x)); }
Term rint(const Term& x) { return unary("round_nearest_even", x); }
Term fmod(const Term& x, const Term& y) { return binary("remainder", x, y); }

Term sqrt(const Term& x) {
  if (goes_wide(x) && !x.writer().target().rounds_quotients) return narrow(sqrt(wide(x)));
  return unary("sqrt", x);
}
// A quotient of doubles, rounded to f32, is correctly rounded, because doubles have more than twice the bits. Compilers know this
// and would divide in f32, or multiply by the reciprocal of a constant; the factors and the barrier prevent that.
Term quotient(const Term& x, const Term& y) {
  if (x.writer().target().rounds_quotients) return x / y;
  if (goes_wide(x)) return narrow(wide(x) * 2.0 / barrier(wide(y)) * 0.5);
  return x / barrier(y);
}
Term exp(const Term& x) { return unary("exponential", x); }
Term log(const Term& x) { return unary("log", x); }
Term sin(const Term& x) { return unary("sine", x); }
Term cos(const Term& x) { return unary("cosine", x); }

// One Newton step after a power, whose exponent of 1/3 is not exact.
Term cbrt(const Term& x) {
  if (goes_wide(x)) return narrow(cbrt(wide(x)));
  const Term t = abs(x);
  const Term ordinary = is_positive_number(t);
  const Term safe = select(ordinary, t, 1.0);
  const Term y = binary("power", safe, safe.like(1.0 / 3.0));
  const Term better = y - (y - safe / (y * y)) * (1.0 / 3.0);
  // A subnormal number may be positive in the comparison but zero in the power.
  return copysign(select(ordinary & (y > 0.0), better, t), x);
}

Term exp2(const Term& x) {
  if (goes_wide(x)) return narrow(exp2(wide(x)));
  const Term c = clamp(x, -1100, 1100);
  const Term n = rint(c);
  return scaled_exp(n, (c - n) * kLn2);
}
Term exact_exp(const Term& x) {
  const Term c = clamp(x, -760, 720);
  const Term n = rint(c * std::numbers::log2e);
  // The first part of ln(2) has so few bits that its product with n is exact.
  constexpr double kHigh = 0x1.62e42fee00000p-1, kLow = 0x1.a39ef35793c76p-33;
  return scaled_exp(n, (c - n * kHigh) - n * kLow);
}

Term expm1(const Term& x) {
  if (goes_wide(x)) return narrow(expm1(wide(x)));
  const Term near = abs(x) < 0.35;
  const Term z = select(near, x, 0.0);
  return select(near, z + z * z * polynomial(z, coefficients::kExpm1), exp(x) - 1.0);
}

Term log2(const Term& x) {
  if (goes_wide(x)) return narrow(log2(wide(x)));
  const Split parts = split(x);
  return select(is_positive_number(x), parts.e + log(parts.m) * std::numbers::log2e, log(x));
}
Term log10(const Term& x) {
  if (goes_wide(x)) return narrow(log10(wide(x)));
  const Split parts = split(x);
  // The first part of log10(2) has 21 bits: its product with the exponent is exact.
  constexpr double kHigh = 0x1.34413p-2, kLow = 0x1.34413509f79ffp-2 - kHigh;
  const Term y = parts.e * kHigh + (parts.e * kLow + log(parts.m) * std::numbers::log10e);
  return select(is_positive_number(x), y, log(x));
}
Term log1p(const Term& x) {
  if (goes_wide(x)) return narrow(log1p(wide(x)));
  const Term one = opaque_one(x);
  const Term u = one + x;
  const Term lost = x - (u - one);
  const Term ordinary = is_positive_number(u);
  const Term y = log(u) + select(ordinary, lost / select(ordinary, u, 1.0), 0.0);
  return select(abs(x) < 0x1p-54, x, y);
}
Term pow(const Term& x, const Term& y) {
  if (goes_wide(x)) return narrow(pow(wide(x), wide(y)));
  return binary("power", x, y);
}

Term tan(const Term& x) {
  if (goes_wide(x)) return narrow(tan(wide(x)));
  return unary("tan", x);
}
Term atan2(const Term& y, const Term& x) {
  if (goes_wide(x)) return narrow(atan2(wide(y), wide(x)));
  // If y is subnormal and flushed to zero, XLA loses its sign.
  return copysign(binary("atan2", y, x), y);
}
Term asin(const Term& x) {
  if (goes_wide(x)) return narrow(asin(wide(x)));
  return atan2(x, sqrt((1.0 - x) * (1.0 + x)));
}
Term acos(const Term& x) {
  if (goes_wide(x)) return narrow(acos(wide(x)));
  return atan2(sqrt((1.0 - x) * (1.0 + x)), x);
}
Term atan(const Term& x) {
  if (goes_wide(x)) return narrow(atan(wide(x)));
  return atan2(x, x.like(1));
}

Term sinh(const Term& x) {
  if (goes_wide(x)) return narrow(sinh(wide(x)));
  const Term t = abs(x);
  const Term e = expm1(select(t < 40.0, t, 0.0));
  const Term half = exp(t * 0.5);  // its square may overflow where half of that does not
  return copysign(select(t < 40.0, (e + e / (e + 1.0)) * 0.5, (half * 0.5) * half), x);
}
Term cosh(const Term& x) {
  if (goes_wide(x)) return narrow(cosh(wide(x)));
  const Term t = abs(x);
  const Term e = exp(select(t < 40.0, t, 0.0));
  const Term half = exp(t * 0.5);
  return select(t < 40.0, e * 0.5 + 0.5 / e, (half * 0.5) * half);
}
Term tanh(const Term& x) {
  if (goes_wide(x)) return narrow(tanh(wide(x)));
  const Term e = expm1(abs(x) * -2.0);
  return copysign(-e / (e + 2.0), x);
}
Term asinh(const Term& x) {
  if (goes_wide(x)) return narrow(asinh(wide(x)));
  const Term t = abs(x);
  const Term large = t > 0x1p28;
  const Term s = select(large, 0.0, t);
  const Term square = s * s;
  const Term y = log1p(s + square / (1.0 + sqrt(1.0 + square)));
  return copysign(select(large, log(t) + kLn2, y), x);
}
Term acosh(const Term& x) {
  if (goes_wide(x)) return narrow(acosh(wide(x)));
  const Term large = x > 0x1p28;
  const Term t = select(large, 1.0, x) - 1.0;
  const Term y = log1p(t + sqrt(t * (t + 2.0)));
  return select(x < 1.0, kNan, select(large, log(x) + kLn2, y));
}
Term atanh(const Term& x) {
  if (goes_wide(x)) return narrow(atanh(wide(x)));
  const Term t = abs(x);
  return copysign(log1p((t + t) / (1.0 - t)) * 0.5, x);
}

namespace {

// exp(-t^2), with the square in two parts: its rounding error would be multiplied by itself.
Term gaussian(const Term& t) {
  const bool is_wide = t.dtype() == DType::f64;
  const Term b = bits(t);
  const Term high = from_bits(b & bits_like(b, is_wide ? ~std::uint64_t{0x7ffffff} : 0xfffff000u));
  return exp(-(high * high)) * exp((high - t) * (high + t));
}
// erfc of t >= 1.
Term erfc_tail(const Term& t) {
  const Term c = clamp(t, 1, 28);
  return gaussian(c) * polynomial((c - 2.0) / (c + 2.0), coefficients::kErfcTail) / (c * 2.0 + 1.0);
}
Term erf_central(const Term& x) { return x * polynomial(x * x, coefficients::kErf); }

}  // namespace

Term erf(const Term& x) {
  if (goes_wide(x)) return narrow(erf(wide(x)));
  const Term t = abs(x);
  const Term central = t < 1.0;
  return select(central, erf_central(select(central, x, 0.0)), copysign(1.0 - erfc_tail(t), x));
}
Term erfc(const Term& x) {
  if (goes_wide(x)) return narrow(erfc(wide(x)));
  const Term t = abs(x);
  const Term central = t < 1.0;
  const Term tail = erfc_tail(t);
  return select(central, 1.0 - erf_central(select(central, x, 0.0)), select(x < 0.0, 2.0 - tail, tail));
}

Term erfinv(const Term& x) {
  if (goes_wide(x)) return narrow(erfinv(wide(x)));
  return math::erfinv_of_platform(x);
}

namespace {

// Between -2.86 and -2.27 the two terms of the reflection are nearly equal.
Term lgamma_between_poles(const Term& x) {
  using namespace coefficients;
  const Term first = (clamp(x, -2.65, -2.27) - kFirstZero) - kFirstZeroRest;
  const Term second = (clamp(x, -2.86, -2.65) - kSecondZero) - kSecondZeroRest;
  return select(x > -2.65, first * polynomial(first, kLgammaFirstZero), second * polynomial(second, kLgammaSecondZero));
}

}  // namespace

// Around the zeros at 1 and 2 polynomials, up to 8 by the recurrence, then Stirling's series; negative arguments by reflection.
Term lgamma(const Term& x) {
  if (goes_wide(x)) return narrow(lgamma(wide(x)));
  const Term t = abs(x);
  const Term low = t < 0.5;
  const Term near_one = t < 1.5;
  const Term one = select(low, t, select(near_one, t - 1.0, 0.0));
  const Term of_one = one * polynomial(one, coefficients::kLgammaOne);
  Term y = select(t < 8.0, t, 2.0);
  Term product = t.like(1);
  for (int i = 0; i < 6; ++i) {
    const Term above = y > 2.5;
    y = select(above, y - 1.0, y);
    product = select(above, product * y, product);
  }
  const Term two = select(near_one, 0.0, y - 2.0);
  const Term of_two = log(product) + two * polynomial(two, coefficients::kLgammaTwo);
  const Term large = select(t < 8.0, 8.0, t);
  const Term z = 1.0 / (large * large);
  constexpr double kStirling[] = {1.0 / 12,   -1.0 / 360,      1.0 / 1260, -1.0 / 1680,
                                  1.0 / 1188, -691.0 / 360360, 1.0 / 156,  -3617.0 / 122400};
  constexpr double kHalfLog2Pi = 0.91893853320467274178;
  const Term stirling = (large - 0.5) * (log(large) - 1.0) + (polynomial(z, kStirling) / large + (kHalfLog2Pi - 0.5));
  Term positive = select(near_one, select(low, of_one - log(select(low, t, 1.0)), of_one), select(t < 8.0, of_two, stirling));
  positive = select(t == kInfinity, t, positive);
  const Term rest = x - rint(x);
  const Term sine = abs(sin(rest * std::numbers::pi));
  const Term pole = (rest == 0.0) & (x <= 0.0);
  const Term reflected = log(std::numbers::pi / (t * select(pole, 1.0, sine))) - positive;
  // Near 0 the product would underflow; gamma is 1 / x there.
  const Term near_zero = select(t < 0x1p-60, -log(t), select((x > -2.86) & (x < -2.27), lgamma_between_poles(x), reflected));
  const Term negative = select(pole | (t == kInfinity), kInfinity, near_zero);
  return select(is_nan(x), x, select(x > 0.0, positive, negative));
}

Term i0(const Term& x) {
  if (goes_wide(x)) return narrow(i0(wide(x)));
  return math::i0_of_platform(x);
}

}  // namespace tenon::stablehlo

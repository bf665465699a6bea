// Elementary functions of wide lanes (doubles): relative error about 1e-13, so that one rounding to f32 is almost always the
// correct one; special values exact. For f32 arguments; they stay right for doubles in the ranges f32 bodies produce.
//
// Compiled once per instruction set, like lanes.h.
#pragma once

#include <math.h>

#include "backends/cpu/kernels/math_powers.h"
#include "math/coefficients.h"

namespace tenon::cpu {
namespace {

inline constexpr double kInfinityD = std::numeric_limits<double>::infinity();
inline constexpr double kNanD = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kPiD = 0x1.921fb54442d18p+1, kHalfPiD = 0x1.921fb54442d18p+0;

// exp(r) - 1 for |r| <= ln(2) / 2.
TENON_INLINE Wide expm1_reduced(Wide r) { return fma(polynomial(r, coefficients::kWideExp), r * r, r); }

TENON_INLINE Wide exp(Wide x) {
  x = clamp_keeping_nan(x, -746.0, 710.0);
  const Wide t = fma(x, Wide(kLog2ED), Wide(kRoundD));
  const Wide n = t - Wide(kRoundD);
  const Wide r = fma(n, Wide(-kLn2LowD), fma(n, Wide(-kLn2HighD), x));
  return scale_by_power(expm1_reduced(r) + Wide(1), n, bits(t) << 52);
}
TENON_INLINE Wide exp2(Wide x) {
  x = clamp_keeping_nan(x, -1076.0, 1025.0);
  const Wide t = x + Wide(kRoundD);
  const Wide n = t - Wide(kRoundD);
  return scale_by_power(expm1_reduced((x - n) * Wide(kLn2D)) + Wide(1), n, bits(t) << 52);
}
TENON_INLINE Wide expm1(Wide x) {
  const Wide c = clamp_keeping_nan(x, -40.0, 710.0);
  const Wide t = fma(c, Wide(kLog2ED), Wide(kRoundD));
  const Wide n = t - Wide(kRoundD);
  const Wide r = fma(n, Wide(-kLn2LowD), fma(n, Wide(-kLn2HighD), c));
  const Wide half_scale = from_bits<double>((bits(t) << 52) + (std::uint64_t{1022} << 52));
  const Wide y = fma(half_scale, expm1_reduced(r), half_scale - Wide(0.5));
  return select(abs(x) < Wide(0x1p-54), x, y + y);
}

struct WideLogParts {
  Wide e, log_m;  // log(x) = e ln(2) + log_m
};
TENON_INLINE WideLogParts wide_log_parts(Wide x) {
  const LaneMask<double> tiny = x < Wide(0x1p-1022);
  const Uint64V u = bits(select(tiny, x * Wide(0x1p54), x)) - 0x3fe6a09e667f3bcdu;
  // There is no conversion of 64-bit integers before AVX-512: the exponent, made positive, is put under 2^52.
  const Uint64V biased = ((u + (std::uint64_t{2048} << 52)) >> 52) & 0xfffu;
  const Wide e = from_bits<double>(biased | 0x4330000000000000u) - select(tiny, Wide(0x1p52 + 2048 + 54), Wide(0x1p52 + 2048));
  const Wide f = from_bits<double>((u & 0xfffffffffffffu) + 0x3fe6a09e667f3bcdu) - Wide(1);
  const Wide s = f / (f + Wide(2));
  const Wide square = s * s;
  const Wide twice = s + s;
  return {e, fma(twice * square, polynomial(square, coefficients::kWideLog), twice)};
}
TENON_INLINE Wide log_special(Wide x, Wide y) {
  y = select(x < Wide(kInfinityD), y, x);
  return select(x > Wide(0), y, select(x == Wide(0), Wide(-kInfinityD), Wide(kNanD)));
}
TENON_INLINE Wide log(Wide x) {
  const WideLogParts parts = wide_log_parts(x);
  return log_special(x, fma(parts.e, Wide(kLn2HighD), fma(parts.e, Wide(kLn2LowD), parts.log_m)));
}
TENON_INLINE Wide log2(Wide x) {
  const WideLogParts parts = wide_log_parts(x);
  return log_special(x, fma(parts.log_m, Wide(kLog2ED), parts.e));
}
TENON_INLINE Wide log10(Wide x) {
  const WideLogParts parts = wide_log_parts(x);
  return log_special(x, fma(parts.e, Wide(0x1.34413509f79ffp-2), parts.log_m * Wide(0x1.bcb7b1526e50ep-2)));
}
TENON_INLINE Wide log1p(Wide x) {
  const Wide u = x + Wide(1);
  const Wide y = log(u) + (x - (u - Wide(1))) / u;
  return select(abs(x) < Wide(0x1p-54), x, select(u == Wide(0), Wide(-kInfinityD), select(x == Wide(kInfinityD), x, y)));
}

TENON_INLINE Wide pow(Wide x, Wide y) {
  const Wide magnitude = abs(x);
  const Wide logarithm = log2(magnitude);
  // 1^inf is 1, not the NaN of 0 * inf.
  const Wide product = select((logarithm == Wide(0)) & (y == y), Wide(0), y * logarithm);
  const LaneMask<double> integer = trunc(y) == y;
  const Wide half = y * Wide(0.5);
  const LaneMask<double> odd = integer & (trunc(half) != half);
  Wide result = exp2(product);
  result = select(odd, copysign(result, x), result);
  result = select((x < Wide(0)) & !integer & (magnitude < Wide(kInfinityD)), Wide(kNanD), result);
  result = select(is_nan(y), y, result);
  return select((y == Wide(0)) | (x == Wide(1)), Wide(1), result);
}
TENON_INLINE Wide cbrt(Wide x) { return copysign(exp2(log2(abs(x)) * Wide(1.0 / 3.0)), x); }

// --- Trigonometry ---
// Up to here n = x / (pi/2) has at most 20 bits and its products with the 33-bit parts of pi/2 are exact.
inline constexpr double kFastAngleD = 1.6e6;
struct Reduced {
  Wide r;
  Uint64V quadrant;
};
TENON_INLINE Reduced reduce_angle(Wide x) {
  const Wide t = fma(x, Wide(0x1.45f306dc9c883p-1), Wide(kRoundD));
  const Wide n = t - Wide(kRoundD);
  Wide r = fma(n, Wide(-0x1.921fb544p+0), x);
  r = fma(n, Wide(-0x1.0b4611a6p-34), r);
  r = fma(n, Wide(-0x1.3198a2e037073p-69), r);
  return {r, bits(t)};
}
TENON_INLINE Wide sin_reduced(Wide r) {
  const Wide square = r * r;
  return fma(r * square, polynomial(square, coefficients::kWideSin), r);
}
TENON_INLINE Wide cos_reduced(Wide r) {
  const Wide square = r * r;
  return fma(square * square, polynomial(square, coefficients::kWideCos), fma(square, Wide(-0.5), Wide(1)));
}
TENON_INLINE LaneMask<double> is_even(Uint64V q) { return LaneMask<double>((Int64V)((q & 1u) == 0u)); }
TENON_INLINE Wide sin_shifted(Wide x, std::uint64_t quadrant) {
  const Reduced reduced = reduce_angle(x);
  const Uint64V q = reduced.quadrant + quadrant;
  const Wide y = select(is_even(q), sin_reduced(reduced.r), cos_reduced(reduced.r));
  return from_bits<double>(bits(y) ^ ((q & 2u) << 62));
}
// Beyond the limit (and for infinities) lane by lane with the C library. Only the lanes that need it: what an element gives must
// not depend on its neighbours.
template <class F>
TENON_INLINE Wide replace_large_angles(Wide x, Wide y, F exact) {
  const LaneMask<double> large = !(abs(x) <= Wide(kFastAngleD));
  return any(large) ? select(large, per_lane(x, exact), y) : y;
}
TENON_INLINE Wide sin(Wide x) {
  return replace_large_angles(x, select(x == Wide(0), x, sin_shifted(x, 0)), [](double a) { return __builtin_sin(a); });
}
TENON_INLINE Wide cos(Wide x) {
  return replace_large_angles(x, sin_shifted(x, 1), [](double a) { return __builtin_cos(a); });
}
TENON_INLINE Wide tan(Wide x) {
  const Reduced reduced = reduce_angle(x);
  const Wide s = sin_reduced(reduced.r), c = cos_reduced(reduced.r);
  const LaneMask<double> even = is_even(reduced.quadrant);
  const Wide y = select(x == Wide(0), x, select(even, s, -c) / select(even, c, s));
  return replace_large_angles(x, y, [](double a) { return __builtin_tan(a); });
}
// atan of a magnitude up to 1: 2 atan(x / (1 + sqrt(1 + x^2))) would do; shifting by pi/8 saves the root.
TENON_INLINE Wide atan_unit(Wide t) {
  const LaneMask<double> upper = t > Wide(0x1.a827999fcef32p-2);  // tan(pi/8)
  const Wide u = select(upper, (t - Wide(1)) / (t + Wide(1)), t);
  const Wide square = u * u;
  const Wide y = fma(u * square, polynomial(square, coefficients::kWideAtan), u);
  return select(upper, y + Wide(kHalfPiD / 2), y);
}
TENON_INLINE Wide atan(Wide x) {
  const Wide t = abs(x);
  const LaneMask<double> large = t > Wide(1);
  const Wide y = atan_unit(select(large, Wide(1) / t, t));
  return copysign(select(large, Wide(kHalfPiD) - y, y), x);
}
TENON_INLINE Wide atan2(Wide y, Wide x) {
  const Wide a = abs(x), b = abs(y);
  const Wide low = min(a, b), high = max(a, b);
  Wide ratio = select(high == Wide(0), Wide(0), low / high);
  ratio = select(low == Wide(kInfinityD), Wide(1), ratio);
  Wide angle = atan_unit(ratio);
  angle = select(b > a, Wide(kHalfPiD) - angle, angle);
  angle = select(signbit(x), Wide(kPiD) - angle, angle);
  return select(is_nan(x) | is_nan(y), x + y, copysign(angle, y));
}
// asin of a magnitude up to 1/2.
TENON_INLINE Wide asin_half(Wide t) {
  const Wide square = t * t;
  return fma(t * square, polynomial(square, coefficients::kWideAsin), t);
}
TENON_INLINE Wide asin(Wide x) {
  const Wide t = abs(x);
  const LaneMask<double> upper = t > Wide(0.5);
  const Wide y = asin_half(select(upper, sqrt((Wide(1) - t) * Wide(0.5)), t));
  return copysign(select(upper, Wide(kHalfPiD) - (y + y), y), x);
}
TENON_INLINE Wide acos(Wide x) {
  const Wide t = abs(x);
  const LaneMask<double> upper = t > Wide(0.5);
  const Wide y = asin_half(select(upper, sqrt((Wide(1) - t) * Wide(0.5)), t));
  const Wide near_one = select(x < Wide(0), Wide(kPiD) - (y + y), y + y);
  return select(upper, near_one, Wide(kHalfPiD) - copysign(y, x));
}

// --- Hyperbolic functions ---
TENON_INLINE Wide sinh(Wide x) {
  const Wide t = abs(x);
  const Wide e = expm1(t);
  const Wide y = Wide(0.5) * select(t > Wide(40), e, e + e / (e + Wide(1)));
  return copysign(y, x);
}
TENON_INLINE Wide cosh(Wide x) {
  const Wide e = exp(abs(x));
  return fma(Wide(0.5), e, Wide(0.5) / e);
}
TENON_INLINE Wide tanh(Wide x) {
  const Wide e = expm1(Wide(-2) * abs(x));
  return copysign(e / (e + Wide(2)), x);
}
TENON_INLINE Wide asinh(Wide x) {
  const Wide t = abs(x);
  const Wide square = t * t;
  const Wide y = log1p(t + square / (Wide(1) + sqrt(Wide(1) + square)));
  return select(is_inf(x), x, copysign(y, x));
}
TENON_INLINE Wide acosh(Wide x) {
  const Wide t = x - Wide(1);
  return select(x < Wide(1), Wide(kNanD), log1p(t + sqrt(t * (t + Wide(2)))));
}
TENON_INLINE Wide atanh(Wide x) {
  const Wide t = abs(x);
  return copysign(Wide(0.5) * log1p((t + t) / (Wide(1) - t)), x);
}

// --- Error functions, gamma, Bessel ---
// erfc of a magnitude of 1 or more.
TENON_INLINE Wide erfc_tail(Wide t) {
  t = hardware_min(Wide(28.0), t);
  const Wide u = (t - Wide(2)) / (t + Wide(2));
  return exp(-(t * t)) * polynomial(u, coefficients::kWideErfcx) / fma(t, Wide(2), Wide(1));
}
TENON_INLINE Wide erf_central(Wide x) { return x * polynomial(x * x, coefficients::kWideErf); }
TENON_INLINE Wide erf(Wide x) {
  const Wide t = abs(x);
  const LaneMask<double> central = t < Wide(1);
  return select(central, erf_central(select(central, x, Wide(0))), copysign(Wide(1) - erfc_tail(hardware_max(Wide(1), t)), x));
}
TENON_INLINE Wide erfc(Wide x) {
  const Wide t = abs(x);
  const Wide tail = erfc_tail(hardware_max(Wide(1), t));
  return select(t < Wide(1), Wide(1) - erf_central(x), select(x < Wide(0), Wide(2) - tail, tail));
}
TENON_INLINE Wide erfinv(Wide x) {
  const Wide w = -log((Wide(1) - x) * (Wide(1) + x));
  const Wide central = polynomial(hardware_min(Wide(6), w) - Wide(3), coefficients::kWideErfinvCentral);
  const Wide tail = polynomial(sqrt(clamp_keeping_nan(w, 6.0, 20.0)) - Wide(3.5), coefficients::kWideErfinvTail);
  const Wide y = x * select(w < Wide(6), central, tail);
  return select(abs(x) < Wide(1), y, select(abs(x) == Wide(1), x * Wide(kInfinityD), Wide(kNanD)));
}
// Stirling's series at 8 and more, where lesser arguments are brought by gamma(t + 8) = t (t + 1) ... (t + 7) gamma(t); below
// zero by gamma(x) gamma(-x) = -pi / (x sin(pi x)). One logarithm for both: near its zeros only the last digits of a double are
// lost, which those of f32 do not show.
TENON_INLINE Wide lgamma(Wide x) {
  const Wide t = abs(x);
  const LaneMask<double> small = t < Wide(8), negative = x < Wide(0);
  const Wide z = t * (t + Wide(7));
  const Wide product = select(small, z * (z + Wide(6)) * ((z + Wide(10)) * (z + Wide(12))), Wide(1));
  const Wide u = select(small, t + Wide(8), t);
  const Wide inverse = Wide(1) / u;
  const Wide rest = fma(inverse, polynomial(inverse * inverse, coefficients::kWideLgamma), Wide(0x1.d67f1c864beb5p-1) - u);
  const Wide stirling = fma(u - Wide(0.5), log(u), rest);
  const Wide part = abs(t - rint(t));
  const Wide sine = select(part > Wide(0.25), cos_reduced((Wide(0.5) - part) * Wide(kPiD)), sin_reduced(part * Wide(kPiD)));
  const Wide logarithm = log(select(negative, Wide(kPiD) * product / (t * sine), product));
  const Wide y = select(negative, logarithm - stirling, stirling - logarithm);
  return select(is_inf(t), t, select((x == Wide(1)) | (x == Wide(2)), Wide(0), y));
}
TENON_INLINE Wide i0(Wide x) {
  const Wide t = abs(x);
  const Wide scaled = hardware_min(Wide(8), t) * Wide(0.125);
  const Wide small = polynomial(scaled * scaled, coefficients::kWideI0Small);
  const Wide inverse = Wide(8) / hardware_max(Wide(8), t);
  const Wide large = exp(t) * (polynomial(inverse, coefficients::kWideI0Large) / sqrt(t));
  return select(t <= Wide(8), small, select(is_inf(t), t, large));
}

// Exact. The quotient's integer part has at most 29 bits, its product with y fits a double; larger ones go to the C library.
TENON_INLINE Wide fmod(Wide x, Wide y) {
  const Wide a = abs(x), b = abs(y);
  const Wide quotient = a / b;
  Wide r = select(quotient < Wide(1), a, a - trunc(quotient) * b);  // not 0 * inf
  r = select(r < Wide(0), r + b, r);
  r = copysign(select(r >= b, r - b, r), x);
  const LaneMask<double> large = !(quotient < Wide(0x1p28));
  return any(large) ? select(large, per_lane(x, y, [](double u, double v) { return __builtin_fmod(u, v); }), r) : r;
}

}  // namespace
}  // namespace tenon::cpu

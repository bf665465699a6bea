// Elementary functions of doubles, each written once over a value type V with V::Type double (see float.h for what V offers), in
// two precisions:
//   wide   relative error about 1e-13, so that one rounding to f32 is almost always the correct one; for f32 arguments, and right
//          for doubles in the ranges f32 bodies produce
//   full   within 2.5 ULP for all doubles; with FMA only
// A function without the parameter has the wide precision: in full the C library's (libmvec) is used instead, which is faster
// than ours would be (sin, cos, log2), or it was not written.
//
// Why those below are not the C library's: those are called, and on Zen 4 the time of such a call depends on the physical page
// the stack has there, it seems because stores on it hold up loads of the function's constants: on one page of thirteen tanh took
// up to 2.6 times, atan up to 4.8 times as long. And what lies outside a function's domain the library computes one by one: log
// took eight times as long where half of its arguments were negative.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>

#include "math/float.h"

namespace tenon::math {

template <class V>
concept Double = std::same_as<typename V::Type, double>;

enum class Precision { wide, full };

inline constexpr double kInfinityD = std::numeric_limits<double>::infinity();
inline constexpr double kNanD = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kPiD = 0x1.921fb54442d18p+1, kHalfPiD = 0x1.921fb54442d18p+0;
inline constexpr double kHalfPiLowD = 0x1.1a62633145c07p-54;  // what kHalfPiD lacks
inline constexpr double kRoundD = 6755399441055744.0;         // 1.5 * 2^52, as kRoundF
// The first part has 33 bits: its product with an exponent is exact.
inline constexpr double kLn2HighD = 0x1.62e42feep-1, kLn2LowD = 0x1.a39ef35793c76p-33;
inline constexpr double kLog2ED = 0x1.71547652b82fep+0, kLn2D = 0x1.62e42fefa39efp-1;

// --- Exponentials ---
// x 2^n, n within +-1150, its bits as for f32.
template <Double V>
TENON_FORMULA V scale_by_power(V x, V n, typename V::Unsigned n_bits) {
  if constexpr (requires { scale_by_instruction(x, n); }) {
    return scale_by_instruction(x, n);
  } else {
    const typename V::Mask low = n < V(-1000.0);
    const V factor = select(low, V(0x1p-128), V(2.0));
    return x * V::from_bits(n_bits + V::either(low, std::uint64_t{1023 + 128} << 52, std::uint64_t{1023 - 1} << 52)) * factor;
  }
}
// exp(x) = 2^n (1 + head + rest), head within +-ln(2) / 2.
template <Precision precision, Double V>
struct ExpPartsD {
  V n;
  typename V::Unsigned n_bits;
  V head, left;  // |left| is what head lost to rounding; in wide precision nothing

  TENON_FORMULA V series() const {
    if constexpr (precision == Precision::full)
      return polynomial(head, coefficients::kDoubleExp);
    else
      return polynomial(head, coefficients::kWideExp);
  }
  TENON_FORMULA V rest() const { return fma(series(), head * head, left); }
  TENON_FORMULA V value_less_one() const {
    if constexpr (precision == Precision::full)
      return head + rest();
    else
      return fma(series(), head * head, head);
  }
  TENON_FORMULA V value() const { return scale_by_power(value_less_one() + V(1.0), n, n_bits); }
};
// Of x + |lost|.
template <Precision precision, Double V, class... Lost>
TENON_FORMULA ExpPartsD<precision, V> exp_parts(V x, Lost... lost) {
  const V t = fma(x, V(kLog2ED), V(kRoundD)), n = t - V(kRoundD), high = fma(n, V(-kLn2HighD), x);
  if constexpr (precision == Precision::wide) {
    return {n, bits(t) << 52, fma(n, V(-kLn2LowD), high), V(0.0)};
  } else {
    const auto low = [&] {
      if constexpr (sizeof...(lost) == 0)
        return n * V(-kLn2LowD);
      else
        return fma(n, V(-kLn2LowD), lost...);
    }();
    const V head = high + low;
    return {n, bits(t) << 52, head, (high - head) + low};
  }
}
template <Precision precision, Double V>
TENON_FORMULA V exp(V x) {
  return exp_parts<precision>(clamp_keeping_nan(x, -746.0, 710.0)).value();
}
template <Precision precision, Double V>
TENON_FORMULA V exp2(V x) {
  const V c = clamp_keeping_nan(x, -1076.0, 1025.0);
  const V t = c + V(kRoundD), n = t - V(kRoundD), r = c - n;
  if constexpr (precision == Precision::wide) {
    return ExpPartsD<precision, V>{n, bits(t) << 52, r * V(kLn2D), V(0.0)}.value();
  } else {
    // The products of the first parts are exact: 19 and 33 bits.
    const V first = (r + V(0x1p33)) - V(0x1p33), high = first * V(kLn2HighD);
    const V low = fma(first, V(kLn2LowD), (r - first) * V(kLn2D)), head = high + low;
    return ExpPartsD<precision, V>{n, bits(t) << 52, head, (high - head) + low}.value();
  }
}
// (exp(x) - 1) / 2, x within [-50, 710]: without overflow where exp(x) has none.
template <Precision precision, Double V>
TENON_FORMULA V half_expm1(V x) {
  const ExpPartsD<precision, V> parts = exp_parts<precision>(x);
  const V half_scale = V::from_bits(parts.n_bits + (std::uint64_t{1022} << 52));
  if constexpr (precision == Precision::wide)
    return fma(half_scale, parts.value_less_one(), half_scale - V(0.5));
  else
    return fma(half_scale, parts.rest(), fma(half_scale, parts.head, half_scale - V(0.5)));
}
template <Precision precision, Double V>
TENON_FORMULA V expm1(V x) {
  const V y = half_expm1<precision>(clamp_keeping_nan(x, -50.0, 710.0));
  return select(abs(x) < V(0x1p-54), x, y + y);
}
template <Precision precision, Double V>
TENON_FORMULA V sinh(V x) {
  // Of more than 710 half_expm1() is nonsense; in full precision it counts up to 40.
  const V t = hardware_min(V(precision == Precision::wide ? 710.0 : 711.0), abs(x)), halved = half_expm1<precision>(t);
  const V y = halved + halved / (halved + halved + V(1.0));
  if constexpr (precision == Precision::wide) {
    return copysign(select(t > V(40.0), halved, y), x);
  } else {
    const ExpPartsD<precision, V> parts = exp_parts<precision>(t);
    const V half_exp = scale_by_power(V(1.0) + parts.value_less_one(), parts.n - V(1.0), parts.n_bits - (std::uint64_t{1} << 52));
    return copysign(select(t < V(0x1p-27), t, select(t > V(40.0), half_exp, y)), x);
  }
}
template <Double V>
TENON_FORMULA V cosh(V x) {
  const V e = exp<Precision::wide>(abs(x));
  return fma(V(0.5), e, V(0.5) / e);
}
template <Precision precision, Double V>
TENON_FORMULA V tanh(V x) {
  const V t = hardware_min(V(20.0), abs(x)), halved = half_expm1<precision>(t + t);
  return copysign(halved / (halved + V(1.0)), x);
}

// --- Logarithms ---
// x = 2^e (1 + f), f between sqrt(1/2) - 1 and sqrt(2) - 1, s = f / (f + 2).
template <Double V>
struct LogPartsD {
  V e, f, s;

  TENON_FORMULA V series() const { return polynomial(s * s, coefficients::kWideLog); }
  // log(1 + f).
  TENON_FORMULA V of_mantissa() const { return fma((s + s) * (s * s), series(), s + s); }
};
template <Double V>
TENON_FORMULA LogPartsD<V> log_parts(V x) {
  // The exponent is read as the last bits of 1.5 2^52 + 1024.
  constexpr std::uint64_t half_root = 0x3fe6a09e667f3bcdu;
  const typename V::Mask tiny = x < V(0x1p-1022);
  const typename V::Unsigned u = bits(select(tiny, x * V(0x1p54), x)) + (0x4000000000000000u - half_root);
  const V e = V::from_bits((u >> 52) + 0x4338000000000000u) - select(tiny, V(6755399441056822.0), V(6755399441056768.0));
  const V f = V::from_bits((u & 0xfffffffffffffu) + half_root) - V(1.0);
  return {e, f, f / (f + V(2.0))};
}
template <Double V>
TENON_FORMULA V log_special(V x, V y) {
  const V positive = select(x < V(kInfinityD), y, x);
  return select(x > V(0.0), positive, select(x == V(0.0), V(-kInfinityD), V(kNanD)));
}
template <Precision precision, Double V>
TENON_FORMULA V log(V x) {
  const LogPartsD<V> p = log_parts(x);
  if constexpr (precision == Precision::wide) {
    return log_special(x, fma(p.e, V(kLn2HighD), fma(p.e, V(kLn2LowD), p.of_mantissa())));
  } else {
    // log(1 + f) = f - square + rest.
    const V z = p.s * p.s, square = V(0.5) * p.f * p.f, rest = p.s * fma(z + z, p.series(), square);
    return log_special(x, p.e * V(kLn2HighD) - ((square - fma(p.e, V(kLn2LowD), rest)) - p.f));
  }
}
template <Double V>
TENON_FORMULA V log2(V x) {
  const LogPartsD<V> p = log_parts(x);
  return log_special(x, fma(p.of_mantissa(), V(kLog2ED), p.e));
}
template <Double V>
TENON_FORMULA V log10(V x) {
  const LogPartsD<V> p = log_parts(x);
  return log_special(x, fma(p.e, V(0x1.34413509f79ffp-2), p.of_mantissa() * V(0x1.bcb7b1526e50ep-2)));
}
template <Double V>
TENON_FORMULA V log1p(V x) {
  const V u = x + V(1.0);
  const V y = log<Precision::wide>(u) + (x - (u - V(1.0))) / u;
  return select(abs(x) < V(0x1p-54), x, select(u == V(0.0), V(-kInfinityD), select(x == V(kInfinityD), x, y)));
}
template <Double V>
TENON_FORMULA V asinh(V x) {
  const V t = abs(x), square = t * t;
  const V y = log1p(t + square / (V(1.0) + sqrt(V(1.0) + square)));
  return select(is_inf(x), x, copysign(y, x));
}
template <Double V>
TENON_FORMULA V acosh(V x) {
  const V t = x - V(1.0);
  return select(x < V(1.0), V(kNanD), log1p(t + sqrt(t * (t + V(2.0)))));
}
template <Double V>
TENON_FORMULA V atanh(V x) {
  const V t = abs(x);
  return copysign(V(0.5) * log1p((t + t) / (V(1.0) - t)), x);
}

// --- Powers ---
template <Double V>
TENON_FORMULA V pow(V x, V y) {
  const V magnitude = abs(x);
  const V logarithm = log2(magnitude);
  // 1^inf is 1, not the NaN of 0 * inf.
  const V product = select((logarithm == V(0.0)) & (y == y), V(0.0), y * logarithm);
  const typename V::Mask integer = trunc(y) == y;
  const V half = y * V(0.5);
  const typename V::Mask odd = integer & (trunc(half) != half);
  V result = exp2<Precision::wide>(product);
  result = select(odd, copysign(result, x), result);
  result = select((x < V(0.0)) & !integer & (magnitude < V(kInfinityD)), V(kNanD), result);
  result = select(is_nan(y), y, result);
  return select((y == V(0.0)) | (x == V(1.0)), V(1.0), result);
}
template <Double V>
TENON_FORMULA V cbrt(V x) {
  return copysign(exp2<Precision::wide>(log2(abs(x)) * V(1.0 / 3.0)), x);
}
// Exact. The quotient's integer part has at most 29 bits, its product with y fits a double; larger ones go to the C library.
template <Double V>
TENON_FORMULA V fmod(V x, V y) {
  const V a = abs(x), b = abs(y);
  const V quotient = a / b;
  V r = select(quotient < V(1.0), a, a - trunc(quotient) * b);  // not 0 * inf
  r = select(r < V(0.0), r + b, r);
  r = copysign(select(r >= b, r - b, r), x);
  const typename V::Mask large = !(quotient < V(0x1p28));
  return any(large) ? select(large, per_lane(x, y, [](double u, double v) { return __builtin_fmod(u, v); }), r) : r;
}

// --- Sine, cosine, tangent ---
// Up to here n = x / (pi/2) has at most 20 bits and its products with the 33-bit parts of pi/2 are exact.
inline constexpr double kFastAngleD = 1.6e6;
template <Double V>
struct ReducedAngle {
  V r;
  typename V::Unsigned quadrant;
};
template <Double V>
TENON_FORMULA ReducedAngle<V> reduce_angle(V x) {
  const V t = fma(x, V(0x1.45f306dc9c883p-1), V(kRoundD));
  const V n = t - V(kRoundD);
  V r = fma(n, V(-0x1.921fb544p+0), x);
  r = fma(n, V(-0x1.0b4611a6p-34), r);
  r = fma(n, V(-0x1.3198a2e037073p-69), r);
  return {r, bits(t)};
}
template <Double V>
TENON_FORMULA V sin_reduced(V r) {
  const V square = r * r;
  return fma(r * square, polynomial(square, coefficients::kWideSin), r);
}
template <Double V>
TENON_FORMULA V cos_reduced(V r) {
  const V square = r * r;
  return fma(square * square, polynomial(square, coefficients::kWideCos), fma(square, V(-0.5), V(1.0)));
}
template <Double V>
TENON_FORMULA V sin_shifted(V x, std::uint64_t quadrant) {
  const ReducedAngle<V> reduced = reduce_angle(x);
  const typename V::Unsigned q = reduced.quadrant + quadrant;
  const V y = select(V::is_zero(q & 1u), sin_reduced(reduced.r), cos_reduced(reduced.r));
  return V::from_bits(bits(y) ^ ((q & 2u) << 62));
}
// Beyond the limit (and for infinities) lane by lane with the C library. Only the lanes that need it: what an element gives must
// not depend on its neighbours.
template <Double V, class F>
TENON_FORMULA V replace_large_angles(V x, V y, F exact) {
  const typename V::Mask large = !(abs(x) <= V(kFastAngleD));
  return any(large) ? select(large, per_lane(x, exact), y) : y;
}
template <Double V>
TENON_FORMULA V sin(V x) {
  return replace_large_angles(x, select(x == V(0.0), x, sin_shifted(x, 0)), [](double a) { return __builtin_sin(a); });
}
template <Double V>
TENON_FORMULA V cos(V x) {
  return replace_large_angles(x, sin_shifted(x, 1), [](double a) { return __builtin_cos(a); });
}
template <Double V>
TENON_FORMULA V tan(V x) {
  const ReducedAngle<V> reduced = reduce_angle(x);
  const V s = sin_reduced(reduced.r), c = cos_reduced(reduced.r);
  const typename V::Mask even = V::is_zero(reduced.quadrant & 1u);
  const V y = select(x == V(0.0), x, select(even, s, -c) / select(even, c, s));
  return replace_large_angles(x, y, [](double a) { return __builtin_tan(a); });
}

// --- Angles ---
// The angle of the point (x, y), both positive: of y / x, or with an eighth or a quarter turn less.
template <Precision precision, Double V>
TENON_FORMULA V angle(V y, V x) {
  const typename V::Mask middle = y > x * V(0x1.a827999fcef32p-2),
                         high = y > x * V(0x1.3504f333f9de6p+1);  // tan(pi/8), tan(3 pi/8)
  const V u = select(high, -x, select(middle, y - x, y)) / select(high, y, select(middle, y + x, x)), z = u * u;
  const V base = select(high, V(kHalfPiD), select(middle, V(kHalfPiD / 2), V(0.0)));
  if constexpr (precision == Precision::wide) {
    return base + fma(u * z, polynomial(z, coefficients::kWideAtan), u);
  } else {
    const V base_rest = select(high, V(kHalfPiLowD), select(middle, V(kHalfPiLowD / 2), V(0.0)));
    return base + (u + fma(u * z, polynomial(z, coefficients::kDoubleAtan), base_rest));
  }
}
template <Precision precision, Double V>
TENON_FORMULA V atan(V x) {
  return copysign(angle<precision>(abs(x), V(1.0)), x);
}
template <Double V>
TENON_FORMULA V atan2(V y, V x) {
  const V a = abs(x), b = abs(y);
  // Where both are 0 or infinite: as (1, 0) and as (1, 1).
  const typename V::Mask zeros = (a == V(0.0)) & (b == V(0.0)), infinite = (a == V(kInfinityD)) & (b == V(kInfinityD));
  V turn = angle<Precision::wide>(select(infinite, V(1.0), b), select(zeros | infinite, V(1.0), a));
  turn = select(signbit(x), V(kPiD) - turn, turn);
  return select(is_nan(x) | is_nan(y), x + y, copysign(turn, y));
}
// With t = |x| > 1/2, asin(x) = pi / 2 - 2 asin(sqrt((1 - t) / 2)): asin of s, s the root or t, is s + rest.
template <Precision precision, Double V>
struct AsinParts {
  V s, cube, series;
  typename V::Mask upper;

  TENON_FORMULA V rest() const { return cube * series; }
  TENON_FORMULA V sum() const { return fma(cube, series, s); }
};
template <Precision precision, Double V>
TENON_FORMULA AsinParts<precision, V> asin_parts(V x) {
  const V t = abs(x);
  const typename V::Mask upper = t > V(0.5);
  const V z = select(upper, (V(1.0) - t) * V(0.5), t * t), s = select(upper, sqrt(z), t);
  if constexpr (precision == Precision::wide)
    return {s, s * z, polynomial(z, coefficients::kWideAsin), upper};
  else
    return {s, s * z, polynomial(z, coefficients::kDoubleAsin), upper};
}
template <Precision precision, Double V>
TENON_FORMULA V asin(V x) {
  const AsinParts<precision, V> p = asin_parts<precision>(x);
  if constexpr (precision == Precision::wide) {
    return copysign(select(p.upper, V(kHalfPiD) - (p.sum() + p.sum()), p.sum()), x);
  } else {
    const V complement = V(kHalfPiD) - V(2.0) * (p.s + (p.rest() - V(kHalfPiLowD / 2)));
    return copysign(select(p.upper, complement, p.s + p.rest()), x);
  }
}
template <Precision precision, Double V>
TENON_FORMULA V acos(V x) {
  const AsinParts<precision, V> p = asin_parts<precision>(x);
  if constexpr (precision == Precision::wide) {
    const V twice = p.sum() + p.sum();
    return select(p.upper, select(x < V(0.0), V(kPiD) - twice, twice), V(kHalfPiD) - copysign(p.sum(), x));
  } else {
    const V twice = V(2.0) * (p.s + p.rest());
    const V upper = select(x < V(0.0), V(kPiD) - V(2.0) * (p.s + (p.rest() - V(kHalfPiLowD))), twice);
    return select(p.upper, upper, V(kHalfPiD) - (x - (V(kHalfPiLowD) - copysign(p.rest(), x))));
  }
}

}  // namespace tenon::math

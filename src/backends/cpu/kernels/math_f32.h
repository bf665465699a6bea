// Elementary functions of f32 lanes: branch-free polynomials within 2 ULP or better, special values and subnormals exact.
//
// Functions that are rarely hot have no f32 version of their own: they are evaluated in wide lanes (math_wide.h). Compiled once
// per instruction set, like lanes.h.
#pragma once

#include "backends/cpu/kernels/lanes.h"
#include "backends/cpu/kernels/math_wide.h"
#include "math/coefficients.h"

namespace tenon::cpu {
namespace {

inline constexpr float kInfinityF = std::numeric_limits<float>::infinity();
inline constexpr float kNanF = std::numeric_limits<float>::quiet_NaN();
// Adding it rounds to an integer, which then stands in the low bits.
inline constexpr float kRoundF = 12582912.0f;  // 1.5 * 2^23
// ln(2) in two parts; the first has 9 bits, so that its product with an exponent is exact.
inline constexpr float kLn2HighF = 0.693359375f, kLn2LowF = -2.12194440e-4f;
inline constexpr float kLog2EF = 1.44269504f;

// exp(x) = 2^n (1 + rest): kept apart where something is to be multiplied before the result may become subnormal.
struct ExpParts {
  F32 rest, n;
  Uint32V n_bits;  // n shifted into the exponent's place, modulo 2^32

  // x (1 + rest), rounded once.
  TENON_INLINE F32 times(F32 x) const { return fma(x, rest, x); }
  // x 2^n.
  TENON_INLINE F32 scaled(F32 x) const {
#if TENON_CPU_LEVEL == 4
    return F32((FloatV)_mm512_scalef_ps((__m512)x.v, (__m512)n.v));
#else
    // In two steps, because 2^128 and most of what is below 2^-126 are not normal numbers.
    const LaneMask<float> low = n < F32(-100);
    const Uint32V offset = (Uint32V)(low.v ? (Int32V{} + ((127 + 64) << 23)) : (Int32V{} + ((127 - 1) << 23)));
    const F32 factor = select(low, F32(0x1p-64f), F32(2.0f));
    return x * from_bits<float>(n_bits + offset) * factor;
#endif
  }
  TENON_INLINE F32 value() const { return scaled(rest + F32(1)); }
};
// exp(r) - 1 for |r| up to ln(2) / 2.
TENON_INLINE F32 expm1_reduced(F32 r) { return fma(polynomial(r, coefficients::kExp), r * r, r); }
// Of x + |low|; x within [-126, 89], or NaN; |low| tiny.
TENON_INLINE ExpParts exp_parts(F32 x, F32 low) {
  const F32 t = fma(x, F32(kLog2EF), F32(kRoundF));
  const F32 n = t - F32(kRoundF);
  const F32 r = fma(n, F32(-kLn2LowF), fma(n, F32(-kLn2HighF), x)) + low;
  return {expm1_reduced(r), n, bits(t) << 23};
}
TENON_INLINE ExpParts exp_parts(F32 x) { return exp_parts(clamp_keeping_nan(x, -126.0f, 89.0f), F32(-0.0f)); }

TENON_INLINE F32 exp(F32 x) { return exp_parts(x).value(); }
TENON_INLINE F32 exp2(F32 x) {
  x = clamp_keeping_nan(x, -151.0f, 129.0f);
  const F32 t = x + F32(kRoundF);
  const F32 n = t - F32(kRoundF);
  return ExpParts{expm1_reduced((x - n) * F32(0.693147181f)), n, bits(t) << 23}.value();
}
TENON_INLINE F32 expm1(F32 x) {
  const ExpParts e = exp_parts(clamp_keeping_nan(x, -20.0f, 89.0f), F32(-0.0f));
  const F32 half_scale = from_bits<float>(e.n_bits + (126u << 23));  // 2^(n - 1), so that n = 128 is a number
  const F32 y = fma(half_scale, e.rest, half_scale - F32(0.5f));
  return select(abs(x) < F32(0x1p-25f), x, y + y);
}

// x = 2^e (1 + f), 1 + f between sqrt(1/2) and sqrt(2); for positive finite x, subnormals included.
struct LogParts {
  F32 e, f;
};
TENON_INLINE LogParts log_parts(F32 x) {
  const LaneMask<float> tiny = x < F32(0x1p-126f);
  const Uint32V u = bits(select(tiny, x * F32(0x1p23f), x)) - 0x3f3504f3u;
  const Int32V e = ((Int32V)u >> 23) - (tiny.v & 23);
  return {F32(__builtin_convertvector(e, FloatV)), from_bits<float>((u & 0x7fffffu) + 0x3f3504f3u) - F32(1)};
}
// log(1 + f) - f.
TENON_INLINE F32 log_rest(F32 f) {
  const F32 square = f * f;
  return fma(F32(-0.5f), square, square * f * polynomial(f, coefficients::kLog));
}
// The logarithm |y| computed for a positive finite x, with the special values put in.
TENON_INLINE F32 log_special(F32 x, F32 y) {
  y = select(x < F32(kInfinityF), y, x);
  return select(x > F32(0), y, select(x == F32(0), F32(-kInfinityF), F32(kNanF)));
}
TENON_INLINE F32 log_sum(F32 e, F32 f) {
  const F32 square = f * f;
  F32 y = fma(square * f, polynomial(f, coefficients::kLog), e * F32(kLn2LowF));
  y = fma(F32(-0.5f), square, y);
  return fma(e, F32(kLn2HighF), f + y);
}
TENON_INLINE F32 log(F32 x) {
  const LogParts parts = log_parts(x);
  return log_special(x, log_sum(parts.e, parts.f));
}
TENON_INLINE F32 log2(F32 x) {
  const LogParts parts = log_parts(x);
  const F32 rest = log_rest(parts.f);
  // log2(e) = 1 + 0.4427: the small factor first, so that the large terms are rounded once.
  const F32 c(0.44269504f);
  const F32 y = fma(parts.f, c, rest * c) + rest + parts.f;
  return log_special(x, y + parts.e);
}
TENON_INLINE F32 log10(F32 x) {
  const LogParts parts = log_parts(x);
  const F32 rest = log_rest(parts.f);
  // log10(e) = 0.4375 - 0.0032..., log10(2) = 0.30078125 + 0.00024...: the first parts have few bits.
  F32 y = (parts.f + rest) * F32(-3.20551810e-3f);
  y = fma(rest, F32(0.4375f), fma(parts.e, F32(2.48745664e-4f), y));
  y = fma(parts.f, F32(0.4375f), y);
  return log_special(x, fma(parts.e, F32(0.30078125f), y));
}
TENON_INLINE F32 log1p(F32 x) {
  const F32 one(1);
  const F32 u = one + x;
  const F32 lost = select(x < one, x - (u - one), one - (u - x));  // exact: what the sum rounded away
  const Uint32V reduced = bits(u) - 0x3f3504f3u;
  const Int32V e = (Int32V)reduced >> 23;
  const Int32V scale = 0x3f800000 - (e << 23);  // of 2^-e; 0 where that is subnormal, and |lost| does not matter
  const F32 shrink((FloatV)(scale > 0 ? scale : Int32V{}));
  const F32 f = (from_bits<float>((reduced & 0x7fffffu) + 0x3f3504f3u) - one) + lost * shrink;
  const F32 y = log_special(u, log_sum(F32(__builtin_convertvector(e, FloatV)), f));
  return select(abs(x) < F32(0x1p-25f), x, select(x == F32(kInfinityF), x, y));
}

// --- Piecewise polynomials ---
// One permute instruction looks up a coefficient for every lane, from as many pieces as a vector has lanes: cheaper and more
// accurate than one rational function for the whole range, where the errors of long sums and a division add up.
#if TENON_CPU_LEVEL >= 3
inline constexpr bool kHasLookup = true;
#else
inline constexpr bool kHasLookup = false;
#endif
#if TENON_CPU_LEVEL == 4
#define TENON_TABLE(name) coefficients::name##16, coefficients::name##16Bias
TENON_INLINE F32 look_up(const float (&row)[16], Uint32V index) {
  return F32((FloatV)_mm512_permutexvar_ps((__m512i)index, _mm512_load_ps(row)));
}
#else
#define TENON_TABLE(name) coefficients::name##8, coefficients::name##8Bias
#if TENON_CPU_LEVEL == 3
TENON_INLINE F32 look_up(const float (&row)[8], Uint32V index) {
  return F32((FloatV)_mm256_permutevar8x32_ps(_mm256_load_ps(row), (__m256i)index));
}
#else
TENON_INLINE F32 look_up(const float (&row)[8], Uint32V index) {
  F32 result;
  for (int i = 0; i < F32::kCount; ++i) result.v[i] = row[index[i] & 7];
  return result;
}
#endif
#endif
// The pieces' boundaries are where the leading bits of t + bias change; the permute uses the lowest bits of the index only.
template <int Rows, int Pieces>
TENON_INLINE F32 piecewise(F32 t, const float (&table)[Rows][Pieces], float bias) {
  const Uint32V index = bits(t + F32(bias)) >> (Pieces == 16 ? 21 : 22);
  const F32 h = t - look_up(table[0], index);
  F32 c[Rows - 2];
  for (int i = 0; i < Rows - 2; ++i) c[i] = look_up(table[i + 2], index);
  return fma(estrin(h, c), h, look_up(table[1], index));  // the constant last: it is the largest, and so rounded into once
}

TENON_INLINE F32 tanh(F32 x) {
  if constexpr (!kHasLookup) return through_wide(x, [](Wide y) { return tanh(y); });
  return copysign(piecewise(hardware_min(F32(9.02f), abs(x)), TENON_TABLE(kTanh)), x);
}
TENON_INLINE F32 erf(F32 x) {
  if constexpr (!kHasLookup) return through_wide(x, [](Wide y) { return erf(y); });
  return copysign(piecewise(hardware_min(F32(3.95f), abs(x)), TENON_TABLE(kErf)), x);
}
// scale * exp(-factor * t^2) for t in [0, 15], factor 1 or 1/2: t^2 in two exact parts, because its rounding error would be
// multiplied.
TENON_INLINE F32 times_exp_minus_square(F32 scale, F32 t, float factor) {
  const F32 head = from_bits<float>(bits(t) & 0xfffff000u);
  const F32 rest = (t - head) * (t + head);
  const ExpParts e = exp_parts(hardware_max(F32(-126.0f), head * head * F32(-factor)), rest * F32(-factor));
  return e.scaled(e.times(scale));
}
TENON_INLINE F32 erfc(F32 x) {
  if constexpr (!kHasLookup) return through_wide(x, [](Wide y) { return erfc(y); });
  const F32 t = hardware_min(F32(10.2f), abs(x));
  const F32 y = times_exp_minus_square(piecewise(t, TENON_TABLE(kErfcx)), t, 1.0f);
  return select(x < F32(0), F32(2) - y, y);
}

// --- Ops whose plain formula would lose digits or time in f32 (kernels_native.h puts them in the place of the bodies) ---
TENON_INLINE F32 sigmoid(F32 x) {
  const F32 e = exp(-abs(x));
  return select(x < F32(0), e, F32(1)) / (F32(1) + e);
}
// The activations below are x f(e) with e = exp(-|u|), u of the sign of x. x is multiplied in before e can become subnormal, and
// scaled afterwards where the formula has a factor e, which is where x is negative.
TENON_INLINE F32 limited(F32 x) { return hardware_max(F32(-126.0f), x); }  // where they are 0 from there on
// e of u = head + rest.
TENON_INLINE ExpParts exp_minus_magnitude(F32 head, F32 rest) {
  const F32 away = from_bits<float>(bits(rest) ^ ((bits(head) & 0x80000000u) ^ 0x80000000u));
  return exp_parts(hardware_max(F32(-126.0f), -abs(head)), away);
}
// x sigmoid(u).
TENON_INLINE F32 times_sigmoid(F32 x, const ExpParts& e) {
  const LaneMask<float> negative = x < F32(0);
  const F32 quotient = select(negative, e.times(x), x) / (F32(1) + e.value());
  return select(negative, e.scaled(quotient), quotient);
}
TENON_INLINE F32 silu(F32 x) {
  x = limited(x);
  return times_sigmoid(x, exp_parts(-abs(x)));
}
TENON_INLINE F32 mish(F32 x) {
  x = limited(x);
  const ExpParts parts = exp_parts(-abs(x));
  const F32 e = parts.value(), half = e * F32(0.5f), twice = e + e;
  const LaneMask<float> negative = x < F32(0);
  // x e (1 + e/2) / (1 + e (1 + e/2)), and for positive x the same, multiplied by 2 e^-2 above and below.
  const F32 above = select(negative, parts.times(fma(x, half, x)), x * (F32(1) + twice));
  const F32 below = F32(1) + select(negative, fma(e, half, e), fma(twice, e, twice));
  const F32 quotient = above / below;
  return select(negative, parts.scaled(quotient), quotient);
}
// The next two multiply x before the exponential: the product's rounding error, which the exponential would enlarge, is kept.
// That takes an FMA.
TENON_INLINE F32 quick_gelu(F32 x) {
  x = limited(x);
  const F32 c = hardware_min(F32(126.0f), x), factor(1.702f);
  const F32 head = c * factor;
  const F32 rest = fma(c, factor, -head) + c * F32(1.702 - static_cast<double>(1.702f));
  return times_sigmoid(x, exp_minus_magnitude(head, rest));
}
// x sigmoid(x (a + b x^2)).
TENON_INLINE F32 gelu_tanh_anywhere(F32 x) {
  constexpr double a = 2 * 0.7978845608028654, b = a * 0.044715;
  constexpr auto a_head = static_cast<float>(a), b_head = static_cast<float>(b);
  x = limited(x);
  const F32 c = hardware_min(F32(126.0f), x);
  const F32 square = c * c, square_rest = fma(c, c, -square);
  const F32 term = square * F32(b_head);
  const F32 term_rest =
      fma(square, F32(b_head), -term) + fma(square_rest, F32(b_head), square * F32(b - static_cast<double>(b_head)));
  const F32 sum = term + F32(a_head), part = sum - F32(a_head);
  const F32 sum_rest = (F32(a_head) - (sum - part)) + (term - part) + (term_rest + F32(a - static_cast<double>(a_head)));
  const F32 head = c * sum;
  return times_sigmoid(x, exp_minus_magnitude(head, fma(c, sum, -head) + c * sum_rest));
}
// log(1 + exp(x)).
TENON_INLINE F32 softplus(F32 x) {
  const F32 e = exp(-abs(x));
  return fma(e, polynomial(e, coefficients::kLog1p), hardware_max(F32(0), x));
}
TENON_INLINE F32 log_sigmoid(F32 x) {
  const F32 e = exp(-abs(x));
  return hardware_min(F32(0), x) - e * polynomial(e, coefficients::kLog1p);
}
// x Phi(x) = max(x, 0) - |x| Phi(-|x|), Phi the normal distribution: the second term is computed to full relative accuracy as
// |x| M(|x|) exp(-x^2 / 2) with Mills' ratio M, so the negative tail is right down to where it underflows.
TENON_INLINE F32 gelu_anywhere(F32 x) {
  const F32 t = hardware_min(F32(14.5f), abs(x));
  const F32 tail = times_exp_minus_square(t * piecewise(t, TENON_TABLE(kMills)), t, 0.5f);
  return select(x < F32(0), F32(-0.0f), x) - tail;
}
#if TENON_CPU_LEVEL == 4
// Where nearly all arguments are, neither needs an exponential: x - |x| T(|x|), T(t) = Phi(-t) or its like, by polynomials around
// the multiples of 1/4, whose number stands in the low bits of a sum. Beyond |top| the second term is less than half an ULP of x;
// below |bottom| the polynomials lose digits. A lane's result does not depend on its neighbours.
TENON_INLINE F32 look_up(const float (&row)[32], Uint32V index) {
  return F32((FloatV)_mm512_permutex2var_ps(_mm512_load_ps(row), (__m512i)index, _mm512_load_ps(row + 16)));
}
template <class Anywhere>
TENON_INLINE F32 minus_tail(F32 x, const float (&table)[7][32], float bottom, float top, Anywhere anywhere) {
  constexpr float magic = kRoundF * coefficients::kNormalTail32Width;
  static_assert(coefficients::kGeluTanhTail32Width == coefficients::kNormalTail32Width);
  const F32 t = hardware_min(F32(top), abs(x)), sum = t + F32(magic), h = t - (sum - F32(magic));
  const Uint32V piece = bits(sum);
  F32 c[6];
  for (int i = 0; i < 6; ++i) c[i] = look_up(table[i + 1], piece);
  const F32 tail = t * fma(estrin(h, c), h, look_up(table[0], piece));
  const F32 y = select(x < F32(0), F32(-0.0f), x) - tail;
  const LaneMask<float> far = x < F32(bottom);
  return any(far) ? select(far, anywhere(x), y) : y;
}
TENON_INLINE F32 gelu(F32 x) {
  return minus_tail(x, coefficients::kNormalTail32, -4.3f, 7.87f, [](F32 y) { return gelu_anywhere(y); });
}
TENON_INLINE F32 gelu_tanh(F32 x) {
  return minus_tail(x, coefficients::kGeluTanhTail32, -4.1f, 5.6f, [](F32 y) { return gelu_tanh_anywhere(y); });
}
#else
TENON_INLINE F32 gelu(F32 x) { return gelu_anywhere(x); }
TENON_INLINE F32 gelu_tanh(F32 x) { return gelu_tanh_anywhere(x); }
#endif
TENON_INLINE F32 normal_distribution(F32 x) {
  const F32 t = hardware_min(F32(14.5f), abs(x));
  const F32 tail = times_exp_minus_square(piecewise(t, TENON_TABLE(kMills)), t, 0.5f);
  return select(x < F32(0), tail, F32(1) - tail);
}

// --- Sine and cosine ---
// |x| up to which three-part reduction by pi/2 is exact enough; it needs FMA.
inline constexpr float kFastAngleF = 30000.0f;
TENON_INLINE F32 sin_shifted(F32 x, std::uint32_t quadrant) {
  const F32 t = fma(x, F32(0.636619772f), F32(kRoundF));
  const F32 n = t - F32(kRoundF);
  F32 r = fma(n, F32(-1.57079637f), x);
  r = fma(n, F32(4.37113883e-8f), r);
  r = fma(n, F32(1.71512489e-15f), r);
  const F32 square = r * r;
  const F32 s = fma(r * square, polynomial(square, coefficients::kSin), r);
  const F32 c = fma(square * square, polynomial(square, coefficients::kCos), fma(square, F32(-0.5f), F32(1)));
  const Uint32V q = bits(t) + quadrant;
  const F32 y = select(LaneMask<float>((Int32V)((q & 1u) == 0u)), s, c);
  return from_bits<float>(bits(y) ^ ((q & 2u) << 30));
}
// Only the lanes that need it get the wide result: what an element gives must not depend on its neighbours.
template <class F>
TENON_INLINE F32 replace_large_angles(F32 x, F32 y, F wide) {
  const LaneMask<float> large = !(abs(x) <= F32(kFastAngleF));
  return any(large) ? select(large, through_wide(x, wide), y) : y;
}
TENON_INLINE F32 sin(F32 x) {
  const auto wide = [](Wide y) { return sin(y); };
  if constexpr (!kHasFma) return through_wide(x, wide);
  return replace_large_angles(x, select(x == F32(0), x, sin_shifted(x, 0)), wide);
}
TENON_INLINE F32 cos(F32 x) {
  const auto wide = [](Wide y) { return cos(y); };
  if constexpr (!kHasFma) return through_wide(x, wide);
  return replace_large_angles(x, sin_shifted(x, 1), wide);
}

// --- The rest, in wide lanes ---
#define TENON_THROUGH_WIDE(name)                            \
  TENON_INLINE F32 name(F32 x) {                            \
    return through_wide(x, [](Wide y) { return name(y); }); \
  }
TENON_THROUGH_WIDE(cbrt)
TENON_THROUGH_WIDE(tan)
TENON_THROUGH_WIDE(asin)
TENON_THROUGH_WIDE(acos)
TENON_THROUGH_WIDE(atan)
TENON_THROUGH_WIDE(sinh)
TENON_THROUGH_WIDE(cosh)
TENON_THROUGH_WIDE(asinh)
TENON_THROUGH_WIDE(acosh)
TENON_THROUGH_WIDE(atanh)
TENON_THROUGH_WIDE(erfinv)
TENON_THROUGH_WIDE(lgamma)
TENON_THROUGH_WIDE(i0)
#undef TENON_THROUGH_WIDE
#define TENON_THROUGH_WIDE(name)                                          \
  TENON_INLINE F32 name(F32 x, F32 y) {                                   \
    return through_wide(x, y, [](Wide a, Wide b) { return name(a, b); }); \
  }
TENON_THROUGH_WIDE(pow)
TENON_THROUGH_WIDE(atan2)
TENON_THROUGH_WIDE(fmod)
#undef TENON_THROUGH_WIDE

}  // namespace
}  // namespace tenon::cpu

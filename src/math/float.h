// Elementary functions of f32, each written once, over a value type V with V::Type float: the CPU's lanes compute with them
// (backends/cpu/kernels/lanes.h), and generated kernels carry what a recording type writes down (codegen/c/function_text.h).
// Within 2 ULP or better, special values and subnormals exact, no branches.
//
// Beyond the value concept (value.h) they use, found by argument-dependent lookup:
//   fma(x, y, z)                       rounded once where V::kHasFma; only code that is right both ways may be without it
//   hardware_min, hardware_max         y where one is NaN; clamp_keeping_nan(x, low, high)
//   bits(x), V::from_bits(u)           u of V::Unsigned, with + - & ^ << >> and numbers; V::exponent(u): the signed u >> 23 as V
//   V::either(mask, a, b)              one of two numbers, as V::Unsigned; V::is_zero(u) -> Mask
//   polynomial(x, c)                   by Horner's scheme, the constant term first; coefficients: src/math/polynomials.py
//   V::look_up(row, u)                 element u of a row, where V::kLookups says how many a row may have: 0, 8, 16 or 32
//   through_wide(x, f)                 f of doubles, rounded; replaced_where(mask, y, x, f): through_wide(x, f) where the mask
//                                      is set, of two arguments too
//   corrected_where(mask, y, f)        f(y), which is y where the mask is not set: a CPU leaves it out if it is set nowhere
//   reciprocal(x)                      within an ULP
//   quotient_by_parameter(x, y)        x / y to the last bit of rounding, y the same for many x
#pragma once

#include <concepts>
#include <limits>

#include "math/coefficients.h"

#ifndef TENON_FORMULA
#define TENON_FORMULA [[gnu::always_inline]] inline
#endif

// X(name) for the functions of one argument below; activations.h has more.
#define TENON_FLOAT_FUNCTIONS(X) X(exp) X(exp2) X(expm1) X(log) X(log2) X(log10) X(log1p) X(sin) X(cos) X(tanh) X(erf) X(erfc)

namespace tenon::math {

template <class V>
concept Float = std::same_as<typename V::Type, float>;

inline constexpr float kInfinityF = std::numeric_limits<float>::infinity();
inline constexpr float kNanF = std::numeric_limits<float>::quiet_NaN();
// Adding it rounds to an integer, which then stands in the low bits.
inline constexpr float kRoundF = 12582912.0f;  // 1.5 * 2^23
// ln(2) in two parts; the first has 9 bits, so that its product with an exponent is exact.
inline constexpr float kLn2HighF = 0.693359375f, kLn2LowF = -2.12194440e-4f;
inline constexpr float kLog2EF = 1.44269504f;

// --- Exponentials ---
// exp(x) = 2^n (1 + rest): kept apart where something is to be multiplied before the result may become subnormal.
template <Float V>
struct ExpParts {
  V rest, n;
  typename V::Unsigned n_bits;  // n shifted into the exponent's place, modulo 2^32

  // x (1 + rest), rounded once.
  TENON_FORMULA V times(V x) const { return fma(x, rest, x); }
  // x 2^n.
  TENON_FORMULA V scaled(V x) const {
    if constexpr (requires { scale_by_instruction(x, n); }) {
      return scale_by_instruction(x, n);
    } else {
      // In two steps, because 2^128 and most of what is below 2^-126 are not normal numbers.
      const typename V::Mask low = n < V(-100.0f);
      const V factor = select(low, V(0x1p-64f), V(2.0f));
      return x * V::from_bits(n_bits + V::either(low, (127u + 64u) << 23, (127u - 1u) << 23)) * factor;
    }
  }
  TENON_FORMULA V value() const { return scaled(rest + V(1.0f)); }
};
// exp(r) - 1 for |r| up to ln(2) / 2.
template <Float V>
TENON_FORMULA V expm1_reduced(V r) {
  return fma(polynomial(r, coefficients::kExp), r * r, r);
}
// Of x + |low|; x within [-126, 89], or NaN; |low| tiny.
template <Float V>
TENON_FORMULA ExpParts<V> exp_parts(V x, V low) {
  const V t = fma(x, V(kLog2EF), V(kRoundF));
  const V n = t - V(kRoundF);
  const V r = fma(n, V(-kLn2LowF), fma(n, V(-kLn2HighF), x)) + low;
  return {expm1_reduced(r), n, bits(t) << 23};
}
template <Float V>
TENON_FORMULA ExpParts<V> exp_parts(V x) {
  return exp_parts(clamp_keeping_nan(x, -126.0f, 89.0f), V(-0.0f));
}

template <Float V>
TENON_FORMULA V exp(V x) {
  return exp_parts(x).value();
}
template <Float V>
TENON_FORMULA V exp2(V x) {
  const V c = clamp_keeping_nan(x, -151.0f, 129.0f);
  const V t = c + V(kRoundF);
  const V n = t - V(kRoundF);
  return ExpParts<V>{expm1_reduced((c - n) * V(0.693147181f)), n, bits(t) << 23}.value();
}
template <Float V>
TENON_FORMULA V expm1(V x) {
  const ExpParts<V> e = exp_parts(clamp_keeping_nan(x, -20.0f, 89.0f), V(-0.0f));
  const V half_scale = V::from_bits(e.n_bits + (126u << 23));  // 2^(n - 1), so that n = 128 is a number
  const V y = fma(half_scale, e.rest, half_scale - V(0.5f));
  return select(abs(x) < V(0x1p-25f), x, y + y);
}

// --- Logarithms ---
inline constexpr unsigned kHalfRootF = 0x3f3504f3u;  // the bits of sqrt(1/2)
// x = 2^e (1 + f), 1 + f between sqrt(1/2) and sqrt(2); for positive finite x, subnormals included.
template <Float V>
struct LogParts {
  V e, f;
};
template <Float V>
TENON_FORMULA LogParts<V> log_parts(V x) {
  const typename V::Mask tiny = x < V(0x1p-126f);
  const typename V::Unsigned u = bits(select(tiny, x * V(0x1p23f), x)) - kHalfRootF;
  return {V::exponent(u - V::either(tiny, 23u << 23, 0u)), V::from_bits((u & 0x7fffffu) + kHalfRootF) - V(1.0f)};
}
// log(1 + f) - f.
template <Float V>
TENON_FORMULA V log_rest(V f) {
  const V square = f * f;
  return fma(V(-0.5f), square, square * f * polynomial(f, coefficients::kLog));
}
// The logarithm |y| computed for a positive finite x, with the special values put in.
template <Float V>
TENON_FORMULA V log_special(V x, V y) {
  const V positive = select(x < V(kInfinityF), y, x);
  return select(x > V(0.0f), positive, select(x == V(0.0f), V(-kInfinityF), V(kNanF)));
}
template <Float V>
TENON_FORMULA V log_sum(V e, V f) {
  const V square = f * f;
  const V y = fma(square * f, polynomial(f, coefficients::kLog), e * V(kLn2LowF));
  return fma(e, V(kLn2HighF), f + fma(V(-0.5f), square, y));
}
template <Float V>
TENON_FORMULA V log(V x) {
  const LogParts<V> parts = log_parts(x);
  return log_special(x, log_sum(parts.e, parts.f));
}
template <Float V>
TENON_FORMULA V log2(V x) {
  const LogParts<V> parts = log_parts(x);
  const V rest = log_rest(parts.f);
  // log2(e) = 1 + 0.4427: the small factor first, so that the large terms are rounded once.
  const V c(0.44269504f);
  const V y = fma(parts.f, c, rest * c) + rest + parts.f;
  return log_special(x, y + parts.e);
}
template <Float V>
TENON_FORMULA V log10(V x) {
  const LogParts<V> parts = log_parts(x);
  const V rest = log_rest(parts.f);
  // log10(e) = 0.4375 - 0.0032..., log10(2) = 0.30078125 + 0.00024...: the first parts have few bits.
  V y = (parts.f + rest) * V(-3.20551810e-3f);
  y = fma(rest, V(0.4375f), fma(parts.e, V(2.48745664e-4f), y));
  y = fma(parts.f, V(0.4375f), y);
  return log_special(x, fma(parts.e, V(0.30078125f), y));
}
template <Float V>
TENON_FORMULA V log1p(V x) {
  const V one(1.0f);
  const V u = one + x;
  const V lost = select(x < one, x - (u - one), one - (u - x));  // exact: what the sum rounded away
  const typename V::Unsigned reduced = bits(u) - kHalfRootF;
  // 2^(1 - e), or 0 where that is subnormal and |lost| does not matter; nonsense where u is not positive, as is all the rest.
  const V shrink = V::from_bits(0x40000000u - (reduced & 0xff800000u));
  const V f = fma(lost * V(0.5f), shrink, V::from_bits((reduced & 0x7fffffu) + kHalfRootF) - one);
  const V y = log_special(u, log_sum(V::exponent(reduced), f));
  return select(abs(x) < V(0x1p-25f), x, select(x == V(kInfinityF), x, y));
}

// --- Sine and cosine ---
// |x| up to which three-part reduction by pi/2 is exact enough; it needs FMA. Beyond, in doubles.
inline constexpr float kFastAngleF = 30000.0f;
template <Float V>
TENON_FORMULA V sin_shifted(V x, unsigned quadrant) {
  const V t = fma(x, V(0.636619772f), V(kRoundF));
  const V n = t - V(kRoundF);
  const V r = fma(n, V(1.71512489e-15f), fma(n, V(4.37113883e-8f), fma(n, V(-1.57079637f), x)));
  const V square = r * r;
  const V s = fma(r * square, polynomial(square, coefficients::kSin), r);
  const V c = fma(square * square, polynomial(square, coefficients::kCos), fma(square, V(-0.5f), V(1.0f)));
  const typename V::Unsigned q = bits(t) + quadrant;
  return V::from_bits(bits(select(V::is_zero(q & 1u), s, c)) ^ ((q & 2u) << 30));
}
template <Float V>
TENON_FORMULA V sin(V x) {
  const auto wide = [](auto y) { return sin(y); };
  if constexpr (!V::kHasFma) return through_wide(x, wide);
  return replaced_where(!(abs(x) <= V(kFastAngleF)), select(x == V(0.0f), x, sin_shifted(x, 0)), x, wide);
}
template <Float V>
TENON_FORMULA V cos(V x) {
  const auto wide = [](auto y) { return cos(y); };
  if constexpr (!V::kHasFma) return through_wide(x, wide);
  return replaced_where(!(abs(x) <= V(kFastAngleF)), sin_shifted(x, 1), x, wide);
}

// --- Piecewise polynomials ---
// One permute instruction looks up a coefficient for every lane, from as many pieces as a vector has lanes: cheaper and more
// accurate than one rational function for the whole range, where the errors of long sums and a division add up.
#define TENON_PIECES(Name)                                          \
  struct Name {                                                     \
    static constexpr auto& of_8 = coefficients::k##Name##8;         \
    static constexpr auto& of_16 = coefficients::k##Name##16;       \
    static constexpr float bias_8 = coefficients::k##Name##8Bias;   \
    static constexpr float bias_16 = coefficients::k##Name##16Bias; \
  };
TENON_PIECES(Tanh)
TENON_PIECES(Erf)
TENON_PIECES(Erfcx)
TENON_PIECES(Mills)
#undef TENON_PIECES

// The pieces' boundaries are where the leading bits of t + bias change; a look-up uses the lowest bits of the index only.
template <Float V, int Rows, int Pieces>
TENON_FORMULA V piecewise(V t, const float (&table)[Rows][Pieces], float bias) {
  const typename V::Unsigned index = bits(t + V(bias)) >> (Pieces == 16 ? 21 : 22);
  const V h = t - V::look_up(table[0], index);
  V c[Rows - 2];
  for (int i = 0; i < Rows - 2; ++i) c[i] = V::look_up(table[i + 2], index);
  return fma(estrin(h, c), h, V::look_up(table[1], index));  // the constant last: it is the largest, and so rounded into once
}
template <class Table, Float V>
TENON_FORMULA V piecewise(V t) {
  if constexpr (V::kLookups >= 16)
    return piecewise(t, Table::of_16, Table::bias_16);
  else
    return piecewise(t, Table::of_8, Table::bias_8);
}

// --- The hyperbolic tangent, error functions ---
// By pieces where there are look-ups, else by one polynomial; those need FMA.
template <Float V>
TENON_FORMULA V tanh(V x) {
  if constexpr (V::kLookups > 0) {
    return copysign(piecewise<Tanh>(hardware_min(V(9.02f), abs(x))), x);
  } else if constexpr (V::kHasFma) {
    const V e = expm1(V(-2.0f) * hardware_min(V(9.1f), abs(x)));
    return copysign(e / (e + V(2.0f)), x);
  } else {
    return through_wide(x, [](auto y) { return tanh(y); });
  }
}

// scale * exp(more - factor * t^2) for t in [0, 15], factor 1 or 1/2: t^2 in two exact parts, because its rounding error would be
// multiplied. |more|, if any, is below the last bits.
template <Float V, class... More>
TENON_FORMULA V times_exp_minus_square(V scale, V t, float factor, More... more) {
  const V head = V::from_bits(bits(t) & 0xfffff000u);
  const V rest = (t - head) * (t + head);
  const V x = hardware_max(V(-126.0f), head * head * V(-factor));
  const auto low = [&] {
    if constexpr (sizeof...(more) == 0)
      return rest * V(-factor);
    else
      return fma(rest, V(-factor), more...);
  };
  const ExpParts<V> e = exp_parts(x, low());
  return e.scaled(e.times(scale));
}
// r (1 + rest) = 1 / (t + middle) and u = (t - middle) / (t + middle), right to the last bit: the tails below are steep in them.
template <Float V>
struct TailPlace {
  V r, rest, u;
};
template <Float V>
TENON_FORMULA TailPlace<V> tail_place(V t, float middle) {
  const V sum = t + V(middle), low = t - (sum - V(middle));
  const V r = reciprocal(sum);
  const V rest = fma(-r, low, fma(-r, sum, V(1.0f)));
  return {r, rest, fma(r * V(-2.0f * middle), rest, fma(r, V(-2.0f * middle), V(1.0f)))};
}
// erfc(t), t in [0, 10.2].
template <Float V>
TENON_FORMULA V erfc_tail(V t) {
  if constexpr (V::kLookups > 0) {
    return times_exp_minus_square(piecewise<Erfcx>(t), t, 1.0f);
  } else {
    const TailPlace<V> w = tail_place(t, 3.0f);
    return times_exp_minus_square(polynomial(w.u, coefficients::kErfcx) * w.r, t, 1.0f, w.rest);
  }
}
// scale * Phi(-t), t in [0, 14.5], Phi the normal distribution: by Mills' ratio Phi(-t) exp(t^2 / 2).
template <Float V>
TENON_FORMULA V normal_tail(V scale, V t) {
  if constexpr (V::kLookups > 0) {
    return times_exp_minus_square(scale * piecewise<Mills>(t), t, 0.5f);
  } else {
    const TailPlace<V> w = tail_place(t, 4.0f);
    return times_exp_minus_square(scale * (polynomial(w.u, coefficients::kMills) * w.r), t, 0.5f, w.rest);
  }
}
template <Float V>
TENON_FORMULA V erf(V x) {
  if constexpr (V::kLookups > 0) {
    return copysign(piecewise<Erf>(hardware_min(V(3.95f), abs(x))), x);
  } else if constexpr (V::kHasFma) {
    const V t = abs(x);
    const typename V::Mask central = t < V(1.0f);
    const V square = select(central, x * x, V(0.0f));
    const V tail = copysign(V(1.0f) - erfc_tail(select(central, V(1.0f), hardware_min(V(10.2f), t))), x);
    return select(central, fma(x, polynomial(square, coefficients::kErf), x), tail);
  } else {
    return through_wide(x, [](auto y) { return erf(y); });
  }
}
template <Float V>
TENON_FORMULA V erfc(V x) {
  if constexpr (V::kLookups == 0 && !V::kHasFma) {
    return through_wide(x, [](auto y) { return erfc(y); });
  } else {
    const V y = erfc_tail(hardware_min(V(10.2f), abs(x)));
    return select(x < V(0.0f), V(2.0f) - y, y);
  }
}

}  // namespace tenon::math

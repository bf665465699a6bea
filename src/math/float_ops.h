// Ops of f32 whose body (ops/elementwise), written for any value type, would be evaluated in doubles; over the value types of
// float.h. They need FMA. The kernels of the CPU, CUDA and OpenCL are made from the list below.
#pragma once

#include "math/float.h"

// X(Op, function) of the op's inputs and parameters.
#define TENON_FLOAT_OPS(X) \
  X(FloorDiv, floor_div) X(TruncDiv, trunc_div) X(Logit, logit) X(Tanhshrink, tanhshrink) X(Sinc, sinc) X(I0, i0)

namespace tenon::math {

// --- Whole quotients ---
// |x / y| rounded down to an integer, or up where |upwards|, exact up to the one rounding to f32; with the sign of x / y.
//
// t, the integer part of the rounded quotient, is at most one step off, on one side, and a - t b is exact. Below 2^24 the step is
// 1. Above, every f32 is an integer and a step is needed only where the exact integer lies half-way between two of them, and
// rounds to the even one, while the quotient lies a little beyond it.
template <Float V>
TENON_FORMULA V whole_quotient(V x, V y, typename V::Mask upwards) {
  const V a = abs(x), b = abs(y), t = trunc(a / b);
  const V rest = select(t == V(0.0f), a, fma(-t, b, a));  // not 0 * infinity
  const V missing = select(upwards, -rest, rest);
  const typename V::Mask is_small = t < V(0x1p24f);
  const V half_step = select(is_small, V(0.5f), V::from_bits((bits(t) & 0x7f800000u) - (24u << 23)));
  const typename V::Mask is_off =
      select(is_small, missing, select(V::is_zero(bits(t) & 1u), V(0.0f), fma(half_step, b, missing) - b)) < V(0.0f);
  const V step = select(is_off, half_step + half_step, V(0.0f));
  return V::from_bits(bits(t + select(upwards, step, -step)) ^ ((bits(x) ^ bits(y)) & 0x80000000u));
}
template <Float V>
TENON_FORMULA V trunc_div(V x, V y) {
  return whole_quotient(x, y, V(0.0f) < V(0.0f));
}
template <Float V>
TENON_FORMULA V floor_div(V x, V y) {
  return whole_quotient(x, y, !V::is_zero((bits(x) ^ bits(y)) & 0x80000000u));
}

// --- Functions ---
// log(p / (1 - p)) = +-log(1 + (1 - 2m) / m) with m the smaller of p and 1 - p, which is exact, as is 1 - 2m where it is small.
// |eps| limits m; a negative one limits nothing that has a logarithm. With one above 1/2, p is always 1 - eps.
template <Float V>
TENON_FORMULA V logit(V x, V eps) {
  const V one(1.0f), zero(0.0f);
  const V m = hardware_max(eps, hardware_min(one - x, x)) + zero;  // + 0: not -0
  // Where the quotient would be infinite, it is that of 2^24 m.
  const typename V::Mask tiny = abs(m) < V(0x1p-100f);
  const V y = log1p((one - (m + m)) / select(tiny, m * V(0x1p24f), m)) + select(tiny, V(16.6355324f), zero);
  return select(x < select(eps > V(0.5f), V(-kInfinityF), V(0.5f)), -y, y);
}
// x - tanh(x): the terms agree in their first digits, and Lambert's continued fraction of tanh gives the difference of small
// ones.
template <Float V>
TENON_FORMULA V tanhshrink(V x) {
  constexpr float unit = 4583103525.0f;
  constexpr float above[] = {349188840 / unit, 6891885 / unit, 42900 / unit, 65 / unit};  // after 1
  constexpr float below[] = {3, 6547290750 / unit, 413513100 / unit, 7567560 / unit, 45045 / unit, 66 / unit};
  const typename V::Mask small = abs(x) < V(1.5f);
  const V z = select(small, x * x, V(0.0f)), cube = x * z;
  const V fraction = fma(cube * z, polynomial(z, above), cube) / polynomial(z, below);
  return select(small, fraction, x - tanh(x));
}
// sin(pi x) / (pi x): the sine needs only the distance to the nearest integer, which is exact.
template <Float V>
TENON_FORMULA V sinc(V x) {
  const V nearest = rint(x), r = x - nearest, odd = nearest - V(2.0f) * floor(nearest * V(0.5f));
  const V sine = r * polynomial(r * r, coefficients::kSinc) * fma(V(-2.0f), odd, V(1.0f));
  return select(x == V(0.0f), V(1.0f), select(abs(x) == V(kInfinityF), V(0.0f), sine / x));
}
// All terms are positive. e^x is taken without its factor 2^n, which overflows before the result does.
template <Float V>
TENON_FORMULA V i0(V x) {
  const V t = abs(x);
  const typename V::Mask small = t < V(4.0f);
  const V half = select(small, t, V(0.0f)) * V(0.5f), square = half * half;
  const V near = fma(square, polynomial(square, coefficients::kFloatI0Small), V(1.0f));
  const V large = hardware_min(V(93.0f), select(small, V(4.0f), t));
  const ExpParts<V> e = exp_parts(large, V(-0.0f));
  const V scale = V::from_bits(e.n_bits + ((127u - 10u) << 23));
  const V far = e.times(polynomial(V(4.0f) / large, coefficients::kFloatI0Large) / sqrt(large)) * scale * V(1024.0f);
  return select(small, near, select(is_nan(x), x, far));
}

}  // namespace tenon::math

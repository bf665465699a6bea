// Ops of f32 whose body (ops/elementwise), written for any value type, would be evaluated in doubles; over the value types of
// float.h. They need FMA. The kernels of the CPU, CUDA and OpenCL are made from the list below.
#pragma once

#include "math/activations.h"
#include "math/head_and_rest.h"

// X(Op, function) of the op's inputs and parameters.
#define TENON_FLOAT_OPS(X)  \
  X(FloorDiv, floor_div)    \
  X(TruncDiv, trunc_div)    \
  X(Logit, logit)           \
  X(Tanhshrink, tanhshrink) \
  X(Sinc, sinc) X(I0, i0) X(Erfinv, erfinv) X(Lgamma, lgamma) X(LogAddExp, logaddexp) X(LogAddExp2, logaddexp2)
// Those that the CPU alone takes from here: cards have instructions or a library for them.
#define TENON_FLOAT_ANGLES(X) X(Tan, tan) X(Asin, asin) X(Acos, acos) X(Atan, atan) X(Atanh, atanh)
// Those for results of bf16 on cards, as TENON_SHORT_FLOAT_ACTIVATIONS of activations.h.
#define TENON_SHORT_FLOAT_OPS(X) X(Logit, short_logit) X(LogAddExp, short_logaddexp) X(LogAddExp2, short_logaddexp2)

namespace tenon::math {

// --- Whole quotients ---
// |x / y| rounded down to an integer, or up where |upwards|, exact up to the one rounding to f32; with the sign of x / y.
//
// t, the integer part of the rounded quotient, is at most one step off, on one side, and a - t b is exact. Below 2^24 the step is
// 1. Above, every f32 is an integer and a step is needed only where the exact integer lies half-way between two of them, and
// rounds to the even one, while the quotient lies a little beyond it.
template <Float V>
TENON_FORMULA V whole_quotient(V x, V y, typename V::Mask upwards) {
  const V a = abs(x), b = abs(y), quotient = a / b, t = trunc(quotient);
  // A quotient that is not rounded to an integer lies between the same two as the exact one.
  const V near = t + select(upwards, V(1.0f), V(0.0f));
  const V magnitude = corrected_where(quotient == t, near, [&](V) {
    const V rest = select(t == V(0.0f), a, fma(-t, b, a));  // not 0 * infinity
    const V missing = select(upwards, -rest, rest);
    const typename V::Mask is_small = t < V(0x1p24f);
    const V half_step = select(is_small, V(0.5f), V::from_bits((bits(t) & 0x7f800000u) - (24u << 23)));
    const typename V::Mask is_off =
        select(is_small, missing, select(V::is_zero(bits(t) & 1u), V(0.0f), fma(half_step, b, missing) - b)) < V(0.0f);
    const V step = select(is_off, half_step + half_step, V(0.0f));
    return t + select(upwards, step, -step);
  });
  return V::from_bits(bits(magnitude) ^ ((bits(x) ^ bits(y)) & 0x80000000u));
}
template <Float V>
TENON_FORMULA V trunc_div(V x, V y) {
  return whole_quotient(x, y, V(0.0f) < V(0.0f));
}
template <Float V>
TENON_FORMULA V floor_div(V x, V y) {
  return whole_quotient(x, y, !V::is_zero((bits(x) ^ bits(y)) & 0x80000000u));
}

// --- Interpolation ---
// x + weight (y - x) with what the difference loses: two roundings, however much of x cancels. Where the difference overflows,
// the result need not.
template <Float V>
TENON_FORMULA V lerp(V x, V y, V weight) {
  const HeadAndRest<V> apart = difference(y, x);
  const V sum = fma(weight, apart.rest, fma(weight, apart.head, x));
  return replaced_where(!(abs(sum) < V(kInfinityF)), sum, x, y, weight, [](auto a, auto b, auto w) {
    return select(abs(w) < decltype(w)(0.5), a + w * (b - a), b - (b - a) * (decltype(w)(1.0) - w));
  });
}

// --- Angles: within 3 ULP ---
inline constexpr float kHalfPiF = 1.57079637f, kHalfPiLowF = -4.37113883e-8f;
// As sin and cos, but with what the reduced angle r loses, |low|, and what 1 - r^2 / 2 does: a quotient shows the errors of both.
template <Float V>
TENON_FORMULA V tan(V x) {
  const V one(1.0f), t = fma(x, V(0.636619772f), V(kRoundF)), n = t - V(kRoundF), first = fma(n, V(-kHalfPiF), x);
  const V second = n * V(-kHalfPiLowF), r = first + second, part = r - first;
  const V third = fma(n, V(1.71512489e-15f), fma(n, V(-kHalfPiLowF), -second));
  const V low = ((first - (r - part)) + (second - part)) + third;
  const V square = r * r, head = fma(square, V(-0.5f), one), lost = fma(square, V(-0.5f), one - head);
  const V s = r + fma(r * square, polynomial(square, coefficients::kSin), low * head);
  const V c = head + fma(square * square, polynomial(square, coefficients::kCos), fma(-r, low, lost));
  const typename V::Mask even = V::is_zero(bits(t) & 1u);
  const V y = select(x == V(0.0f), x, select(even, s, -c) / select(even, c, s));
  return replaced_where(!(abs(x) <= V(kFastAngleF)), y, x, [](auto v) { return tan(v); });
}
// With t = |x| > 1/2, asin(x) = pi / 2 - 2 asin(sqrt((1 - t) / 2)): asin of s, s the root or t, is s + rest.
template <Float V>
struct AsinPartsF {
  V s, rest;
  typename V::Mask upper;
};
template <Float V>
TENON_FORMULA AsinPartsF<V> asin_parts(V x) {
  const V t = abs(x);
  const typename V::Mask upper = t > V(0.5f);
  const V z = select(upper, (V(1.0f) - t) * V(0.5f), t * t), s = select(upper, sqrt(z), t);
  return {s, s * z * polynomial(z, coefficients::kAsin), upper};
}
template <Float V>
TENON_FORMULA V asin(V x) {
  const AsinPartsF<V> p = asin_parts(x);
  const V complement = fma(V(-2.0f), p.s + (p.rest - V(kHalfPiLowF * 0.5f)), V(kHalfPiF));
  return copysign(select(p.upper, complement, p.s + p.rest), x);
}
template <Float V>
TENON_FORMULA V acos(V x) {
  const AsinPartsF<V> p = asin_parts(x);
  const V twice = V(2.0f) * (p.s + p.rest);
  const V upper = select(x < V(0.0f), fma(V(-2.0f), p.s + (p.rest - V(kHalfPiLowF)), V(2.0f * kHalfPiF)), twice);
  return select(p.upper, upper, V(kHalfPiF) - (x - (V(kHalfPiLowF) - copysign(p.rest, x))));
}
template <Float V>
TENON_FORMULA V atan(V x) {
  const V t = abs(x), one(1.0f);
  const typename V::Mask upper = t > one;
  const V u = select(upper, V(-1.0f), t) / select(upper, t, one), z = u * u;
  const V rest = fma(u * z, polynomial(z, coefficients::kAtan), select(upper, V(kHalfPiLowF), V(0.0f)));
  return copysign(select(upper, V(kHalfPiF), V(0.0f)) + (u + rest), x);
}
template <Float V>
TENON_FORMULA V atanh(V x) {
  const V t = abs(x);
  return copysign(V(0.5f) * log1p((t + t) / (V(1.0f) - t)), x);
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
// The logarithm's instruction loses the digits of small results, which a polynomial gives; those of eps above 1/2 are negative.
template <Float V>
TENON_FORMULA V short_logit(V x, V eps) {
  const V one(1.0f), zero(0.0f), ln2(0.693147182f);
  const V m = hardware_max(eps, hardware_min(one - x, x)) + zero;
  const typename V::Mask tiny = abs(m) < V(0x1p-100f);
  const V q = (one - (m + m)) * short_reciprocal(select(tiny, m * V(0x1p24f), m));
  const V far = fma(short_log2(one + q), ln2, select(tiny, V(16.6355324f), zero));
  const V y = select(eps > V(0.5f), log1p(q), select(abs(q) < one, q * log1p_unit(q), far));
  return select(x < select(eps > V(0.5f), V(-kInfinityF), V(0.5f)), -y, y);
}
// x - tanh(x): the terms agree in their first digits, and Lambert's continued fraction of tanh gives the difference of small
// ones.
template <Float V>
TENON_FORMULA V tanhshrink(V x) {
  constexpr float unit = 4583103525.0f;
  constexpr float above[] = {349188840.0f / unit, 6891885 / unit, 42900 / unit, 65 / unit};  // after 1
  constexpr float below[] = {3, 6547290750.0f / unit, 413513100.0f / unit, 7567560 / unit, 45045 / unit, 66 / unit};
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
template <Float V>
TENON_FORMULA V erfinv(V x) {
  const V one(1.0f), w = -log((one - x) * (one + x));
  const typename V::Mask near = w < V(5.0f);
  const V central = polynomial(select(near, w, V(0.0f)) - V(2.5f), coefficients::kErfinvNear);
  const V tail = polynomial(sqrt(select(near, V(5.0f), w)) - V(3.0f), coefficients::kErfinvFar);
  return select(abs(x) == one, x * V(kInfinityF), x * select(near, central, tail));  // w is NaN outside
}
// lgamma(1 + d) = d (d - 1) R(d), to which other arguments between -2 and 4.5 are brought by gamma(x + 1) = x gamma(x) and, the
// negative ones, by gamma(x) gamma(-x) = -pi / (x sin(pi x)): one logarithm more. Beyond, in doubles.
template <Float V>
TENON_FORMULA V lgamma(V x) {
  const V one(1.0f), t = abs(x);
  const typename V::Mask negative = x < V(0.0f), low = t < V(0.75f);
  const V above = select(t < V(2.5f), one, select(t < V(3.5f), t - one, (t - one) * (t - V(2.0f))));
  const V d = select(low, t, t - select(t < V(2.5f), one, select(t < V(3.5f), V(2.0f), V(3.0f))));
  const V unit = d * (d - one) * polynomial(d - V(0.625f), coefficients::kLgammaUnit);
  const V r = abs(t - rint(t)), sine = r * polynomial(r * r, coefficients::kSinc) * select(low, one, t);  // |t sin(pi t)| / pi
  const V logarithm = log(select(negative, sine, select(low, t, above)));
  const V y = select(negative, -unit, unit) + select(negative, -logarithm, select(low, -logarithm, logarithm));
  return replaced_where(!(abs(x - V(1.25f)) < V(3.25f)), y, x, [](auto v) { return lgamma(v); });
}

// --- Logarithms of sums ---
// -2 log(1 + 2^n e^r), n <= 0, r within +-ln(2) / 2.
template <Float V>
TENON_FORMULA HeadAndRest<V> twice_minus_log1p(V n, typename V::Unsigned n_bits, const HeadAndRest<V>& r) {
  const V one(1.0f), half(0.5f);
  const V square = r.head * r.head, square_rest = fma(r.head, r.head, -square);
  const HeadAndRest<V> first = sum_in_order(r.head, square * half);
  const V series = fma(r.head * square, polynomial(r.head, coefficients::kExpThird), first.rest);
  const HeadAndRest<V> less_one = sum_in_order(first.head, fma(r.rest, first.head, r.rest) + fma(square_rest, half, series));
  const HeadAndRest<V> power = sum_in_order(one, less_one.head);
  const ExpParts<V> scale{V(0.0f), n, n_bits};
  const HeadAndRest<V> sum = sum_in_order(one, scale.scaled(power.head));
  const V sum_rest = sum.rest + scale.scaled(power.rest + less_one.rest);
  const typename V::Mask upper = sum.head > V(1.41421356f);
  const V factor = select(upper, half, one);
  return twice_minus_log(select(upper, one, V(0.0f)), sum.head * factor, sum_rest * factor);
}
// The larger operand and its distance to the other; equal infinities are 0 apart.
template <Float V>
struct Operands {
  V larger, smaller;
  HeadAndRest<V> apart;
};
template <Float V>
TENON_FORMULA Operands<V> in_order(V x, V y, float farthest) {
  const V larger = select(x > y, x, y), smaller = select(x > y, y, x);
  const HeadAndRest<V> apart = difference(larger, smaller);
  const V head = select(x == y, V(0.0f), hardware_min(V(farthest), apart.head));
  return {larger, smaller, {head, select(apart.head < V(200.0f), apart.rest, V(0.0f))}};  // not of infinities
}
// Where the result is a small difference, it shows more digits than a head and a rest have.
template <Float V, class F>
TENON_FORMULA V with_small_differences(V y, const Operands<V>& in, F wide) {
  const V larger = abs(in.larger), share = select(larger < V(0x1p-8f), V(0.5f), V(0.05f));
  return replaced_where(abs(y) < larger * share, y, in.larger, in.smaller, wide);
}
template <Float V>
TENON_FORMULA V logaddexp(V x, V y) {
  const Operands<V> in = in_order(x, y, 105.0f);
  const V t = fma(in.apart.head, V(-kLog2EF), V(kRoundF)), n = t - V(kRoundF);
  const V r = fma(n, V(-kLn2HighF), -in.apart.head), rest = fma(n, V(-kLn2LowF), -in.apart.rest);
  const HeadAndRest<V> logarithm = twice_minus_log1p(n, bits(t) << 23, sum_in_order(r, rest));
  const V sum = fma(V(-0.5f), logarithm.rest, fma(V(-0.5f), logarithm.head, in.larger));
  return with_small_differences(sum, in, [](auto a, auto b) { return a + log1p(exp(b - a)); });
}
template <Float V>
TENON_FORMULA V logaddexp2(V x, V y) {
  const Operands<V> in = in_order(x, y, 151.0f);
  const V t = V(kRoundF) - in.apart.head, n = t - V(kRoundF), part = -in.apart.head - n;
  const V ln2(0.693147182f), ln2_rest(-1.90465421e-9f), r = part * ln2;
  const V rest = fma(part, ln2, -r) + fma(part, ln2_rest, -in.apart.rest * ln2);
  const HeadAndRest<V> logarithm = twice_minus_log1p(n, bits(t) << 23, {r, rest});
  const V c(-0.721347511f), c_rest(-9.62981517e-9f), product = logarithm.head * c;
  const V product_rest = fma(logarithm.head, c, -product) + fma(logarithm.head, c_rest, logarithm.rest * c);
  const V sum = with_small_differences((in.larger + product) + product_rest, in,
                                       [](auto a, auto b) { return a + log1p(exp2(b - a)) * decltype(a)(1.4426950408889634); });
  return select(x == y, x + V(1.0f), sum);  // log2(2) is exact
}

// In doubles W of about 36 bits, for cards, whose units for doubles are idle otherwise: the results that need more are few.
// |to_exponent|: of e or 2, to that of 2; |to_power|: from there to that of e; |from_log|: from ln.
template <class W, Float V, class F>
TENON_FORMULA V wide_log_of_sum(V x, V y, double to_exponent, double to_power, double from_log, F wide) {
  const V larger = select(x > y, x, y), smaller = select(x > y, y, x);
  const W a(larger), d = select(smaller - larger > V(-200.0f), W(smaller) - a, W(-200.0));  // not of infinities
  // Adding the large number rounds to an integer, which then stands in the low bits.
  const W large(6755399441055744.0), n_bits = fma(d, W(to_exponent), large), n = n_bits - large;
  const W r = fma(n, W(-1 / to_exponent), d) * W(to_power);
  const W t = times_power_of_two(fma(r, polynomial(r, coefficients::kSumExp), W(1.0)), n_bits);
  const V sum = narrow<V>(fma(t * W(from_log), polynomial(t, coefficients::kSumLog1p), a));
  return select(is_nan(x), x, replaced_where(abs(sum) < abs(larger) * V(0x1p-9f), sum, larger, smaller, wide));
}
template <class W, Float V>
TENON_FORMULA V wide_logaddexp(V x, V y) {
  return wide_log_of_sum<W>(x, y, 1.4426950408889634, 1.0, 1.0, [](auto a, auto b) { return a + log1p(exp(b - a)); });
}
template <class W, Float V>
TENON_FORMULA V wide_logaddexp2(V x, V y) {
  const V sum = wide_log_of_sum<W>(x, y, 1.0, 0.6931471805599453, 1.4426950408889634,
                                   [](auto a, auto b) { return a + log1p(exp2(b - a)) * decltype(a)(1.4426950408889634); });
  return select(x == y, x + V(1.0f), sum);  // log2(2) is exact
}

// Within a few units in the last place of f32, where the result is no small difference.
template <Float V, class F>
TENON_FORMULA V short_log_of_sum(V x, V y, float to_exponent, float from_log, F wide) {
  const V larger = select(x > y, x, y), smaller = select(x > y, y, x);
  const V e = short_exp2(select(x == y, V(0.0f), smaller - larger) * V(to_exponent));  // equal infinities are 0 apart
  const V sum = fma(e * V(from_log), polynomial(e, coefficients::kLog1p), larger);
  return replaced_where(abs(sum) < abs(larger) * V(0x1p-6f), sum, larger, smaller, wide);
}
template <Float V>
TENON_FORMULA V short_logaddexp(V x, V y) {
  return short_log_of_sum(x, y, kLog2EF, 1.0f, [](auto a, auto b) { return a + log1p(exp(b - a)); });
}
template <Float V>
TENON_FORMULA V short_logaddexp2(V x, V y) {
  const V sum = short_log_of_sum(x, y, 1.0f, kLog2EF,
                                 [](auto a, auto b) { return a + log1p(exp2(b - a)) * decltype(a)(1.4426950408889634); });
  return select(x == y, x + V(1.0f), sum);  // log2(2) is exact
}

// --- Bessel's function ---
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

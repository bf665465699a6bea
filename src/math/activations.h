// Activation functions of f32 whose plain formula (ops/elementwise/activations.h) would lose digits or time, over the value types
// of float.h. TENON_FLOAT_ACTIVATIONS lists them: their kernels on the CPU, in CUDA and in OpenCL are made from that list.
#pragma once

#include "math/float.h"

// X(Op, function) of the op's inputs and parameters; those that need FMA apart. (Erfc is a function of float.h.)
#define TENON_FLOAT_ACTIVATIONS(X) \
  X(Sigmoid, sigmoid) X(Silu, silu) X(LogSigmoid, log_sigmoid) X(Softplus, softplus) X(Celu, celu)
#define TENON_FUSED_FLOAT_ACTIVATIONS(X) X(Gelu, gelu) X(GeluTanh, gelu_tanh) X(QuickGelu, quick_gelu) X(Mish, mish) X(Ndtr, ndtr)
// Those for results of bf16, where a card computes them faster than it reads and writes 16 bits. They may be off by 2^-16.
#define TENON_SHORT_FLOAT_ACTIVATIONS(X) X(Silu, short_silu) X(Gelu, short_gelu) X(Celu, short_celu)

namespace tenon::math {

template <Float V>
TENON_FORMULA V sigmoid(V x) {
  const V e = exp(-abs(x));
  return select(x < V(0.0f), e, V(1.0f)) / (V(1.0f) + e);
}
// log(1 + e) for e in [0, 1].
template <Float V>
TENON_FORMULA V log1p_unit(V e) {
  return polynomial(e, coefficients::kLog1p);
}
template <Float V>
TENON_FORMULA V softplus(V x, V threshold) {
  const V e = exp(-abs(x));
  return select(x > threshold, x, fma(e, log1p_unit(e), hardware_max(V(0.0f), x)));
}
template <Float V>
TENON_FORMULA V log_sigmoid(V x) {
  const V e = exp(-abs(x));
  return hardware_min(V(0.0f), x) - e * log1p_unit(e);
}
// x / alpha may be subnormal where the result is not.
template <Float V>
TENON_FORMULA V celu(V x, V alpha) {
  const V negative = select(x >= V(0.0f), V(0.0f), x), quotient = quotient_by_parameter(negative, alpha);
  return select(x > V(0.0f), x, select(abs(quotient) < V(0x1p-25f), negative, alpha * expm1(quotient)));
}

// --- x f(e) with e = exp(-|u|), u of the sign of x ---
// x is multiplied in before e can become subnormal, and scaled afterwards where the formula has a factor e, which is where x is
// negative.
template <Float V>
TENON_FORMULA V limited(V x) {
  return hardware_max(V(-126.0f), x);  // they are 0 from there on
}
// e of u = head + rest.
template <Float V>
TENON_FORMULA ExpParts<V> exp_minus_magnitude(V head, V rest) {
  const V away = V::from_bits(bits(rest) ^ ((bits(head) & 0x80000000u) ^ 0x80000000u));
  return exp_parts(limited(-abs(head)), away);
}
// x sigmoid(u).
template <Float V>
TENON_FORMULA V times_sigmoid(V x, const ExpParts<V>& e) {
  const typename V::Mask negative = x < V(0.0f);
  const V quotient = select(negative, e.times(x), x) / (V(1.0f) + e.value());
  return select(negative, e.scaled(quotient), quotient);
}
template <Float V>
TENON_FORMULA V silu(V x) {
  const V c = limited(x);
  return times_sigmoid(c, exp_parts(limited(-abs(c)), V(-0.0f)));
}
template <Float V>
TENON_FORMULA V mish(V x) {
  const V c = limited(x);
  const ExpParts<V> parts = exp_parts(limited(-abs(c)), V(-0.0f));
  const V e = parts.value(), half = e * V(0.5f), twice = e + e;
  const typename V::Mask negative = c < V(0.0f);
  // x e (1 + e/2) / (1 + e (1 + e/2)), and for positive x the same, multiplied by 2 e^-2 above and below.
  const V above = select(negative, parts.times(fma(c, half, c)), c * (V(1.0f) + twice));
  const V below = V(1.0f) + select(negative, fma(e, half, e), fma(twice, e, twice));
  const V quotient = above / below;
  return select(negative, parts.scaled(quotient), quotient);
}
// The next two multiply x before the exponential: the product's rounding error, which the exponential would enlarge, is kept.
template <Float V>
TENON_FORMULA V quick_gelu(V x) {
  const V y = limited(x), c = hardware_min(V(126.0f), y), factor(1.702f);
  const V head = c * factor;
  const V rest = fma(c, factor, -head) + c * V(static_cast<float>(1.702 - static_cast<double>(1.702f)));
  return times_sigmoid(y, exp_minus_magnitude(head, rest));
}
// x sigmoid(x (a + b x^2)).
template <Float V>
TENON_FORMULA V gelu_tanh_anywhere(V x) {
  constexpr double a = 2 * 0.7978845608028654, b = a * 0.044715;
  constexpr auto a_head = static_cast<float>(a), b_head = static_cast<float>(b);
  constexpr auto a_rest = static_cast<float>(a - static_cast<double>(a_head)),
                 b_rest = static_cast<float>(b - static_cast<double>(b_head));
  const V y = limited(x), c = hardware_min(V(126.0f), y);
  const V square = c * c, square_rest = fma(c, c, -square);
  const V term = square * V(b_head);
  const V term_rest = fma(square, V(b_head), -term) + fma(square_rest, V(b_head), square * V(b_rest));
  const V sum = term + V(a_head), part = sum - V(a_head);
  const V sum_rest = (V(a_head) - (sum - part)) + (term - part) + (term_rest + V(a_rest));
  const V head = c * sum;
  return times_sigmoid(y, exp_minus_magnitude(head, fma(c, sum, -head) + c * sum_rest));
}

// --- x Phi(x), Phi the normal distribution ---
// = max(x, 0) - |x| Phi(-|x|): the second term is computed to full relative accuracy, so the negative tail is right down to where
// it underflows.
template <Float V>
TENON_FORMULA V gelu_anywhere(V x) {
  const V t = hardware_min(V(14.5f), abs(x));
  return select(x < V(0.0f), V(-0.0f), x) - normal_tail(t, t);
}
// Where nearly all arguments are, gelu and gelu_tanh need no exponential: x - |x| T(|x|), T(t) = Phi(-t) or its like, by
// polynomials around the multiples of 1/4, whose number stands in the low bits of a sum. Beyond |top| the second term is less
// than half an ULP of x; below |bottom| the polynomials lose digits. A lane's result does not depend on its neighbours.
template <Float V, class Anywhere>
TENON_FORMULA V minus_tail(V x, const float (&table)[7][32], float bottom, float top, Anywhere anywhere) {
  constexpr float magic = kRoundF * coefficients::kNormalTail32Width;
  static_assert(coefficients::kGeluTanhTail32Width == coefficients::kNormalTail32Width);
  const V t = hardware_min(V(top), abs(x)), sum = t + V(magic), h = t - (sum - V(magic));
  const typename V::Unsigned piece = bits(sum);
  V c[6];
  for (int i = 0; i < 6; ++i) c[i] = V::look_up(table[i + 1], piece);
  const V tail = t * fma(estrin(h, c), h, V::look_up(table[0], piece));
  const V y = select(x < V(0.0f), V(-0.0f), x) - tail;
  const typename V::Mask far = x < V(bottom);
  return any(far) ? select(far, anywhere(x), y) : y;
}
template <Float V>
TENON_FORMULA V gelu(V x) {
  if constexpr (V::kLookups >= 32)
    return minus_tail(x, coefficients::kNormalTail32, -4.3f, 7.87f, [](V y) { return gelu_anywhere(y); });
  else
    return gelu_anywhere(x);
}
template <Float V>
TENON_FORMULA V gelu_tanh(V x) {
  if constexpr (V::kLookups >= 32)
    return minus_tail(x, coefficients::kGeluTanhTail32, -4.1f, 5.6f, [](V y) { return gelu_tanh_anywhere(y); });
  else
    return gelu_tanh_anywhere(x);
}
// For results of bf16, with instructions whose errors have an effect on the last bits of f32 only: about |log2| ULP of exp2's
// result.
template <Float V>
TENON_FORMULA V short_silu(V x) {
  const V c = limited(x), e = short_exp2(abs(c) * V(-kLog2EF));
  return select(c < V(0.0f), c * e, c) * short_reciprocal(V(1.0f) + e);
}
template <Float V>
TENON_FORMULA V short_gelu(V x) {
  const V t = hardware_min(V(14.5f), abs(x)), r = short_reciprocal(t + V(4.0f));
  const V tail = t * short_exp2(t * t * V(-0.5f * kLog2EF)) * (polynomial((t - V(4.0f)) * r, coefficients::kMillsShort) * r);
  // Half a subnormal number may be a tie.
  return select(t < V(0x1p-20f), x * V(0.5f), select(x < V(0.0f), V(-0.0f), x) - tail);
}
template <Float V>
TENON_FORMULA V short_celu(V x, V alpha) {
  const V quotient = x * (V(1.0f) / alpha);
  const V grown = select(abs(quotient) < V(0.34f), expm1_reduced(quotient), short_exp2(quotient * V(kLog2EF)) - V(1.0f));
  return select(x >= V(0.0f), x, select(abs(quotient) < V(0x1p-25f), x, alpha * grown));
}
// Phi(x).
template <Float V>
TENON_FORMULA V ndtr(V x) {
  const V tail = normal_tail(V(1.0f), hardware_min(V(14.5f), abs(x)));
  return select(x < V(0.0f), tail, V(1.0f) - tail);
}

}  // namespace tenon::math

// Ops of f32 whose body (ops/elementwise), written for any value type, would be evaluated in doubles; over the value types of
// float.h. They need FMA. The kernels of the CPU, CUDA and OpenCL are made from the list below.
#pragma once

#include "math/float.h"

// X(Op, function) of the op's inputs and parameters.
#define TENON_FLOAT_OPS(X) X(FloorDiv, floor_div) X(TruncDiv, trunc_div)

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

}  // namespace tenon::math

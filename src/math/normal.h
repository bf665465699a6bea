// Normal random numbers of f32 from uniform ones (graph/random.h), within 4 ULP: sqrt(-2 ln u) times the cosine or the sine of
// an angle, over the value types of float.h. Beyond those they use reciprocal_root(x), within a few ULP.
//
// Random numbers are many and cheap to store, so what counts is the number of instructions.
#pragma once

#include "math/float.h"

namespace tenon::math {

// sqrt(-2 ln(v 2^-32)), v in [1, 2^32).
template <Float V>
TENON_FORMULA V normal_radius(V v) {
  const typename V::Unsigned reduced = bits(v) - (kHalfRootF + (32u << 23));
  const V e = V::exponent(reduced), f = V::from_bits((reduced & 0x7fffffu) + kHalfRootF) - V(1.0f), twice = f * V(-2.0f);
  // -2 (e ln(2) + f - f^2 / 2 + ...)
  const V series = (f * f) * fma(twice, polynomial(f, coefficients::kLog), V(1.0f));
  const V square = fma(e, V(-2.0f * kLn2HighF), twice) + fma(e, V(-2.0f * kLn2LowF), series);
  const V inverse = reciprocal_root(square), root = square * inverse;
  return fma(fma(-root, root, square), V(0.5f) * inverse, root);
}
// The sine and the cosine of pi / 4 x, x in [-1, 1].
template <Float V>
TENON_FORMULA V quarter_sin(V x) {
  const V square = x * x;
  return fma(x * square, polynomial(square, coefficients::kQuarterSin), x * V(0.785398185f));
}
template <Float V>
TENON_FORMULA V quarter_cos(V x) {
  const V square = x * x;
  return fma(square, fma(square, polynomial(square, coefficients::kQuarterCos), V(-0.308425128f)), V(1.0f));
}

// Their products with the radius, for v in [1, 2^32) and x in [-1, 1].
template <Float V>
TENON_FORMULA V normal_cos(V v, V x) {
  return normal_radius(v) * quarter_cos(x);
}
template <Float V>
TENON_FORMULA V normal_sin(V v, V x) {
  return normal_radius(v) * quarter_sin(x);
}

}  // namespace tenon::math

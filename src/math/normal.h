// Normal random numbers of f32 from uniform ones (graph/random.h), within an ULP: sqrt(-2 ln u) times the cosine or the sine of
// an angle, over the value types of float.h. Beyond those they use reciprocal_root(x), within a few ULP.
//
// An ULP of the product is less than what rounding the two factors alone may cost, so each is kept as a sum of a head and a rest.
#pragma once

#include "math/head_and_rest.h"

namespace tenon::math {

// sqrt(-2 ln(v 2^-32)), v in [1, 2^32); the rest is tiny.
template <Float V>
TENON_FORMULA HeadAndRest<V> normal_radius(V v) {
  const typename V::Unsigned reduced = bits(v) - (kHalfRootF + (32u << 23));
  const HeadAndRest<V> square = twice_minus_log(V::exponent(reduced), V::from_bits((reduced & 0x7fffffu) + kHalfRootF));
  const V inverse = reciprocal_root(square.head), root = square.head * inverse;
  return {root, (fma(-root, root, square.head) + square.rest) * (V(0.5f) * inverse)};
}
// The sine and the cosine of pi / 4 x, x in [-1, 1].
template <Float V>
TENON_FORMULA HeadAndRest<V> quarter_sin(V x) {
  const V a(0.785398185f), a_rest(-2.18556941e-8f), square = x * x, head = x * a;
  return {head, fma(x, fma(square, polynomial(square, coefficients::kQuarterSin), a_rest), fma(x, a, -head))};
}
template <Float V>
TENON_FORMULA HeadAndRest<V> quarter_cos(V x) {
  const V b(-0.308425128f), b_rest(-9.07411213e-9f), one(1.0f);
  const V square = x * x, square_rest = fma(x, x, -square);
  const V head = fma(square, b, one), head_rest = fma(square, b, one - head);
  const V series = fma(square, fma(square, polynomial(square, coefficients::kQuarterCos), b_rest), square_rest * b);
  return {head, head_rest + series};
}

// Their products with the radius, for v in [1, 2^32) and x in [-1, 1].
template <Float V>
TENON_FORMULA V normal_cos(V v, V x) {
  const HeadAndRest<V> r = normal_radius(v), c = quarter_cos(x);
  return fma(r.head, c.head, fma(r.head, c.rest, r.rest * c.head));
}
template <Float V>
TENON_FORMULA V normal_sin(V v, V x) {
  const HeadAndRest<V> r = normal_radius(v), s = quarter_sin(x);
  return fma(r.head, s.head, fma(r.head, s.rest, r.rest * (s.head + s.rest)));
}

}  // namespace tenon::math

// Normal random numbers of f32 from uniform ones (graph/random.h), within an ULP: sqrt(-2 ln u) times the cosine or the sine of
// an angle, over the value types of float.h. Beyond those they use reciprocal_root(x), within a few ULP.
//
// An ULP of the product is less than what rounding the two factors alone may cost, so each is kept as a sum of a head and a rest.
#pragma once

#include "math/float.h"

namespace tenon::math {

template <Float V>
struct HeadAndRest {
  V head, rest;
};
// -2 ln(v 2^-32), v in [1, 2^32).
template <Float V>
TENON_FORMULA HeadAndRest<V> twice_minus_log(V v) {
  const typename V::Unsigned reduced = bits(v) - (kHalfRootF + (32u << 23));
  const V e = V::exponent(reduced), mantissa = V::from_bits((reduced & 0x7fffffu) + kHalfRootF);
  const V f = mantissa - V(1.0f), twice = fma(mantissa, V(-2.0f), V(2.0f));
  const V square = f * f, square_rest = fma(f, f, -square);
  // -2 (e ln(2) + f - f^2 / 2) with what each sum loses; the rest of the series is small.
  const V high(-2.0f * kLn2HighF), low(-2.0f * kLn2LowF);
  const V sum = fma(e, high, twice), sum_rest = twice - fma(-e, high, sum);
  const V head = sum + square, head_rest = square - (head - sum);
  const V series = fma(twice * square, polynomial(f, coefficients::kLog), fma(e, low, square_rest));
  const V rest = series + (sum_rest + head_rest), total = head + rest;
  return {total, rest - (total - head)};
}
// sqrt(-2 ln(v 2^-32)); the rest is tiny.
template <Float V>
TENON_FORMULA HeadAndRest<V> normal_radius(V v) {
  const HeadAndRest<V> square = twice_minus_log(v);
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

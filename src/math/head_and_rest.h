// Values of f32 as a sum of a head and a rest, for functions whose result shows more than the 24 bits of one float; over the
// value types of float.h, with FMA.
#pragma once

#include "math/float.h"

namespace tenon::math {

template <Float V>
struct HeadAndRest {
  V head, rest;
};
// x + y where x is the larger in magnitude, or 0.
template <Float V>
TENON_FORMULA HeadAndRest<V> sum_in_order(V x, V y) {
  const V sum = x + y;
  return {sum, y - (sum - x)};
}
// x - y.
template <Float V>
TENON_FORMULA HeadAndRest<V> difference(V x, V y) {
  const V head = x - y, part = head - x;
  return {head, (x - (head - part)) - (y + part)};
}

// -2 ln(2^e (m + more)), m between sqrt(1/2) and sqrt(2); |more|, if any, is tiny. Within 2^-27 of the value, or 2^-28.
template <Float V, class... More>
TENON_FORMULA HeadAndRest<V> twice_minus_log(V e, V m, More... more) {
  const V f = m - V(1.0f), twice = fma(m, V(-2.0f), V(2.0f));
  const V square = f * f, square_rest = fma(f, f, -square);
  // -2 (e ln(2) + f - f^2 / 2) with what each sum loses; the rest of the series is small.
  const V high(-2.0f * kLn2HighF), low(-2.0f * kLn2LowF);
  const V sum = fma(e, high, twice), sum_rest = twice - fma(-e, high, sum);
  const HeadAndRest<V> head = sum_in_order(sum, square);
  V rest = fma(twice * square, polynomial(f, coefficients::kLog), fma(e, low, square_rest)) + (sum_rest + head.rest);
  if constexpr (sizeof...(more) > 0) {
    const V inverse = fma(f, fma(f, fma(f, fma(f, V(1.0f), V(-1.0f)), V(1.0f)), V(-1.0f)), V(1.0f));  // 1 / m, to 2^-6
    rest = fma((V(-2.0f) * more)..., inverse, rest);
  }
  return sum_in_order(head.head, rest);
}

}  // namespace tenon::math

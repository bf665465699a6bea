// Functions that C libraries lack, in the full precision of f64, each written once over a value type V whose other functions are
// its platform's: Scalar<double> (value.h), the recording type of generated kernels (codegen/c/function_text.cpp), StableHLO's
// terms (codegen/stablehlo). No FMA, no bit work, no branches; V may not be constructible from a number alone, but number(x, c)
// gives one like x.
#pragma once

#include <concepts>
#include <limits>
#include <numbers>

#include "math/coefficients.h"

namespace tenon::math {

template <class V>
V number(const V& x, double value) {
  if constexpr (std::constructible_from<V, double>)
    return V(value);
  else
    return x.like(value);
}

template <class V, int N>
V horner(const V& x, const double (&c)[N]) {
  V y = number(x, c[N - 1]);
  for (int i = N - 2; i >= 0; --i) y = y * x + number(x, c[i]);
  return y;
}

// Of two values the one that is asked for; V that are not numbers yet have both.
template <class Mask, class F, class G>
auto chosen(const Mask& mask, F f, G g) {
  if constexpr (std::convertible_to<Mask, bool>)
    return mask ? f() : g();
  else
    return select(mask, f(), g());
}

// A polynomial, and one step of Halley's method; near 1 it solves erfc(y) = 1 - |x|, which is exact.
template <class V>
V erfinv_of_platform(const V& x) {
  constexpr double root_pi = 1 / std::numbers::inv_sqrtpi, infinity = std::numeric_limits<double>::infinity();
  const V zero = number(x, 0.0), one = number(x, 1.0);
  const V t = abs(x);
  const auto inside = t < one;
  const V s = select(inside, t, zero);
  const V w = -log((one - s) * (one + s));
  const auto central = w < number(x, 6.0);
  const V near = s * horner(select(central, w, zero) - number(x, 3.0), coefficients::kErfinvCentral);
  const V root = sqrt(select(central, number(x, 6.0), w)) - number(x, 4.25);
  const V y = select(central, near, horner(root, coefficients::kErfinvTail));
  const V error = chosen(s < number(x, 0.5), [&] { return erf(y) - s; }, [&] { return (one - s) - erfc(y); });
  const V step = error / (exp(-(y * y)) * number(x, 2 / root_pi));
  // Below, the error of the start would be too small a number to correct.
  const V better = select(s < number(x, 0x1p-30), s * number(x, root_pi / 2), y - step / (y * step + one));
  const V outside = select(t == one, x * number(x, infinity), number(x, std::numeric_limits<double>::quiet_NaN()));
  return select(inside, copysign(better, x), outside);
}

// e^x is applied in halves because it overflows before the result does. Terms of even and of odd powers apart wait less for each
// other.
template <class V>
V i0_of_platform(const V& x) {
  const V t = abs(x), edge = number(x, 16.0), infinity = number(x, std::numeric_limits<double>::infinity());
  const auto small = t < edge;
  const auto near = [&] {
    const V half = select(small, t, number(x, 0.0)) * number(x, 0.5), z = half * half, square = z * z;
    constexpr int count = sizeof coefficients::kI0Small / sizeof(double);
    static_assert(count % 2 == 0);
    V even = number(x, coefficients::kI0Small[count - 2]), odd = number(x, coefficients::kI0Small[count - 1]);
    for (int i = count - 4; i >= 0; i -= 2) {
      even = even * square + number(x, coefficients::kI0Small[i]);
      odd = odd * square + number(x, coefficients::kI0Small[i + 1]);
    }
    return odd * z + even;
  };
  const auto far = [&] {
    const V large = select(small, edge, t), root = exp(large * number(x, 0.5));
    const V tail = root * (root * (horner(edge / large - number(x, 0.5), coefficients::kI0Large) / sqrt(large)));
    return select(t == infinity, t, tail);
  };
  return chosen(small, near, far);
}

}  // namespace tenon::math

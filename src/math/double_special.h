// Error functions, gamma and Bessel functions of doubles: see double.h.
#pragma once

#include "math/double.h"

namespace tenon::math {

// A row of the table has something of each piece; the pieces' boundaries are where the leading bits of x + bias change.
template <Double V, int Rows>
TENON_FORMULA V piecewise(V x, const double (&table)[Rows][8], double bias) {
  const typename V::Unsigned index = bits(x + V(bias)) >> 51;
  const V u = x - V::look_up(table[0], index);
  V y = V::look_up(table[Rows - 1], index);
  for (int row = Rows - 2; row > 0; --row) y = fma(y, u, V::look_up(table[row], index));
  return y;
}

// erfc of a magnitude of 1 or more.
template <Double V>
TENON_FORMULA V erfc_tail(V magnitude) {
  const V t = hardware_min(V(28.0), magnitude), u = (t - V(2.0)) / (t + V(2.0));
  return exp<Precision::wide>(-(t * t)) * polynomial(u, coefficients::kWideErfcx) / fma(t, V(2.0), V(1.0));
}
template <Double V>
TENON_FORMULA V erf_central(V x) {
  return x * polynomial(x * x, coefficients::kWideErf);
}
template <Double V>
TENON_FORMULA V erf(V x) {
  const V t = abs(x);
  const typename V::Mask central = t < V(1.0);
  return select(central, erf_central(select(central, x, V(0.0))), copysign(V(1.0) - erfc_tail(hardware_max(V(1.0), t)), x));
}
// In full precision by pieces of erfc(t) exp(t^2): needs look-ups.
template <Precision precision, Double V>
TENON_FORMULA V erfc(V x) {
  if constexpr (precision == Precision::wide) {
    const V t = abs(x), tail = erfc_tail(hardware_max(V(1.0), t));
    return select(t < V(1.0), V(1.0) - erf_central(x), select(x < V(0.0), V(2.0) - tail, tail));
  } else {
    const V t = hardware_min(V(28.0), abs(x)), square = t * t;
    const V y = piecewise(t, coefficients::kDoubleErfcx8, coefficients::kDoubleErfcx8Bias);
    const ExpPartsD<precision, V> parts = exp_parts<precision>(-square, -fma(t, t, -square));
    const V tail = scale_by_power(fma(y, parts.value_less_one(), y), parts.n, parts.n_bits);
    return select(x < V(0.0), V(2.0) - tail, tail);
  }
}
template <Double V>
TENON_FORMULA V erfinv(V x) {
  const V w = -log<Precision::wide>((V(1.0) - x) * (V(1.0) + x));
  const V central = polynomial(hardware_min(V(6.0), w) - V(3.0), coefficients::kWideErfinvCentral);
  const V tail = polynomial(sqrt(clamp_keeping_nan(w, 6.0, 20.0)) - V(3.5), coefficients::kWideErfinvTail);
  const V y = x * select(w < V(6.0), central, tail);
  return select(abs(x) < V(1.0), y, select(abs(x) == V(1.0), x * V(kInfinityD), V(kNanD)));
}
// Stirling's series at 8 and more, where lesser arguments are brought by gamma(t + 8) = t (t + 1) ... (t + 7) gamma(t); below
// zero by gamma(x) gamma(-x) = -pi / (x sin(pi x)). One logarithm for both: near its zeros only the last digits of a double are
// lost, which those of f32 do not show.
template <Double V>
TENON_FORMULA V lgamma(V x) {
  const V t = abs(x);
  const typename V::Mask small = t < V(8.0), negative = x < V(0.0);
  const V z = t * (t + V(7.0));
  const V product = select(small, z * (z + V(6.0)) * ((z + V(10.0)) * (z + V(12.0))), V(1.0));
  const V u = select(small, t + V(8.0), t);
  const V inverse = V(1.0) / u;
  const V rest = fma(inverse, polynomial(inverse * inverse, coefficients::kWideLgamma), V(0x1.d67f1c864beb5p-1) - u);
  const V stirling = fma(u - V(0.5), log<Precision::wide>(u), rest);
  const V part = abs(t - rint(t));
  const V sine = select(part > V(0.25), cos_reduced((V(0.5) - part) * V(kPiD)), sin_reduced(part * V(kPiD)));
  const V logarithm = log<Precision::wide>(select(negative, V(kPiD) * product / (t * sine), product));
  const V y = select(negative, logarithm - stirling, stirling - logarithm);
  return select(is_inf(t), t, select((x == V(1.0)) | (x == V(2.0)), V(0.0), y));
}
template <Double V>
TENON_FORMULA V i0(V x) {
  const V t = abs(x);
  const V scaled = hardware_min(V(8.0), t) * V(0.125);
  const V small = polynomial(scaled * scaled, coefficients::kWideI0Small);
  const V inverse = V(8.0) / hardware_max(V(8.0), t);
  const V large = exp<Precision::wide>(t) * (polynomial(inverse, coefficients::kWideI0Large) / sqrt(t));
  return select(t <= V(8.0), small, select(is_inf(t), t, large));
}

// x^y by the power of a base above 0. Bases below 0, and 0, a library's function of vectors computes one by one, many times
// slower.
template <Double V, class F>
TENON_FORMULA V pow_by(V x, V y, F of_magnitudes) {
  const V zero(0.0), one(1.0), half = y * V(0.5), infinity(std::numeric_limits<double>::infinity());
  const typename V::Mask is_zero = x == zero, is_integer = trunc(y) == y, is_odd = is_integer & (trunc(half) != half);
  const V power = of_magnitudes(select(is_zero, one, abs(x)), y);
  const V of_zero = select(y < zero, infinity, select(y > zero, zero, select(y == zero, one, y)));
  const V size = select(is_zero, of_zero, power);
  const typename V::Mask is_undefined = (x < zero) & (x > -infinity) & !is_integer;
  return select(is_undefined, V(std::numeric_limits<double>::quiet_NaN()), select(is_odd, copysign(size, x), size));
}

}  // namespace tenon::math

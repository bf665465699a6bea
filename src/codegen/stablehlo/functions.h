// Functions of float terms, accurate to 4 ULP, with exact special values unless the device flushes subnormals.
//
// StableHLO has some of them, but the compiler determines their accuracy. Those known to be accurate are used directly, the
// others are composed here. In f32 most are computed in f64 and rounded once, if the target supports f64.
#pragma once

#include "codegen/stablehlo/writer.h"

namespace tenon::stablehlo {

Term is_nan(const Term& x);
Term is_inf(const Term& x);
Term signbit(const Term& x);
Term abs(const Term& x);
Term copysign(const Term& x, const Term& y);
Term min(const Term& x, const Term& y);  // NaN if either is NaN; likewise max
Term max(const Term& x, const Term& y);
Term floor(const Term& x);
Term ceil(const Term& x);
Term trunc(const Term& x);
Term rint(const Term& x);
Term fmod(const Term& x, const Term& y);

Term quotient(const Term& x, const Term& y);  // correctly rounded
Term sqrt(const Term& x);
Term cbrt(const Term& x);
Term exp(const Term& x);
// For f64, accurate to one ULP.
Term exact_exp(const Term& x);
Term exp2(const Term& x);
Term expm1(const Term& x);
Term log(const Term& x);
Term log2(const Term& x);
Term log10(const Term& x);
Term log1p(const Term& x);
Term pow(const Term& x, const Term& y);

Term sin(const Term& x);
Term cos(const Term& x);
Term tan(const Term& x);
Term asin(const Term& x);
Term acos(const Term& x);
Term atan(const Term& x);
Term atan2(const Term& y, const Term& x);
Term sinh(const Term& x);
Term cosh(const Term& x);
Term tanh(const Term& x);
Term asinh(const Term& x);
Term acosh(const Term& x);
Term atanh(const Term& x);

Term erf(const Term& x);
Term erfc(const Term& x);
Term erfinv(const Term& x);
Term lgamma(const Term& x);
Term i0(const Term& x);

}  // namespace tenon::stablehlo

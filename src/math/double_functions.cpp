#include "math/double_functions.h"

#include "math/value.h"

namespace tenon {

double lgamma_of(double x) { return lgamma(value::Scalar<double>(x)).v; }
double erfinv_of(double x) { return erfinv(value::Scalar<double>(x)).v; }
double i0_of(double x) { return i0(value::Scalar<double>(x)).v; }

}  // namespace tenon

// Functions of doubles outside the C library's list: compiled once, for the baseline, so that kernels of every instruction set
// may call them; and which functions of the C library there are for vectors.
#pragma once

namespace tenon {

double lgamma_of(double x);  // std::lgamma writes a global: a race between threads
double erfinv_of(double x);
double i0_of(double x);

}  // namespace tenon

// X(name) for the functions whose form for vectors (libmvec, TENON_HAS_VECTOR_FUNCTIONS) is as exact as its users need; of exp
// and exp2 there are better ones.
// clang-format off
#define TENON_VECTOR_FUNCTIONS_OF_ONE(X) \
  X(expm1) X(log) X(log2) X(log10) X(log1p) X(sin) X(cos) X(tan) X(asin) X(acos) X(atan) X(sinh) X(cosh) X(tanh) X(asinh) X(acosh) \
  X(atanh) X(cbrt) X(erf) X(erfc)
#define TENON_VECTOR_FUNCTIONS_OF_TWO(X) X(pow) X(atan2)
// clang-format on

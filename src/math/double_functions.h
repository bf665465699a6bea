// Functions of doubles outside the C library's list: compiled once, for the baseline, so that kernels of every instruction set
// may call them; and which functions there are for vectors.
#pragma once

namespace tenon {

double lgamma_of(double x);  // std::lgamma writes a global: a race between threads
double erfinv_of(double x);
double i0_of(double x);

}  // namespace tenon

// X(name) for the functions of vectors of doubles: our own (math/double.h), where there are AVX2 and FMA or, with look-ups,
// AVX-512; and those of the C library (libmvec, TENON_HAS_VECTOR_FUNCTIONS: without it the CPU backend has none), which has
// the first ones too. Of exp and exp2 there are better ones.
// clang-format off
#define TENON_OWN_VECTOR_FUNCTIONS(X) \
  X(expm1) X(log) X(asin) X(acos) X(atan) X(sinh) X(tanh)
#define TENON_OWN_LOOKUP_FUNCTIONS(X) X(erfc)
#define TENON_LIBRARY_VECTOR_FUNCTIONS(X) \
  X(log2) X(log10) X(log1p) X(sin) X(cos) X(tan) X(cosh) X(asinh) X(acosh) X(atanh) X(cbrt) X(erf)
#define TENON_VECTOR_FUNCTIONS_OF_TWO(X) X(pow) X(atan2)
// clang-format on

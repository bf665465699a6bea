// The published error limits of results (printed in docs/conformance.md).
//
// A limit belongs to one primitive. The error bound of a composed op follows from the limits of its primitives, propagated
// through the program (bounds.h); no op has a tolerance of its own.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "tenon/array/dtype.h"
#include "tenon/graph.h"

namespace tenon::conformance {

struct Limit {
  double ulp = 0;      // of the type computed in; 0: exact, 0.5: correctly rounded
  std::string reason;  // why it is wider than usual; empty otherwise
};

// |compute| is f32 or f64; integers and bool are always exact.
Limit elementwise_limit(ElementwiseOp op, DType compute);
// Whether -0 and 0 must be distinguished in the result.
bool keeps_sign_of_zero(ElementwiseOp op);

// u: half the distance between 1 and the next number.
double unit_roundoff(DType compute);
// The distance between adjacent numbers of |dtype| around |x|; |dtype| is f16, bf16, f32 or f64.
double ulp(double x, DType dtype);

// In units of u times the sum of the magnitudes of the terms:
double sum_limit(std::int64_t n);           // reductions: pairwise or better, 2 + log2(n); one element is itself
double accumulation_limit(std::int64_t n);  // matmul, convolution, running sums: 4 + 2 sqrt(n)

// Share of random cases in which f16 and bf16 results must be the correctly rounded ones.
inline constexpr double kRoundedShare = 0.999;

}  // namespace tenon::conformance

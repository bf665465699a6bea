// Evaluates elementwise ops one element at a time: their bodies instantiated with Scalar<double> and the integer types. Used by
// the reference interpreter, constant folding and tests; it shares only the bodies with the backends.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>

#include "ops/elementwise/elementwise.h"
#include "tenon/array/dtype.h"

namespace tenon {

// out[i] = op(in[0][i], in[1][i], ...; params) for i in [0, n). |dtype| is that of the values: f64, an integer type, or boolean
// (as u8 0/1). A condition is u8, and so is the result of an op that returns bool; otherwise the result has |dtype|. out may be
// one of the inputs of the same element size.
// Throws internal if the op's traits exclude |dtype|.
void evaluate_block(ElementwiseOp op, DType dtype, const void* const* in, void* out, std::int64_t n, const double* params);

// One element in double; a condition and a bool result are 0 or 1. Integer-only ops are evaluated in i64.
double evaluate(ElementwiseOp op, const double* in, const double* params);

}  // namespace tenon

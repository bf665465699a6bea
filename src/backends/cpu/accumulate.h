// Arithmetic on Accumulators (kernels.h): what joins the partial results of a reduction.
#pragma once

#include <cmath>

#include "backends/cpu/kernels.h"

namespace tenon::cpu {

enum class AccumulatorClass : std::uint8_t { floating, signed_integer, unsigned_integer };

inline AccumulatorClass accumulator_class(DType dtype) {
  if (is_float(dtype)) return AccumulatorClass::floating;
  return is_signed_integer(dtype) ? AccumulatorClass::signed_integer : AccumulatorClass::unsigned_integer;
}

// The neutral element; of max and min the extreme of |dtype|.
Accumulator identity(ReduceKind kind, DType dtype);
Accumulator combine(ReduceKind kind, AccumulatorClass cls, Accumulator a, Accumulator b);
// Joins |count| partial results, |stride| apart, as a balanced tree: the order depends on count alone.
Accumulator combine_tree(ReduceKind kind, AccumulatorClass cls, const Accumulator* parts, std::int64_t count,
                         std::int64_t stride);
// Writes the result as an element of |dtype| (a compute type).
void store(Accumulator value, DType dtype, void* out);

}  // namespace tenon::cpu

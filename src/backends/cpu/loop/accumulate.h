// Arithmetic on Accumulators (kernels.h): combines the partial results of a reduction.
#pragma once

#include <cmath>

#include "backends/cpu/kernels/kernels.h"

namespace tenon::cpu {

enum class AccumulatorClass : std::uint8_t { floating, signed_integer, unsigned_integer };

inline AccumulatorClass accumulator_class(DType dtype) {
  if (is_float(dtype)) return AccumulatorClass::floating;
  return is_signed_integer(dtype) ? AccumulatorClass::signed_integer : AccumulatorClass::unsigned_integer;
}

// The neutral element; for max and min the extreme value of |dtype|.
Accumulator identity(ReduceKind kind, DType dtype);
Accumulator combine(ReduceKind kind, AccumulatorClass cls, Accumulator a, Accumulator b);
// Combines |count| rows of |n| partial results, |stride| apart, into the first, as a balanced tree whose order depends only on
// |count|. The other rows are overwritten.
void combine_tree(ReduceKind kind, AccumulatorClass cls, Accumulator* rows, std::int64_t count, std::int64_t stride,
                  std::int64_t n);
// Writes the results as elements of |dtype| (a compute type).
void store(const Accumulator* values, std::int64_t n, DType dtype, void* out);
inline void store(Accumulator value, DType dtype, void* out) { store(&value, 1, dtype, out); }

}  // namespace tenon::cpu

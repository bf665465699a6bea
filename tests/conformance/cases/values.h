// The input values of conformance cases: ordinary numbers, numbers over the whole range of a type, and special
// values.
//
// Every array depends only on (fill, dtype, shape, seed).
#pragma once

#include <cstdint>
#include <vector>

#include "tenon/array.h"

namespace tenon::conformance {

enum class Values : std::uint8_t {
  mixed,    // a quarter each in [-8, 8], in [-1, 1], from 2^-12 to 2^8, and of all numbers of the type; integers: half and half
  special,  // zeros, subnormals, limits, infinities, NaN, edges of domains; |operand| of |operands| walks its own axis of a grid
  every,    // f16 and bf16: each of the 65536 bit patterns
  small,    // [-2, 2]; integers [-5, 5]
  unit,     // (0.05, 0.95); integers 0 and 1
  above_one,    // [1, 3]
  positive,     // [0.25, 4]; integers 1 to 9
  negative,     // [-4, -0.05]; signed integers -9 to -1
  wide,         // both signs, magnitudes 1e-4 to 1e4; integers over their whole range
  near_one,     // both signs, magnitudes 3/4 to 4/3; integers 1, 2, 3 and -1
  ties,         // few different values, so that equal ones meet; floats with NaN, infinities and both zeros
  hard_rows,    // as small, but one row each has a NaN, an infinity, a minus infinity, nothing but minus infinities
  index,        // integers that point into an axis of |limit| elements, from the end too where the type has a sign
  class_index,  // integers in [0, limit)
  mask,         // zeros and ones
  zero,
  one,
};

struct Fill {
  Values values = Values::small;
  std::int64_t limit = 0;
  int operand = 0, operands = 1;
};

HostArray filled(const Fill& fill, DType dtype, const Shape& shape, std::uint64_t seed);

// The number of values of Values::special: a shape of this many elements contains every combination of |operands|.
std::int64_t special_count(DType dtype, int operands);

// A hash to make seeds from.
std::uint64_t mix(std::uint64_t a, std::uint64_t b) noexcept;

}  // namespace tenon::conformance

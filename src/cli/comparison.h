// How far a result is from the reference, and whether that is too far.
#pragma once

#include <cstdint>
#include <span>

#include "tenon/array.h"

namespace tenon::cli {

struct Comparison {
  double max_abs = 0;
  double max_rel = 0;       // where the reference is not 0
  double max_ulp = 0;       // in units of the result's dtype at the reference value; of its block's step for the block formats
  std::int64_t worst = -1;  // the element with the largest ULP error; -1 when there is none
  std::int64_t mismatches = 0;  // elements beyond the tolerance
};

// An element matches when it is within kUlpLimit units (2 for the 16-bit and block formats) or within kScaleLimit of the largest
// reference value (1e-10 of it for float64): the error long sums may have in their small elements. NaN must meet NaN, infinities
// must be equal, integers and bool exact.
inline constexpr double kUlpLimit = 16;
inline constexpr double kScaleLimit = 0x1p-15;

// |reference| has one double per element of |result|, before rounding to its dtype.
Comparison compare(const HostArray& result, std::span<const double> reference);

}  // namespace tenon::cli

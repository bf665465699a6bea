// Compares one result with its expected value.
//
// NaN must match NaN, infinities must agree in sign, integers and bool must be equal. A float passes if it is the correctly
// rounded expected value or within its bound; f16 and bf16 pass if some value within the bound rounds to them. An element of a
// block format may be off by one step of its block's grid, and must be equal if the computation is exact.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "conformance/judge/bounds.h"

namespace tenon::conformance {

struct Mismatch {
  std::int64_t index = 0;  // row-major
  double got = 0, expected = 0;
  double error_ulp = 0, limit_ulp = 0;  // in units of the output's dtype
};

struct Comparison {
  std::int64_t elements = 0;
  std::int64_t unchecked = 0;    // nothing is known of what was expected
  std::int64_t not_rounded = 0;  // differ from the correctly rounded expected value
  std::int64_t failures = 0;
  double worst_ulp = 0;
  double worst_share = 0;         // of its bound that an error takes up, of those not correctly rounded
  std::optional<Mismatch> worst;  // of the failures
};

// |got| must have the shape of |expected|; |zero_sign| tells -0 and 0 apart.
Comparison compare(const HostArray& got, const Bounded& expected, bool zero_sign);

}  // namespace tenon::conformance

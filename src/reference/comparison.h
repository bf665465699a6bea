// The error of a result against the reference over the whole tensor, and whether it is within the tolerance of its dtype.
//
//   std::vector<std::vector<double>> wanted = reference_doubles(graph, inputs);
//   Comparison c = compare(result.outputs[0], wanted[0]);
//   if (c.mismatches > 0) ...
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "tenon/array.h"

namespace tenon {

// Lower edges of the error classes, in ULP.
inline constexpr std::array<double, 9> kUlpEdges{0, 0.5, 1, 2, 4, 8, 16, 64, 256};

struct Comparison {
  double max_abs = 0;
  double max_rel = 0;           // where the reference is not 0
  double max_ulp = 0;           // in ULP of the result's dtype at the reference value; for block formats in steps of the block
  std::int64_t worst = -1;      // the element with the largest ULP error; -1 if there is none
  std::int64_t mismatches = 0;  // elements beyond the tolerance
  // Pearson's correlation over the elements that are finite on both sides; 1 if both sides are constant and equal, nullopt if one
  // side is constant and they differ.
  std::optional<double> pcc;
  std::array<std::int64_t, kUlpEdges.size()> ulp_counts{};  // of the finite elements, by kUlpEdges
  std::int64_t nan = 0, reference_nan = 0, infinite = 0, reference_infinite = 0;
};

// An element matches if it is within |ulp| ULP or within |scale| of the largest reference value (the error that long sums may
// have in small elements). NaN must match NaN, infinities must be equal, integers and bool must be exact.
struct Tolerance {
  double ulp = 0, scale = 0;
};
inline constexpr double kUlpLimit = 16;
inline constexpr double kScaleLimit = 0x1p-15;
Tolerance tolerance_of(DType dtype) noexcept;

// |reference| has one double per element of |result|, before rounding to its dtype.
Comparison compare(const HostArray& result, std::span<const double> reference);

}  // namespace tenon

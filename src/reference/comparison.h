// The error of a result against the reference over the whole tensor, and whether it is within the tolerance of its dtype.
//
//   for (const Compared& each : compare_with_reference(graph, inputs, result.outputs).results)
//     if (each.comparison.mismatches > 0) ...
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tenon/array.h"
#include "tenon/graph.h"

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
// |reference| is f64, or for integers and bool of the result's dtype: those are compared exactly, also beyond 2^53.
Comparison compare(const HostArray& result, const HostArray& reference);

// A result with what the reference says of it.
struct Compared {
  Comparison comparison;
  HostArray reference;  // f64 before rounding to the result's dtype; integers and bool in their own
};
struct ComparedResults {
  std::vector<Compared> results;
  double reference_seconds = 0;  // what the reference took
};

// Runs the reference and compares all |results| of |graph| with it. Throws what reference_doubles throws.
ComparedResults compare_with_reference(const Graph& graph, std::span<const HostArray> inputs, std::span<const HostArray> results);

}  // namespace tenon

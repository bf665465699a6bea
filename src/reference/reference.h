// The reference interpreter: what a graph means, evaluated plainly in double, one element at a time.
//
// Float nodes, whatever their dtype, are evaluated in double and stay unrounded; explicit casts round where they stand (to f32
// too), outputs are rounded once. Integers are exact and wrap as their dtype does, bool is 0 or 1. Sums are compensated
// (Neumaier). It is the oracle of the conformance suite and of comparisons, so it shares nothing with a backend but the
// elementwise formulas.
//
// Throws invalid_argument when the inputs do not fit the graph, out_of_range for an index past the end of what it selects from,
// resource_exhausted before computing anything when more than kReferenceMaxBytes would be live at once.
// Thread safety: calls may run side by side.
//
//   std::vector<HostArray> y = reference_run(graph, inputs);
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "tenon/array.h"
#include "tenon/graph.h"

namespace tenon {

inline constexpr std::size_t kReferenceMaxBytes = std::size_t{4} << 30;

// The outputs, in their dtypes.
std::vector<HostArray> reference_run(const Graph& graph, std::span<const HostArray> inputs);

// The outputs before the final rounding. Integers and bool are exact (64-bit ones up to 2^53).
std::vector<std::vector<double>> reference_doubles(const Graph& graph, std::span<const HostArray> inputs);

}  // namespace tenon

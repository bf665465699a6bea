// The reference interpreter: defines the meaning of a graph by evaluating it in double, one element at a time.
//
// Float nodes of any dtype are evaluated in double and not rounded; explicit casts round (also to f32), and outputs are rounded
// once. Integers are exact and wrap like their dtype; bool is 0 or 1. Sums are compensated (Neumaier), except in products of
// less than f64, where plain sums in double are exact enough. It is the oracle of the
// conformance suite and of comparisons, so it shares only the elementwise formulas with the
// backends.
//
// Throws invalid_argument if the inputs do not match the graph, out_of_range for an index that is out of range,
// resource_exhausted, before computing anything, if more than kReferenceMaxBytes would be live at once.
// Thread safety: calls may run concurrently.
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

// The most that a run of the reference has live at once, in bytes.
std::size_t reference_peak_bytes(const Graph& graph);

// The outputs, in their dtypes.
std::vector<HostArray> reference_run(const Graph& graph, std::span<const HostArray> inputs);

// The outputs before the final rounding: f64 for floats; integers and bool in their own dtypes, exact.
std::vector<HostArray> reference_unrounded(const Graph& graph, std::span<const HostArray> inputs);

// The same as doubles. Integers and bool are exact (64-bit ones up to 2^53).
std::vector<std::vector<double>> reference_doubles(const Graph& graph, std::span<const HostArray> inputs);

}  // namespace tenon

// The minimum bytes and operations of a program, counted from its graph; the basis of GB/s and GFLOP/s.
#pragma once

#include <cstdint>

#include "tenon/graph.h"

namespace tenon {

struct Cost {
  std::uint64_t bytes_read = 0;     // inputs and constant tensors that the outputs depend on, each counted once
  std::uint64_t bytes_written = 0;  // outputs
  double flops = 0;
};

// Counts the nodes that the outputs depend on: one operation per element of any elementwise op; 2 m n k for a matrix product, and
// accordingly for a convolution; one per element read by a reduction, window or running sum; n log2 n for a sort; none for
// views, casts, copies and random numbers.
Cost cost(const Graph& graph);
// Of one node, counted in the same way.
double flops(const Graph& graph, const Node& node);

}  // namespace tenon

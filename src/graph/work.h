// What a program must move and compute at the least, counted from its graph: the basis of GB/s and GFLOP/s.
#pragma once

#include <cstdint>

#include "tenon/graph.h"

namespace tenon {

struct Cost {
  std::uint64_t bytes_read = 0;     // inputs and constant tensors the outputs depend on, each once
  std::uint64_t bytes_written = 0;  // outputs
  double flops = 0;
};

// Counts nodes the outputs depend on. One operation per element of an elementwise op, whatever it is; 2 m n k for a matrix
// product, likewise a convolution; one per element a reduction, window or running sum reads; n log2 n for a sort; none for views,
// casts, copies and random numbers.
Cost cost(const Graph& graph);

}  // namespace tenon

// lower: a program in which every value is a number of its own dtype.
//
// In a Graph, a node of bfloat16, float16 or a block format is computed in float32 and not rounded until it leaves the program or
// enters a product. TTNN's tensors have one type, and the tiers of a plan pass tensors to each other. The lowered graph says it
// with dtypes and casts: what is not rounded is a float32 node, and a node of a narrow dtype is stored in it.
//
// Thread safety: pure.
#pragma once

#include <vector>

#include "graph/optimize/simplify.h"
#include "tenon/graph.h"

namespace tenon::ttnn {

struct LoweredGraph {
  Graph graph;
  std::vector<bool> narrow;  // by node: it stands for a value of a narrow dtype
};

enum class Narrow : std::uint8_t {
  in_float32,  // as Tenon promises
  each,        // every bfloat16 node is rounded: for chips without 32-bit types
};

LoweredGraph lower(const Graph& graph, const RegionFilter& takes, Narrow narrow);

}  // namespace tenon::ttnn

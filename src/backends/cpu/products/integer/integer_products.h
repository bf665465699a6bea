// Products of 8-bit integers, recognised in a simplified graph: differences of
// 8-bit values and zero points, multiplied in f32 in parts that are exact, and
// added as 32-bit integers.
#pragma once

#include <map>

#include "tenon/graph.h"

namespace tenon::cpu {

// Inputs of such a node: a and b in 8 bits, then the zero points that there
// are, in f32: one, or one per row of a (column of b).
struct IntegerProduct {
  int a_zero = -1, b_zero = -1;  // which input; -1: none
  MatMulAttr attr;
};

struct IntegerGraph {
  Graph graph;
  std::map<NodeId, IntegerProduct> products;  // Prim::matmul nodes of dtype i32
};

IntegerGraph recognise_integer_products(const Graph& graph);

}  // namespace tenon::cpu

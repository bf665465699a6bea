// Graph passes of the CPU backend, on simplified graphs: ops that exporters
// wrote out are recognised, and the elementwise ops that follow a product with
// weights become its epilogue.
#pragma once

#include <map>

#include "backends/cpu/products/epilogue.h"
#include "backends/cpu/products/integer/integer_products.h"
#include "tenon/graph.h"

namespace tenon::cpu {

// x * sigmoid(x) becomes silu, the erf formula gelu, pow(x, 2) square. Nodes
// that are no longer read remain.
Graph recognise_ops(const Graph& graph);

struct FusedGraph {
  Graph graph;
  // By node, a conv, a transposed one or a matmul: what follows it. Its inputs from the third on
  // are the operands of the epilogue, in its order.
  std::map<NodeId, Epilogue> epilogues;
  std::map<NodeId, IntegerProduct> integer_products;
};

// Chains of elementwise ops, each the only reader of the one before, after a
// conv or matmul in f32 whose right operand is an input of the program. Dead
// nodes are dropped.
FusedGraph absorb_epilogues(const Graph& graph, const std::map<NodeId, IntegerProduct>& integer_products);

// A convolution or a transposed one.
bool is_conv(const Node& node);

// The input of the program that |id| is a view of, or -1.
NodeId input_behind(const Graph& graph, NodeId id);

}  // namespace tenon::cpu

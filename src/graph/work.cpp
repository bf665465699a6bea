#include "graph/work.h"

#include <cmath>
#include <vector>

namespace tenon {
namespace {

double elements(const Shape& shape) { return static_cast<double>(shape.elements()); }

}  // namespace

double flops(const Graph& graph, const Node& node) {
  const auto input = [&](std::size_t i) -> const Shape& { return graph[node.inputs[i]].shape; };
  switch (node.prim) {
    case Prim::elementwise: return elements(node.shape);
    case Prim::reduce:
    case Prim::arg_reduce:
    case Prim::cumulative: return elements(input(0));
    case Prim::scatter: return node.as<ScatterAttr>().add ? elements(input(1)) : 0;
    case Prim::matmul: {
      const Shape& a = input(0);
      return 2 * elements(node.shape) * static_cast<double>(a[a.rank() - (node.as<MatMulAttr>().transpose_a ? 2 : 1)]);
    }
    case Prim::conv: {
      const Shape& weight = input(1);
      return weight[0] == 0 ? 0 : 2 * elements(node.shape) * elements(weight) / static_cast<double>(weight[0]);
    }
    case Prim::window: {
      double size = 1;
      for (int i = 2; i < node.shape.rank(); ++i)
        size *= static_cast<double>(node.as<WindowAttr>().size[static_cast<std::size_t>(i - 2)]);
      return elements(node.shape) * size;
    }
    case Prim::arg_sort: {
      const double length = static_cast<double>(node.shape[node.as<ArgSortAttr>().axis]);
      return length > 1 ? elements(node.shape) * std::log2(length) : 0;
    }
    default: return 0;
  }
}

Cost cost(const Graph& graph) {
  std::vector<bool> needed(static_cast<std::size_t>(graph.size()));
  for (const NodeId id : graph.outputs()) needed[static_cast<std::size_t>(id)] = true;
  Cost total;
  for (NodeId id = graph.size() - 1; id >= 0; --id) {
    if (!needed[static_cast<std::size_t>(id)]) continue;
    const Node& node = graph[id];
    for (const NodeId input : node.inputs) needed[static_cast<std::size_t>(input)] = true;
    const bool tensor_constant = node.prim == Prim::constant && node.shape.elements() > 1;
    if (node.prim == Prim::input || tensor_constant) total.bytes_read += storage_bytes(node.dtype, node.shape);
    total.flops += flops(graph, node);
  }
  for (const NodeId id : graph.outputs()) total.bytes_written += storage_bytes(graph[id].dtype, graph[id].shape);
  return total;
}

}  // namespace tenon

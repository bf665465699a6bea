#include "backends/cpu/compile/round_moved.h"

#include <vector>

#include "graph/view.h"

namespace tenon::cpu {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

bool has_16_bits(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

// How many of the first inputs of a node are moved by it.
std::size_t moved_inputs(const Node& node) {
  switch (node.prim) {
    case Prim::concat: return node.inputs.size();
    case Prim::take:
    case Prim::gather: return 1;
    case Prim::pad: return node.as<PadAttr>().value == 0 ? 1 : 0;
    default: return is_view(node.prim) ? 1 : 0;
  }
}

// By node: whether everybody who reads it rounds it to its own dtype.
std::vector<bool> read_rounded(const Graph& graph) {
  std::vector<bool> rounded(at(graph.size()), true);
  for (NodeId id = graph.size() - 1; id >= 0; --id) {
    const Node& node = graph[id];
    if (is_rounding(graph, node)) continue;
    const std::size_t moved = rounded[at(id)] && has_16_bits(node.dtype) ? moved_inputs(node) : 0;
    for (std::size_t i = moved; i < node.inputs.size(); ++i) rounded[at(node.inputs[i])] = false;
  }
  return rounded;
}

}  // namespace

Graph round_moved(const Graph& graph) {
  bool has_any = false;
  for (NodeId id = 0; id < graph.size(); ++id) has_any = has_any || has_16_bits(graph[id].dtype);
  if (!has_any) return graph;
  const std::vector<bool> rounded = read_rounded(graph);
  Graph out;
  std::vector<NodeId> renamed(at(graph.size()), -1);
  for (NodeId id = 0; id < graph.size(); ++id) {
    Node node = graph[id];
    for (NodeId& in : node.inputs) in = renamed[at(in)];
    if (node.prim == Prim::input) {
      renamed[at(id)] = out.input(node.as<InputAttr>().name, node.dtype, node.shape);
      continue;
    }
    if (rounded[at(id)] && has_16_bits(node.dtype) && !is_view(node.prim))
      for (std::size_t i = 0; i < moved_inputs(node); ++i)
        node.inputs[i] = out.append({Prim::cast, node.dtype, false, out[node.inputs[i]].shape, {node.inputs[i]}, {}});
    renamed[at(id)] = out.append(std::move(node));
  }
  std::vector<NodeId> outputs;
  for (NodeId id : graph.outputs()) outputs.push_back(renamed[at(id)]);
  out.set_outputs(std::move(outputs));
  return out;
}

}  // namespace tenon::cpu

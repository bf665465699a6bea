#include "graph/simplify.h"

#include <unordered_map>

#include "graph/graph_key.h"

namespace tenon {
namespace {

std::vector<bool> live_nodes(const Graph& graph) {
  std::vector<bool> live(static_cast<std::size_t>(graph.size()), false);
  for (NodeId id : graph.outputs()) live[static_cast<std::size_t>(id)] = true;
  for (NodeId id : graph.inputs()) live[static_cast<std::size_t>(id)] = true;
  for (NodeId id = graph.size() - 1; id >= 0; --id)
    if (live[static_cast<std::size_t>(id)])
      for (NodeId in : graph[id].inputs) live[static_cast<std::size_t>(in)] = true;
  return live;
}

class Simplifier {
 public:
  Graph run(const Graph& source) {
    const std::vector<bool> live = live_nodes(source);
    std::vector<NodeId> renamed(static_cast<std::size_t>(source.size()), -1);
    for (NodeId id = 0; id < source.size(); ++id) {
      if (!live[static_cast<std::size_t>(id)]) continue;
      Node node = source[id];
      for (NodeId& in : node.inputs) in = renamed[static_cast<std::size_t>(in)];
      renamed[static_cast<std::size_t>(id)] = place(std::move(node));
    }
    std::vector<NodeId> outputs;
    for (NodeId id : source.outputs()) outputs.push_back(renamed[static_cast<std::size_t>(id)]);
    graph_.set_outputs(std::move(outputs));
    return std::move(graph_);
  }

 private:
  NodeId place(Node node) {
    switch (node.prim) {
      case Prim::input: return graph_.input(node.as<InputAttr>().name, node.dtype, node.shape);
      case Prim::iota: return place_iota(std::move(node));
      case Prim::reduce: return place_reduce(std::move(node));
      case Prim::reshape:
        while (graph_[node.inputs[0]].prim == Prim::reshape) node.inputs[0] = graph_[node.inputs[0]].inputs[0];
        if (graph_[node.inputs[0]].shape == node.shape) return node.inputs[0];
        return unique(std::move(node));
      case Prim::broadcast:
        while (graph_[node.inputs[0]].prim == Prim::broadcast) node.inputs[0] = graph_[node.inputs[0]].inputs[0];
        return unique(std::move(node));
      default: return unique(std::move(node));
    }
  }

  NodeId place_iota(Node node) {
    const int axis = node.as<AxisAttr>().axis;
    const Shape full = node.shape;
    std::vector<std::int64_t> dims(static_cast<std::size_t>(full.rank()), 1);
    dims[static_cast<std::size_t>(axis)] = full[axis];
    node.shape = Shape(dims);
    const NodeId line = unique(std::move(node));
    return graph_[line].shape == full ? line : unique({Prim::broadcast, DType::i64, false, full, {line}, {}});
  }

  // Axes that are not adjacent (ignoring extents of 1) are reduced one run at a time, innermost first.
  NodeId place_reduce(Node node) {
    const ReduceAttr attr = node.as<ReduceAttr>();
    NodeId x = node.inputs[0];
    AxisSet rest = attr.axes;
    while (rest) {
      const Shape shape = graph_[x].shape;
      AxisSet run = 0;
      for (int axis = shape.rank() - 1; axis >= 0; --axis) {
        const bool wanted = rest & (1u << axis);
        if (wanted) run = static_cast<AxisSet>(run | (1u << axis));
        if (!wanted && run && shape[axis] != 1) break;
      }
      Shape out = shape;
      for (int axis = 0; axis < shape.rank(); ++axis)
        if (run & (1u << axis)) out = out.with(axis, 1);
      x = unique({Prim::reduce, node.dtype, false, out, {x}, ReduceAttr{attr.kind, run}});
      rest = static_cast<AxisSet>(rest & ~run);
    }
    return x;
  }

  NodeId unique(Node node) {
    const auto [entry, inserted] = known_.try_emplace(node_key(node), graph_.size());
    return inserted ? graph_.append(std::move(node)) : entry->second;
  }

  Graph graph_;
  std::unordered_map<GraphKey, NodeId> known_;
};

}  // namespace

Graph simplify(const Graph& graph) { return Simplifier().run(graph); }

}  // namespace tenon

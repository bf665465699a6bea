#include "graph/optimize/simplify.h"

#include <algorithm>
#include <unordered_map>

#include "graph/elementwise.h"
#include "graph/encode/graph_key.h"
#include "graph/optimize/attention.h"
#include "graph/view.h"

namespace tenon {
namespace {

// Which nodes the outputs need, and which regions take the place of their outputs.
struct Needed {
  std::vector<bool> live;
  std::unordered_map<NodeId, const Region*> taken;  // by output
};

Needed needed_nodes(const Graph& graph, const RegionFilter& takes) {
  Needed needed;
  std::unordered_map<NodeId, const Region*> regions;
  if (takes)
    for (const Region& region : graph.regions()) regions[region.output] = &region;
  std::vector<bool>& live = needed.live;
  live.assign(static_cast<std::size_t>(graph.size()), false);
  for (NodeId id : graph.outputs()) live[static_cast<std::size_t>(id)] = true;
  for (NodeId id : graph.inputs()) live[static_cast<std::size_t>(id)] = true;
  for (NodeId id = graph.size() - 1; id >= 0; --id) {
    if (!live[static_cast<std::size_t>(id)]) continue;
    const auto region = regions.find(id);
    const bool is_taken = region != regions.end() && takes(graph, *region->second);
    if (is_taken) needed.taken[id] = region->second;
    for (NodeId in : is_taken ? region->second->inputs : graph[id].inputs) live[static_cast<std::size_t>(in)] = true;
  }
  return needed;
}

class Simplifier {
 public:
  Graph run(const Graph& source, const RegionFilter& takes) {
    const Needed needed = needed_nodes(source, takes);
    std::vector<NodeId> renamed(static_cast<std::size_t>(source.size()), -1);
    for (NodeId id = 0; id < source.size(); ++id) {
      if (!needed.live[static_cast<std::size_t>(id)]) continue;
      Node node = source[id];
      if (const auto taken = needed.taken.find(id); taken != needed.taken.end())
        node = {Prim::region, node.dtype, false, node.shape, taken->second->inputs, taken->second->attr};
      for (NodeId& in : node.inputs) in = renamed[static_cast<std::size_t>(in)];
      renamed[static_cast<std::size_t>(id)] = place(std::move(node));
    }
    std::vector<NodeId> outputs;
    for (NodeId id : source.outputs()) outputs.push_back(renamed[static_cast<std::size_t>(id)]);
    graph_.set_outputs(std::move(outputs));
    return std::move(graph_);
  }
  // Whether nodes may be left that nothing needs any more.
  bool has_left_nodes() const { return has_left_nodes_; }

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
      case Prim::elementwise: return place_elementwise(std::move(node));
      case Prim::cast: return is_rounding(graph_, node) ? place_rounding(std::move(node)) : place_cast(std::move(node));
      default: return unique(std::move(node));
    }
  }

  // Whole powers up to the fourth are products: far cheaper, and as accurate as the op.
  NodeId place_elementwise(Node node) {
    if (node.as<ElementwiseAttr>().op == ElementwiseOp::Pow) {
      const std::optional<double> exponent = number_of(graph_, node.inputs[1]);
      if (exponent == 2.0 || exponent == 3.0 || exponent == 4.0) {
        node.attr = ElementwiseAttr{ElementwiseOp::Mul, {}};
        const NodeId x = node.inputs[0], square = product(node, x, x);
        return exponent == 2.0 ? square : product(node, square, exponent == 3.0 ? x : square);
      }
    }
    return unique(std::move(node));
  }
  NodeId product(Node node, NodeId a, NodeId b) {
    node.inputs = {a, b};
    return unique(std::move(node));
  }

  // Moved in front of views, so that the step that computes the value rounds it and products read it in place. Not for block
  // formats, whose rounding depends on which elements are neighbours.
  NodeId place_rounding(Node node) {
    const Node source = graph_[node.inputs[0]];
    if (is_block(node.dtype)) return unique(std::move(node));
    if (is_rounded(node.inputs[0])) return node.inputs[0];
    if (!is_view(source.prim)) return unique(std::move(node));
    Node view = source;
    view.inputs[0] = place_rounding({Prim::cast, node.dtype, false, graph_[source.inputs[0]].shape, {source.inputs[0]}, {}});
    return place(std::move(view));
  }

  // To a smaller type: in front of views that keep all elements, so that the step that computes the value stores it so. A wider
  // float in between changes nothing.
  NodeId place_cast(Node node) {
    const Node source = graph_[node.inputs[0]];
    if (is_block(node.dtype) || is_block(source.dtype) || element_bytes(node.dtype) >= element_bytes(source.dtype))
      return unique(std::move(node));
    if (source.prim == Prim::cast && is_float(source.dtype) && is_float(node.dtype) &&
        graph_[source.inputs[0]].dtype == node.dtype) {
      has_left_nodes_ = true;
      node.inputs[0] = source.inputs[0];
      return place_rounding(std::move(node));
    }
    if (source.prim != Prim::transpose && source.prim != Prim::reshape) return unique(std::move(node));
    has_left_nodes_ = true;
    Node view = source;
    view.dtype = node.dtype;
    view.inputs[0] = place_cast({Prim::cast, node.dtype, false, graph_[source.inputs[0]].shape, {source.inputs[0]}, {}});
    return place(std::move(view));
  }

  // Whether every element is a number of the node's dtype.
  bool is_rounded(NodeId id) {
    for (NodeId next = static_cast<NodeId>(rounded_.size()); next <= id; ++next) {
      const Node& node = graph_[next];
      const auto input_is_rounded = [&](NodeId in) { return bool{rounded_[static_cast<std::size_t>(in)]}; };
      bool is = false;
      if (node.prim == Prim::input || node.prim == Prim::cast)
        is = true;
      else if (node.prim == Prim::constant)
        is = node.as<ConstantAttr>().value.dtype() == node.dtype;
      else if (is_view(node.prim) || node.prim == Prim::take || node.prim == Prim::gather)
        is = input_is_rounded(node.inputs[0]);
      else if (node.prim == Prim::concat || (node.prim == Prim::pad && node.as<PadAttr>().value == 0))
        is = std::ranges::all_of(node.inputs, input_is_rounded);
      rounded_.push_back(is);
    }
    return rounded_[static_cast<std::size_t>(id)];
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
  std::vector<bool> rounded_;  // by node of graph_, for the first ones
  bool has_left_nodes_ = false;
};

}  // namespace

Graph simplify(const Graph& graph, const RegionFilter& takes) {
  const std::optional<Graph> marked = takes ? with_attention(graph) : std::nullopt;
  Simplifier simplifier;
  Graph result = simplifier.run(marked ? *marked : graph, takes);
  return simplifier.has_left_nodes() ? Simplifier().run(result, {}) : std::move(result);
}

}  // namespace tenon

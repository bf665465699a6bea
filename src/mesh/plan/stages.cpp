#include "mesh/plan/stages.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "graph/elementwise.h"
#include "graph/optimize/region.h"
#include "tenon/error.h"

namespace tenon::mesh {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

class StageBuilder {
 public:
  StageBuilder(const Graph& graph, const Mesh& mesh, const Partition& partition)
      : graph_(graph),
        mesh_(mesh),
        partition_(partition),
        stages_(index(partition.stages)),
        value_of_(index(graph.size()), -1) {
    for (int v = 0; v < static_cast<int>(partition.values.size()); ++v)
      if (value(v).kind == Value::Kind::node) value_of_[index(value(v).origin)] = v;
  }

  std::vector<Stage> take() {
    for (int v = 0; v < static_cast<int>(partition_.values.size()); ++v) {
      const Value& value = partition_.values[index(v)];
      if (!value.is_exchange()) continue;
      stages_[index(value.stage)].exchanges.push_back(v);
      demand({value.inputs[0], exchanged_type(graph_, value)});
    }
    for (const int output : partition_.outputs) demand({output, graph_[partition_.values[index(output)].origin].dtype});
    for (int stage = partition_.stages - 1; stage >= 0; --stage) build(stage);
    return std::move(stages_);
  }

 private:
  const Value& value(int v) const { return partition_.values[index(v)]; }
  bool is_program_input(int v) const { return value(v).kind == Value::Kind::node && graph_[value(v).origin].prim == Prim::input; }
  // Known before any stage runs, or after an exchange.
  bool is_given(int v) const { return value(v).is_exchange() || is_program_input(v); }
  // So cheap that a later stage makes it again rather than keep it: views and literals.
  bool is_free(int v) const {
    if (value(v).kind == Value::Kind::part) return true;
    switch (graph_[value(v).origin].prim) {
      case Prim::constant:
      case Prim::iota:
      case Prim::broadcast:
      case Prim::reshape:
      case Prim::transpose: return !value(v).is_exchange();
      default: return false;
    }
  }
  void demand(Crossing crossing) {
    if (!is_given(crossing.value)) stages_[index(value(crossing.value).stage)].outputs.push_back(crossing);
  }

  // The values that |stage| computes, and those that come into it.
  void build(int number) {
    Stage& stage = stages_[index(number)];
    std::sort(stage.outputs.begin(), stage.outputs.end());
    stage.outputs.erase(std::unique(stage.outputs.begin(), stage.outputs.end()), stage.outputs.end());
    std::set<int> needed;
    std::vector<int> open;
    for (const Crossing& output : stage.outputs) open.push_back(output.value);
    while (!open.empty()) {
      const int v = open.back();
      open.pop_back();
      if (!needed.insert(v).second || enters(v, number)) continue;
      open.insert(open.end(), value(v).inputs.begin(), value(v).inputs.end());
    }
    for (const int v : needed) {
      if (!enters(v, number)) continue;
      const Crossing crossing{v, value(v).is_exchange() ? exchanged_type(graph_, value(v)) : graph_[value(v).origin].dtype};
      stage.inputs.push_back(crossing);
      demand(crossing);
    }
    for (int rank = 0; rank < mesh_.size() && !stage.outputs.empty(); ++rank)
      stage.graphs.push_back(graph_for(stage, needed, number, rank));
  }
  bool enters(int v, int stage) const { return is_given(v) || (value(v).stage < stage && !is_free(v)); }

  Box box(int v, int rank) const { return box_of(value(v).layout, graph_[value(v).origin].shape, mesh_, rank); }

  Graph graph_for(const Stage& stage, const std::set<int>& needed, int number, int rank) const {
    Graph local;
    std::map<int, NodeId> made;
    for (const Crossing& input : stage.inputs) {
      NodeId id = local.input(std::to_string(input.value), input.dtype, box(input.value, rank).shape());
      made[input.value] = id;
    }
    for (const Crossing& input : stage.inputs)
      made[input.value] = local.cast(made[input.value], graph_[value(input.value).origin].dtype);
    for (const int v : needed)
      if (!enters(v, number))
        made[v] = value(v).kind == Value::Kind::part ? part(local, v, rank, made) : node(local, v, rank, made);
    for (const Region& region : graph_.regions())
      if (std::optional<Region> kept = local_region(local, region, made, number)) local.mark(std::move(*kept));
    std::vector<NodeId> outputs;
    for (const Crossing& output : stage.outputs) outputs.push_back(local.cast(local.strong(made[output.value]), output.dtype));
    local.set_outputs(std::move(outputs));
    return local;
  }

  NodeId part(Graph& local, int v, int rank, const std::map<int, NodeId>& made) const {
    const int source = value(v).inputs[0];
    const Box from = box(source, rank), to = box(v, rank);
    std::vector<std::int64_t> start, extent, step;
    for (std::size_t axis = 0; axis < to.begin.size(); ++axis) {
      start.push_back(to.begin[axis] - from.begin[axis]);
      extent.push_back(to.end[axis] - to.begin[axis]);
      step.push_back(1);
    }
    return local.slice(made.at(source), start, extent, step);
  }

  NodeId node(Graph& local, int v, int rank, const std::map<int, NodeId>& made) const {
    Node node = graph_[value(v).origin];
    for (std::size_t i = 0; i < node.inputs.size(); ++i) node.inputs[i] = made.at(value(v).inputs[i]);
    node.shape = box(v, rank).shape();
    if (takes_own_rows(v)) return take_own_rows(local, node, v, rank);
    return local.append(std::move(node));
  }
  bool takes_own_rows(int v) const {
    const Node& node = graph_[value(v).origin];
    return node.prim == Prim::take && !value(value(v).inputs[0]).layout.splits[index(node.as<AxisAttr>().axis)].over.empty();
  }

  // Whether the value is the same at all places along |axes|, so that a part of it along them is like any other.
  bool is_same_along(int v, AxisSet axes) const {
    const Value& one = value(v);
    if (axes == 0) return true;
    if (one.is_exchange()) return false;
    if (one.kind == Value::Kind::part) return is_same_along(one.inputs[0], axes);
    const Node& node = graph_[one.origin];
    if (node.prim == Prim::cast) return is_same_along(one.inputs[0], axes);
    if (node.prim == Prim::elementwise)
      return std::all_of(one.inputs.begin(), one.inputs.end(), [&](int input) { return is_same_along(input, axes); });
    if (node.prim != Prim::broadcast) return false;
    const Shape& from = graph_[node.inputs[0]].shape;
    const int added = node.shape.rank() - from.rank();
    AxisSet left = 0;  // axes that were there before
    for (int axis = added; axis < node.shape.rank(); ++axis)
      if ((axes >> axis & 1) != 0 && from[axis - added] == node.shape[axis]) left |= static_cast<AxisSet>(1 << (axis - added));
    return is_same_along(one.inputs[0], left);
  }
  AxisSet cut_axes(int part) const {
    const Layout &from = value(value(part).inputs[0]).layout, &to = value(part).layout;
    AxisSet axes = 0;
    for (std::size_t axis = 0; axis < to.splits.size(); ++axis)
      if (!(from.splits[axis] == to.splits[axis])) axes |= static_cast<AxisSet>(1 << axis);
    return axes;
  }

  // A whole op on the parts of one device, for a backend that implements it: where nothing inside of it is exchanged, cut or
  // made in another stage, the device applies the same op to its parts. Sums that are still to be added up must not be rounded
  // by the op, so those stay as they are.
  std::optional<Region> local_region(const Graph& local, const Region& region, const std::map<int, NodeId>& made,
                                     int number) const {
    const int result = value_of_[index(region.output)];
    const auto& partials = value(result).layout.partials;
    if (std::any_of(partials.begin(), partials.end(), [](const auto& partial) { return partial.has_value(); })) return {};
    std::map<NodeId, int> read;  // the region's inputs, and the values that are read in their place
    std::set<int> inside;
    std::vector<int> open{result};
    while (!open.empty()) {
      const int v = open.back();
      open.pop_back();
      if (!inside.insert(v).second) continue;
      if (enters(v, number) || !made.contains(v)) return {};
      if (value(v).kind == Value::Kind::part && is_same_along(value(v).inputs[0], cut_axes(v))) {
        open.push_back(value(v).inputs[0]);
        continue;
      }
      if (value(v).kind != Value::Kind::node || takes_own_rows(v)) return {};
      const Node& node = graph_[value(v).origin];
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        const int source = value(v).inputs[i];
        if (std::find(region.inputs.begin(), region.inputs.end(), node.inputs[i]) == region.inputs.end())
          open.push_back(source);
        else if (read.try_emplace(node.inputs[i], source).first->second != source)
          return {};
      }
    }
    Region kept{{}, made.at(result), region.attr};
    for (const NodeId input : region.inputs) {
      if (!read.contains(input)) return {};
      kept.inputs.push_back(made.at(read[input]));
    }
    return fits(local, kept) ? std::optional(std::move(kept)) : std::nullopt;
  }
  static bool fits(const Graph& local, const Region& region) {
    try {
      check_region(local, region);
      return true;
    } catch (const Error&) {
      return false;
    }
  }

  // A take from rows of which this device has some: the others give zeros.
  NodeId take_own_rows(Graph& local, const Node& node, int v, int rank) const {
    const int axis = node.as<AxisAttr>().axis, source = value(v).inputs[0];
    const Box rows = box(source, rank);
    const std::int64_t whole = graph_[value(source).origin].shape[axis];
    const std::int64_t begin = rows.begin[index(axis)], end = rows.end[index(axis)];
    const auto apply = [&](ElementwiseOp op, std::initializer_list<NodeId> operands) {
      return local.elementwise(op, std::span(operands.begin(), operands.size()));
    };
    const auto number = [&](std::int64_t n) { return local.constant(HostArray::from<std::int64_t>(Shape(), {n})); };
    NodeId at = local.cast(node.inputs[1], DType::i64);
    at = apply(ElementwiseOp::Where,
               {apply(ElementwiseOp::Lt, {at, number(0)}), apply(ElementwiseOp::Add, {at, number(whole)}), at});
    const NodeId is_here = apply(ElementwiseOp::LogicalAnd,
                                 {apply(ElementwiseOp::Ge, {at, number(begin)}), apply(ElementwiseOp::Lt, {at, number(end)})});
    const NodeId exists = apply(ElementwiseOp::LogicalAnd,
                                {apply(ElementwiseOp::Ge, {at, number(0)}), apply(ElementwiseOp::Lt, {at, number(whole)})});
    // An index that no device has stays out of range, so that every device reports it.
    const NodeId elsewhere = apply(ElementwiseOp::Where, {exists, number(0), number(end - begin)});
    const NodeId own = apply(ElementwiseOp::Where, {is_here, apply(ElementwiseOp::Sub, {at, number(begin)}), elsewhere});
    const NodeId taken = local.take(node.inputs[0], own, axis);
    // The mask has the indices' axes in the middle of the result's.
    std::vector<std::int64_t> extents(node.shape.dims().begin(), node.shape.dims().end());
    const int indices = local[own].shape.rank();
    for (int i = 0; i < node.shape.rank(); ++i)
      if (i < axis || i >= axis + indices) extents[index(i)] = 1;
    const NodeId mask = local.broadcast(local.reshape(is_here, Shape(extents)), node.shape);
    const NodeId zero =
        local.broadcast(local.constant(HostArray::zeros(is_block(node.dtype) ? DType::f32 : node.dtype, Shape())), node.shape);
    return local.cast(apply(ElementwiseOp::Where, {mask, taken, zero}), node.dtype);
  }

  const Graph& graph_;
  const Mesh& mesh_;
  const Partition& partition_;
  std::vector<Stage> stages_;
  std::vector<int> value_of_;  // per node
};

}  // namespace

std::vector<Stage> stages_of(const Graph& graph, const Mesh& mesh, const Partition& partition) {
  return StageBuilder(graph, mesh, partition).take();
}

}  // namespace tenon::mesh

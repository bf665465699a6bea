#include "backends/ttnn/lower.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "backends/ttnn/functions.h"
#include "graph/view.h"

namespace tenon::ttnn {
namespace {

bool is_narrow(DType dtype) { return compute_dtype(dtype) != dtype; }

bool is_bf16_number(double value) {
  const HostArray one = HostArray::full(DType::f64, {}, value);
  return std::isnan(value) || one.cast(DType::bf16).cast(DType::f64).view<double>()[0] == value;
}

class Lowering {
 public:
  Lowering(const Graph& graph, const RegionFilter& takes, Narrow narrow) : source_(simplify(graph, takes)), narrow_(narrow) {}

  LoweredGraph run() {
    for (NodeId id = 0; id < source_.size(); ++id) {
      origin_is_narrow_ = is_narrow(source_[id].dtype);
      lowered_.push_back(lower(source_[id]));
    }
    std::vector<NodeId> outputs;
    for (const NodeId id : source_.outputs()) {
      origin_is_narrow_ = is_narrow(source_[id].dtype);
      outputs.push_back(stored(id));
    }
    out_.graph.set_outputs(std::move(outputs));
    return std::move(out_);
  }

 private:
  NodeId append(Node node) {
    out_.narrow.push_back(origin_is_narrow_);
    return out_.graph.append(std::move(node));
  }
  NodeId now(NodeId id) const { return lowered_[static_cast<std::size_t>(id)]; }
  const Node& made(NodeId id) const { return out_.graph[now(id)]; }

  NodeId cast(NodeId made_id, DType to) {
    if (out_.graph[made_id].dtype == to) return made_id;
    const auto [known, is_new] = casts_.try_emplace({made_id, to}, 0);
    if (is_new) known->second = append({Prim::cast, to, false, out_.graph[made_id].shape, {made_id}, {}});
    return known->second;
  }
  // A source node with all the digits it has, and rounded to its dtype.
  NodeId wide(NodeId id) { return cast(now(id), compute_dtype(source_[id].dtype)); }
  NodeId stored(NodeId id) { return cast(now(id), source_[id].dtype); }
  bool is_stored(NodeId id) const { return made(id).dtype == source_[id].dtype; }

  // A bfloat16 operand without further digits; -1 if there is none.
  NodeId bf16_operand(NodeId id) {
    if (source_[id].dtype == DType::boolean) return now(id);
    if (source_[id].dtype != DType::bf16) return -1;
    if (is_stored(id)) return now(id);
    NodeId base = id;
    while (source_[base].prim == Prim::broadcast || source_[base].prim == Prim::reshape) base = source_[base].inputs[0];
    const Node& constant = source_[base];
    if (constant.prim != Prim::constant || constant.shape.elements() != 1) return -1;
    const double value = constant.as<ConstantAttr>().value.cast(DType::f64).view<double>()[0];
    if (!is_bf16_number(value)) return -1;
    const NodeId number =
        append({Prim::constant, DType::bf16, false, {}, {}, ConstantAttr{HostArray::full(DType::bf16, {}, value)}});
    if (source_[id].shape.rank() == 0) return number;
    return append({Prim::broadcast, DType::bf16, false, source_[id].shape, {number}, {}});
  }
  // Nothing if one of them is not.
  std::vector<NodeId> bf16_operands(const Node& node) {
    std::vector<NodeId> all;
    for (const NodeId id : node.inputs) {
      const NodeId operand = bf16_operand(id);
      if (operand < 0) return {};
      all.push_back(operand);
    }
    return all;
  }

  static bool is_closed(const Node& node) {
    if (node.prim == Prim::elementwise) {
      const Function* const function = find_function(elementwise_name(node.as<ElementwiseAttr>().op));
      return function && function->closed;
    }
    if (node.prim == Prim::reduce)
      return node.as<ReduceAttr>().kind == ReduceKind::max || node.as<ReduceAttr>().kind == ReduceKind::min;
    return node.prim == Prim::window && node.as<WindowAttr>().max;
  }
  static bool moves(const Node& node) {
    switch (node.prim) {
      case Prim::concat:
      case Prim::take:
      case Prim::gather: return true;
      case Prim::pad: return node.as<PadAttr>().value == 0;
      default: return is_view(node.prim);
    }
  }

  NodeId lower(const Node& node) {
    switch (node.prim) {
      case Prim::input: {
        out_.narrow.push_back(origin_is_narrow_);
        return out_.graph.input(node.as<InputAttr>().name, node.dtype, node.shape);
      }
      case Prim::constant: {
        Node same = node;
        same.weak = false;
        const HostArray& value = node.as<ConstantAttr>().value;
        same.dtype = value.dtype();
        const DType wanted = narrow_ == Narrow::each && node.dtype == DType::bf16 ? DType::bf16 : DType::f32;
        if (wanted == DType::bf16 || (is_narrow(same.dtype) && value.elements() == 1)) {
          same.attr = ConstantAttr{value.cast(wanted)};
          same.dtype = wanted;
        }
        return append(std::move(same));
      }
      case Prim::cast: {
        const NodeId x = node.inputs[0];
        if (source_[x].dtype == node.dtype) return stored(x);
        return cast(wide(x), node.dtype);
      }
      default: return narrow_ == Narrow::each ? rounded_each(node) : in_float32(node);
    }
  }

  NodeId with_inputs(const Node& node, std::vector<NodeId> inputs, DType dtype) {
    Node copy = node;
    copy.inputs = std::move(inputs);
    copy.dtype = dtype;
    copy.weak = false;
    return append(std::move(copy));
  }

  NodeId in_float32(const Node& node) {
    if (moves(node) || node.prim == Prim::arg_reduce || node.prim == Prim::arg_sort) {
      // Indices are as they are. The blocks of a transposed tensor are others than its own.
      const bool all_stored =
          std::ranges::all_of(node.inputs, [&](NodeId id) { return is_stored(id) && !is_block(source_[id].dtype); });
      std::vector<NodeId> inputs;
      for (const NodeId id : node.inputs) inputs.push_back(all_stored ? now(id) : wide(id));
      const bool is_data = node.prim != Prim::arg_reduce && node.prim != Prim::arg_sort;
      return with_inputs(node, std::move(inputs), all_stored || !is_data ? node.dtype : compute_dtype(node.dtype));
    }
    if (node.prim == Prim::region && std::holds_alternative<AttentionAttr>(node.as<RegionAttr>())) {
      std::vector<NodeId> inputs;
      for (const NodeId id : node.inputs) inputs.push_back(stored(id));
      return with_inputs(node, std::move(inputs), node.dtype);
    }
    if (is_closed(node))
      if (std::vector<NodeId> operands = bf16_operands(node); !operands.empty())
        return with_inputs(node, std::move(operands), node.dtype);
    std::vector<NodeId> inputs;
    for (const NodeId id : node.inputs) inputs.push_back(wide(id));
    return with_inputs(node, std::move(inputs), compute_dtype(node.dtype));
  }

  NodeId rounded_each(const Node& node) {
    std::vector<NodeId> inputs;
    bool is_bf16 = node.dtype == DType::bf16 || node.dtype == DType::boolean;
    for (const NodeId id : node.inputs) {
      const NodeId operand = is_bf16 ? (source_[id].dtype == DType::bf16 ? stored(id) : bf16_operand(id)) : -1;
      is_bf16 = operand >= 0;
      if (!is_bf16) break;
      inputs.push_back(operand);
    }
    return is_bf16 ? with_inputs(node, std::move(inputs), node.dtype) : in_float32(node);
  }

  const Graph source_;
  const Narrow narrow_;
  LoweredGraph out_;
  std::vector<NodeId> lowered_;  // by source node
  std::map<std::pair<NodeId, DType>, NodeId> casts_;
  bool origin_is_narrow_ = false;
};

}  // namespace

LoweredGraph lower(const Graph& graph, const RegionFilter& takes, Narrow narrow) { return Lowering(graph, takes, narrow).run(); }

}  // namespace tenon::ttnn

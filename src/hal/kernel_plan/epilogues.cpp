#include "hal/kernel_plan/epilogues.h"

#include <optional>

#include "ops/elementwise/elementwise.h"

namespace tenon {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

class Finder {
 public:
  Finder(const Graph& graph, const Plan& fused, const PlanValues& values) : graph_(graph), fused_(fused), values_(values) {}

  std::optional<Epilogue> epilogue_of(const Group& group) const {
    if (group.kind != Group::Kind::elementwise || group.nodes.size() > 3 || group.outputs != std::vector{group.nodes.back()} ||
        group.domain.rank() < 2)
      return std::nullopt;
    Epilogue found;
    found.result = group.nodes.back();
    for (const NodeId id : group.nodes) {
      const Node& node = graph_[id];
      // The rounding for a product that follows: the result is stored in its own dtype.
      if (is_rounding(graph_, node) && id == found.result && found.product >= 0) continue;
      if (node.prim != Prim::elementwise || node.dtype != graph_[found.result].dtype) return std::nullopt;
      const bool is_first = id == group.nodes[0];
      switch (node.as<ElementwiseAttr>().op) {
        case ElementwiseOp::Add:
          for (const std::size_t k : {std::size_t{0}, std::size_t{1}}) {
            if (!is_first || found.product >= 0 || !is_bias(node.inputs[1 - k], node.dtype)) continue;
            found.product = product_behind(node.inputs[k]);
            found.bias = node.inputs[1 - k];
          }
          break;
        case ElementwiseOp::Relu:
          if (is_first) found.product = product_behind(node.inputs[0]);
          found.activation = MatMulStep::Activation::relu;
          break;
        default: return std::nullopt;
      }
      if (found.product < 0 || graph_[found.product].dtype != node.dtype) return std::nullopt;
    }
    return found;
  }

 private:
  // The product whose whole value |operand| is.
  NodeId product_behind(NodeId operand) const {
    const ValueView& view = fused_.views[at(operand)];
    const Node& base = graph_[view.base];
    const bool is_whole = is_dense(view) && view.offset == 0 && view.shape.elements() == base.shape.elements();
    if (base.prim != Prim::matmul || !is_whole || base.shape.elements() == 0 || compute_dtype(base.dtype) != DType::f32 ||
        !values_.is_read_once(view.base))
      return -1;
    return view.shape[view.shape.rank() - 1] == base.shape[base.shape.rank() - 1] ? view.base : -1;
  }

  // One number per column.
  bool is_bias(NodeId operand, DType dtype) const {
    const ValueView& view = fused_.views[at(operand)];
    const int last = view.shape.rank() - 1;
    for (int axis = 0; axis < last; ++axis)
      if (view.strides[at(axis)] != 0 && view.shape[axis] != 1) return false;
    return view.shape[last] > 1 && view.strides[at(last)] == 1 && graph_[operand].dtype == dtype && !is_block(dtype);
  }

  const Graph& graph_;
  const Plan& fused_;
  const PlanValues& values_;
};

}  // namespace

std::map<int, Epilogue> find_epilogues(const Graph& graph, const Plan& fused, const PlanValues& values) {
  const Finder finder(graph, fused, values);
  std::map<int, Epilogue> all;
  for (const Step& step : fused.steps) {
    if (step.group < 0) continue;
    if (const auto found = finder.epilogue_of(fused.groups[at(step.group)])) all[step.group] = *found;
  }
  return all;
}

}  // namespace tenon

#include "backends/cpu/products/integer/kept_floats.h"

#include <cmath>
#include <optional>

#include "graph/elementwise.h"

namespace tenon::cpu {
namespace {

class Finder {
 public:
  explicit Finder(const Graph& graph) : graph_(graph) {}

  // The f32 value that cast |id| gives back, but for NaN, which the bytes have as 0; or -1.
  NodeId find(NodeId id) const {
    const Node& node = graph_[id];
    if (node.prim != Prim::cast || node.dtype != DType::f32) return -1;
    const Node& bytes = graph_[node.inputs[0]];
    if (bytes.prim != Prim::cast || (bytes.dtype != DType::i8 && bytes.dtype != DType::u8)) return -1;
    const NodeId value = bytes.inputs[0];
    if (graph_[value].dtype != DType::f32) return -1;
    const bool is_signed = bytes.dtype == DType::i8;
    return is_within(value, is_signed ? -128 : 0, is_signed ? 127 : 255) ? value : -1;
  }

 private:
  // min(max(whole, low), high), in either order.
  bool is_within(NodeId id, double low, double high) const {
    bool has_low = false, has_high = false;
    while (!has_low || !has_high) {
      const Node& node = graph_[id];
      if (node.prim != Prim::elementwise || node.inputs.size() != 2) return false;
      const std::optional<double> bound = number(node.inputs[1]);
      const ElementwiseOp op = node.as<ElementwiseAttr>().op;
      if (!bound || *bound != std::rint(*bound) || *bound < low || *bound > high) return false;
      if (op == ElementwiseOp::Maximum)
        has_low = true;
      else if (op == ElementwiseOp::Minimum)
        has_high = true;
      else
        return false;
      id = node.inputs[0];
    }
    return is_whole(id);
  }

  bool is_whole(NodeId id) const {
    const Node& node = graph_[id];
    if (node.prim != Prim::elementwise || node.dtype != DType::f32) return false;
    const ElementwiseOp op = node.as<ElementwiseAttr>().op;
    if (op == ElementwiseOp::Round) return true;
    if (op != ElementwiseOp::Add) return false;
    const std::optional<double> zero = number(node.inputs[1]);
    return zero && *zero == std::rint(*zero) && is_whole(node.inputs[0]);
  }

  std::optional<double> number(NodeId id) const {
    while (graph_[id].prim == Prim::broadcast || graph_[id].prim == Prim::reshape) id = graph_[id].inputs[0];
    if (graph_[id].prim != Prim::constant || graph_[id].shape.elements() != 1) return std::nullopt;
    return graph_[id].as<ConstantAttr>().value.to_doubles()[0];
  }

  const Graph& graph_;
};

}  // namespace

Graph keep_floats(const Graph& graph) {
  const Finder finder(graph);
  Graph out;
  for (NodeId id = 0; id < graph.size(); ++id) {
    Node node = graph[id];
    if (node.prim == Prim::input) {
      out.input(node.as<InputAttr>().name, node.dtype, node.shape);
      continue;
    }
    if (const NodeId value = finder.find(id); value >= 0)
      node = {Prim::elementwise, DType::f32, false,
              node.shape,        {value},    ElementwiseAttr{ElementwiseOp::NanToNum, {0, 127, -128, 0}}};
    out.append(std::move(node));
  }
  out.set_outputs({graph.outputs().begin(), graph.outputs().end()});
  return out;
}

}  // namespace tenon::cpu

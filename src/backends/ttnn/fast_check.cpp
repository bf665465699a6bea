#include <fmt/format.h>

#include <algorithm>

#include "backends/ttnn/fast.h"
#include "backends/ttnn/functions.h"
#include "graph/view.h"

namespace tenon::ttnn {
namespace {

// A window or kernel of more places is left to the exact tier: each place is a few calls.
constexpr std::int64_t kMaxPlaces = 128;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

class Check {
 public:
  Check(const LoweredGraph& lowered, const FastRules& rules) : graph_(lowered.graph), narrow_(lowered.narrow), rules_(rules) {}

  std::string why_not(NodeId id) const {
    const Node& node = graph_[id];
    if (node.prim == Prim::input || node.prim == Prim::constant) return {};
    if (node.shape.elements() == 0) return "empty tensors";
    if (std::string why = type(node.dtype); !why.empty()) return why;
    for (const NodeId x : node.inputs) {
      if (graph_[x].shape.elements() == 0) return "empty tensors";
      if (node.prim == Prim::cast && is_block(graph_[x].dtype)) continue;
      if (std::string why = type(graph_[x].dtype); !why.empty()) return why;
    }
    switch (node.prim) {
      case Prim::elementwise: return elementwise(id, node);
      case Prim::cast: return cast(node);
      case Prim::broadcast:
      case Prim::reshape:
      case Prim::transpose:
      case Prim::pad:
      case Prim::concat: return {};
      case Prim::slice: return slice(node);
      case Prim::reduce: return reduce(node);
      case Prim::matmul: return product(node);
      case Prim::conv: return conv(node);
      case Prim::window: return window(node);
      case Prim::cumulative: return cumulative(node);
      case Prim::region: return {};  // see takes_region()
      default: return fmt::format("the primitive {}", name(node.prim));
    }
  }

 private:
  std::string type(DType dtype) const {
    if (dtype == DType::bf16 || dtype == DType::boolean) return {};
    if (dtype != DType::f32 && dtype != DType::i32) return fmt::format("{} tensors", name(dtype));
    return rules_.has_32_bit ? "" : fmt::format("{} tensors, which this chip's compute cores do not have", name(dtype));
  }
  std::string distrust(std::string_view what) const {
    if (rules_.trust == Trust::all) return {};
    return fmt::format("{}, which TTNN computes with other results than Tenon", what);
  }

  std::string elementwise(NodeId id, const Node& node) const {
    const std::string op(elementwise_name(node.as<ElementwiseAttr>().op));
    const Function* const function = find_function(op);
    if (!function) return fmt::format("the function {}", op);
    const DType dtype = graph_[node.inputs.back()].dtype;
    if (dtype == DType::boolean) return op.starts_with("logical_") ? "" : fmt::format("{} of bool", op);
    const std::size_t first = op == "where" ? 1 : 0;
    for (std::size_t i = first; i < node.inputs.size(); ++i)
      if (graph_[node.inputs[i]].dtype != dtype) return fmt::format("{} of operands of different types", op);
    if (dtype == DType::i32) {
      if (!function->integers) return fmt::format("{} of integers", op);
      return function->integers_in_limits ? "" : distrust(op);
    }
    if (!function->floats) return fmt::format("{} of floats", op);
    const bool is_narrow = dtype == DType::bf16 || narrow_[at(id)];
    return (is_narrow ? function->narrow_in_limits : function->in_limits) ? "" : distrust(op);
  }
  std::string cast(const Node& node) const {
    const DType from = graph_[node.inputs[0]].dtype;
    if (node.dtype == DType::boolean) return "casts to bool";
    const bool is_exact =
        from == DType::boolean || is_block(from) ||
        ((from == DType::f32 || from == DType::bf16) && (node.dtype == DType::f32 || node.dtype == DType::bf16));
    return is_exact ? "" : distrust(fmt::format("casts from {} to {}", name(from), name(node.dtype)));
  }
  std::string slice(const Node& node) const {
    for (int i = 0; i < node.shape.rank(); ++i)
      if (node.as<SliceAttr>().step[at(i)] <= 0) return "slices with negative steps";
    return {};
  }
  std::string reduce(const Node& node) const {
    const ReduceKind kind = node.as<ReduceAttr>().kind;
    const DType dtype = graph_[node.inputs[0]].dtype;
    if (kind == ReduceKind::prod) return "the reduction prod";
    if (kind == ReduceKind::any || kind == ReduceKind::all) return dtype == DType::boolean ? "" : "any and all of numbers";
    if (dtype == DType::boolean) return "reductions of bool";
    if (dtype == DType::i32) return kind == ReduceKind::sum ? "" : distrust("max and min of int32");
    if (dtype == DType::bf16 && kind == ReduceKind::sum) return distrust("sums in bfloat16");
    return {};
  }
  // What is exact in the matrix unit: bfloat16 numbers and blocks, and float32 tensors that have only been widened.
  bool is_operand(NodeId x) const {
    const Node& node = graph_[x];
    if (node.dtype == DType::bf16) return true;
    if (node.prim == Prim::cast) {
      const DType from = graph_[node.inputs[0]].dtype;
      return from == DType::bf16 || is_block(from);
    }
    return is_view(node.prim) && is_operand(node.inputs[0]);
  }
  std::string product(const Node& node) const {
    if (node.dtype == DType::i32) return "products of integers";
    if (node.dtype == DType::bf16) return distrust("products rounded to bfloat16");
    for (const NodeId x : node.inputs)
      if (!is_operand(x)) return distrust("products of float32");
    return {};
  }
  std::string conv(const Node& node) const {
    const Shape& x = graph_[node.inputs[0]].shape;
    const Shape& weight = graph_[node.inputs[1]].shape;
    const ConvAttr& attr = node.as<ConvAttr>();
    std::int64_t places = 1;
    for (int i = 2; i < weight.rank(); ++i) places *= weight[i];
    if (x.rank() > 4) return "convolutions of three axes";
    if (attr.groups != 1 && !(attr.groups == x[1] && weight[0] == x[1])) return "convolutions in groups";
    if (places > kMaxPlaces) return "convolutions with kernels of this size";
    return product(node);
  }
  std::string window(const Node& node) const {
    const Spatial& size = node.as<WindowAttr>().size;
    if (graph_[node.inputs[0]].dtype == DType::i32 || graph_[node.inputs[0]].dtype == DType::boolean)
      return "windows of integers";
    if (node.shape.rank() > 4) return "windows of three axes";
    if (size[0] * size[1] * size[2] > kMaxPlaces) return "windows of this size";
    if (node.dtype == DType::bf16 && !node.as<WindowAttr>().max) return distrust("sums in bfloat16");
    return {};
  }
  std::string cumulative(const Node& node) const {
    if (node.dtype != DType::f32) return fmt::format("running sums of {}", name(node.dtype));
    return node.as<CumulativeAttr>().product ? distrust("running products") : "";
  }

  const Graph& graph_;
  const std::vector<bool>& narrow_;
  const FastRules& rules_;
};

}  // namespace

bool takes_region(const Graph& graph, const Region& region, const FastRules& rules) {
  const Node& output = graph[region.output];
  const Shape& shape = graph[region.inputs[0]].shape;
  // TTNN's softmax and norms have the precision of TF32; made of smaller calls they keep the limits.
  if (rules.trust == Trust::limits || shape.elements() == 0 || output.shape.elements() == 0) return false;
  const bool is_bf16 = output.dtype == DType::bf16;
  if (!is_bf16 && !(output.dtype == DType::f32 && rules.has_32_bit)) return false;
  if (const auto* softmax = std::get_if<SoftmaxAttr>(&region.attr)) return !softmax->log && shape.rank() > 0;
  if (const auto* norm = std::get_if<NormAttr>(&region.attr))
    return shape.rank() > 1 && norm->axes == AxisSet(1u << (shape.rank() - 1)) && region.inputs.size() <= 3 &&
           std::ranges::all_of(std::span(region.inputs).subspan(1),
                               [&](NodeId id) { return graph[id].shape.elements() == shape[shape.rank() - 1]; });
  if (const auto* attention = std::get_if<AttentionAttr>(&region.attr)) {
    const Shape& k = graph[region.inputs[1]].shape;
    // 16-bit tensors only. Bool masks need zeros for rows without a key.
    return is_bf16 && shape[1] % k[1] == 0 && (!attention->causal || (shape[2] == k[2] && region.inputs.size() == 3)) &&
           (region.inputs.size() == 3 || graph[region.inputs[3]].dtype == DType::bf16);
  }
  return false;
}

std::string why_not_fast(const LoweredGraph& lowered, NodeId id, const FastRules& rules) {
  return Check(lowered, rules).why_not(id);
}

}  // namespace tenon::ttnn

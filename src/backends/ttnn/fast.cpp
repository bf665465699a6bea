#include "backends/ttnn/fast.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "backends/ttnn/functions.h"
#include "graph/simplify.h"
#include "tenon/error.h"

namespace tenon::ttnn {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// Why a graph has no fast plan.
struct NoPlan {
  std::string why;
};

// TTNN's tensors have at least one axis.
Integers extents(const Shape& shape) { return shape.rank() == 0 ? Integers{1} : Integers(shape.begin(), shape.end()); }

bool is_one_element(const Node& node) { return node.prim == Prim::constant && node.shape.elements() == 1; }
double number_of(const Node& constant) {
  const HostArray wide = constant.as<ConstantAttr>().value.cast(DType::f64);
  return wide.view<double>()[0];
}

class Planner {
 public:
  Planner(const Graph& graph, Trust trust)
      : trust_(trust),
        graph_(simplify(graph, [&](const Graph& g, const Region& region) { return takes(g, region); })) {}

  FastPlan run() {
    for (const NodeId id : graph_.inputs()) plan_.input_types.push_back({graph_[id].dtype, graph_[id].shape});
    for (const NodeId id : graph_.outputs()) plan_.output_types.push_back({graph_[id].dtype, graph_[id].shape});
    for (const NodeId id : graph_.outputs()) need(id);
    for (const NodeId id : graph_.inputs())
      plan_.inputs.push_back(slots_.contains(id) ? std::pair(slots_.at(id), form_of(id)) : std::pair(-1, std::string("f32")));
    for (const NodeId id : graph_.outputs()) {
      if (is_block(graph_[id].dtype)) throw NoPlan{"results in block formats"};
      plan_.outputs.emplace_back(slots_.at(id), form_of(id));
    }
    if (plan_.steps.empty()) throw NoPlan{"a program without a computation"};
    drop_dead_slots();
    plan_.slots = next_slot_;
    return std::move(plan_);
  }

 private:
  // --- Values ---
  std::string form_of(NodeId id) const {
    const Node& node = graph_[id];
    if (node.dtype == DType::boolean) {
      // A comparison's result has the type of its operands.
      if (node.prim == Prim::elementwise && !node.inputs.empty()) return form_of(node.inputs[0]);
      if (is_view(node)) return form_of(node.inputs[0]);
      return "f32";
    }
    if (node.dtype == DType::i32) return "i32";
    if (node.dtype == DType::f64 || !is_float(node.dtype)) throw NoPlan{fmt::format("{} tensors", name(node.dtype))};
    return "f32";
  }
  static bool is_view(const Node& node) {
    return node.prim == Prim::broadcast || node.prim == Prim::reshape || node.prim == Prim::transpose || node.prim == Prim::slice;
  }
  // Whether every element is a number of the node's dtype.
  bool is_rounded(NodeId id) const {
    const Node& node = graph_[id];
    if (node.prim == Prim::input || node.prim == Prim::cast || node.dtype == DType::f32 || !is_float(node.dtype)) return true;
    return is_view(node) && is_rounded(node.inputs[0]);
  }
  static bool is_narrow(DType dtype) { return dtype == DType::bf16 || dtype == DType::f16; }

  // The slot of a value, which is computed first if it has to be.
  int need(NodeId id) {
    if (const auto known = slots_.find(id); known != slots_.end()) return known->second;
    const Node& node = graph_[id];
    if (node.shape.elements() == 0) throw NoPlan{"empty tensors"};
    // Chains may be longer than the stack is deep.
    if (++depth_ > 2000) throw NoPlan{"programs of this depth"};
    const int slot = compute(id, node);
    --depth_;
    slots_[id] = slot;
    return slot;
  }

  int compute(NodeId id, const Node& node) {
    switch (node.prim) {
      case Prim::input: form_of(id); return next_slot_++;
      case Prim::constant: return constant(id, node);
      case Prim::elementwise: return elementwise(id, node);
      case Prim::cast: return cast(id, node);
      case Prim::broadcast: return broadcast(id, node);
      case Prim::reshape: return call("reshape", {tensor(node.inputs[0]), extents(node.shape)});
      case Prim::transpose: return transpose(node);
      case Prim::slice: return slice(node);
      case Prim::pad: return pad(node);
      case Prim::concat: return concat(node);
      case Prim::reduce: return reduce(node);
      case Prim::matmul: return matmul(node);
      case Prim::cumulative: return cumulative(node);
      case Prim::region: return region(node);
      default: throw NoPlan{fmt::format("the primitive {}", name(node.prim))};
    }
  }

  CallArgument tensor(NodeId id) { return TensorArgument{need(id)}; }
  int call(std::string_view function, std::vector<CallArgument> arguments,
           std::vector<std::pair<std::string, CallArgument>> named = {}) {
    plan_.steps.push_back({std::string(function), std::move(arguments), std::move(named), next_slot_, {}});
    return next_slot_++;
  }
  void distrust(std::string_view what) const {
    if (trust_ == Trust::limits) throw NoPlan{fmt::format("{}, which TTNN computes with other results than Tenon", what)};
  }

  int constant(NodeId id, const Node& node) {
    const std::string form = form_of(id);
    plan_.constants.push_back({next_slot_, node.as<ConstantAttr>().value, form});
    return next_slot_++;
  }

  // --- Functions ---
  int elementwise(NodeId id, const Node& node) {
    const ElementwiseAttr& attr = node.as<ElementwiseAttr>();
    const std::string op(elementwise_name(attr.op));
    const Function* const function = find_function(op);
    if (!function) throw NoPlan{fmt::format("the function {}", op)};
    const std::string form = form_of(node.inputs.back());
    if (form == "i32" ? !function->integers : !function->floats) throw NoPlan{fmt::format("{} of {}", op, form)};
    if (!(form == "i32" ? function->integers_in_limits : function->floats_in_limits)) distrust(op);
    if (form_of(node.inputs[0]) != form) throw NoPlan{fmt::format("{} of operands of different types", op)};
    form_of(id);
    std::vector<CallArgument> arguments{tensor(node.inputs[0])};
    std::vector<std::pair<std::string, CallArgument>> named;
    for (std::size_t i = 1; i < node.inputs.size(); ++i) arguments.push_back(operand(node.inputs[i], *function, form));
    for (std::size_t i = 0; i < function->parameters.size(); ++i) {
      const std::string_view key = function->parameters[i];
      if (key.empty()) continue;
      if (key == "#")
        arguments.emplace_back(attr.params[i]);
      else
        named.emplace_back(std::string(key), attr.params[i]);
    }
    return call(function->call, std::move(arguments), std::move(named));
  }
  // A number may stand in the place of the second operand of most functions of two.
  CallArgument operand(NodeId id, const Function& function, const std::string& form) {
    NodeId base = id;
    while (graph_[base].prim == Prim::broadcast || graph_[base].prim == Prim::reshape) base = graph_[base].inputs[0];
    if (!function.takes_number || !is_one_element(graph_[base])) return tensor(id);
    const double value = number_of(graph_[base]);
    if (form == "i32") return static_cast<std::int64_t>(value);
    return value;
  }

  int cast(NodeId id, const Node& node) {
    const NodeId x = node.inputs[0];
    const DType from = graph_[x].dtype;
    const std::string to_form = form_of(id);
    if (node.dtype == DType::boolean) throw NoPlan{"casts to bool"};
    if (is_float(from) && is_float(node.dtype) && to_form == "f32") {
      if (node.dtype == DType::f32 || (from == node.dtype && is_rounded(x))) return need(x);
      if (node.dtype != DType::bf16) throw NoPlan{fmt::format("rounding to {} within a program", name(node.dtype))};
      distrust("rounding to bfloat16 within a program");
      const int rounded = call("typecast", {tensor(x), AttributeArgument{"bfloat16"}});
      return call("typecast", {TensorArgument{rounded}, AttributeArgument{"float32"}});
    }
    if (from == DType::boolean && form_of(x) == to_form) return need(x);
    distrust(fmt::format("casts from {} to {}", name(from), name(node.dtype)));
    return call("typecast", {tensor(x), AttributeArgument{to_form == "i32" ? "int32" : "float32"}});
  }

  // --- Moving data ---
  int broadcast(NodeId id, const Node& node) {
    const NodeId x = node.inputs[0];
    const Shape& from = graph_[x].shape;
    if (is_one_element(graph_[x])) {
      const std::string form = form_of(id);
      const double value = number_of(graph_[x]);
      return call("full", {extents(node.shape), form == "i32" ? CallArgument(static_cast<std::int64_t>(value)) : value},
                  {{"dtype", AttributeArgument{form == "i32" ? "int32" : "float32"}},
                   {"layout", AttributeArgument{"TILE_LAYOUT"}},
                   {"device", DeviceArgument{}}});
    }
    Integers lifted(at(node.shape.rank() - from.rank()), 1), times;
    lifted.insert(lifted.end(), from.begin(), from.end());
    for (int i = 0; i < node.shape.rank(); ++i) times.push_back(lifted[at(i)] == node.shape[i] ? 1 : node.shape[i]);
    int slot = need(x);
    if (from.rank() < node.shape.rank()) slot = call("reshape", {TensorArgument{slot}, lifted});
    if (std::ranges::all_of(times, [](std::int64_t n) { return n == 1; })) return slot;
    return call("repeat", {TensorArgument{slot}, times});
  }
  int transpose(const Node& node) {
    Integers order;
    for (int i = 0; i < node.shape.rank(); ++i) order.push_back(node.as<TransposeAttr>().perm[at(i)]);
    return call("permute", {tensor(node.inputs[0]), order});
  }
  int slice(const Node& node) {
    const SliceAttr& attr = node.as<SliceAttr>();
    Integers starts, ends, steps;
    for (int i = 0; i < node.shape.rank(); ++i) {
      const std::int64_t start = attr.start[at(i)], step = attr.step[at(i)];
      if (step <= 0) throw NoPlan{"slices with negative steps"};
      starts.push_back(start);
      steps.push_back(step);
      ends.push_back(start + (node.shape[i] - 1) * step + 1);
    }
    return call("slice", {tensor(node.inputs[0]), starts, ends, steps});
  }
  int pad(const Node& node) {
    const PadAttr& attr = node.as<PadAttr>();
    const Shape& inside = graph_[node.inputs[0]].shape;
    IntegerPairs amounts;
    for (int i = 0; i < node.shape.rank(); ++i) {
      const std::int64_t low = attr.low[at(i)];
      if (low != 0) throw NoPlan{"padding in front"};  // refused for tiles
      amounts.emplace_back(low, node.shape[i] - inside[i] - low);
    }
    return call("pad", {tensor(node.inputs[0]), amounts, attr.value});
  }
  int concat(const Node& node) {
    TensorsArgument parts;
    for (const NodeId part : node.inputs) parts.slots.push_back(need(part));
    return call("concat", {parts}, {{"dim", std::int64_t{node.as<AxisAttr>().axis}}});
  }

  // --- Through the matrix unit ---
  int reduce(const Node& node) {
    const ReduceAttr& attr = node.as<ReduceAttr>();
    const NodeId x = node.inputs[0];
    const std::string form = form_of(x);
    Integers axes;
    for (int i = 0; i < node.shape.rank(); ++i)
      if (attr.axes >> i & 1) axes.push_back(i);
    if (graph_[x].dtype == DType::boolean) throw NoPlan{"reductions of bool"};
    // TF32 holds a number of 16 bits; a sum of them is as exact as its float32 accumulator.
    const bool is_exact_sum = attr.kind == ReduceKind::sum && (form == "i32" || (is_narrow(graph_[x].dtype) && is_rounded(x)));
    if (!is_exact_sum) distrust(fmt::format("{} of {}", name(attr.kind), name(graph_[x].dtype)));
    const char* const function = attr.kind == ReduceKind::sum   ? "sum"
                                 : attr.kind == ReduceKind::max ? "max"
                                 : attr.kind == ReduceKind::min ? "min"
                                                                : nullptr;
    if (!function) throw NoPlan{fmt::format("the reduction {}", name(attr.kind))};
    return call(function, {tensor(x)}, {{"dim", axes}, {"keepdim", true}, {"compute_kernel_config", PreciseArgument{}}});
  }
  int matmul(const Node& node) {
    const MatMulAttr& attr = node.as<MatMulAttr>();
    if (form_of(node.inputs[0]) != "f32") throw NoPlan{"products of integers"};
    for (const NodeId x : node.inputs)
      if (!is_narrow(graph_[x].dtype) || !is_rounded(x)) distrust("products of float32");
    return call("matmul", {tensor(node.inputs[0]), tensor(node.inputs[1])},
                {{"transpose_a", attr.transpose_a},
                 {"transpose_b", attr.transpose_b},
                 {"dtype", AttributeArgument{"float32"}},
                 {"compute_kernel_config", PreciseArgument{}}});
  }
  int cumulative(const Node& node) {
    const CumulativeAttr& attr = node.as<CumulativeAttr>();
    if (form_of(node.inputs[0]) != "f32") throw NoPlan{"running sums of integers"};
    if (attr.product) distrust("running products");
    return call(attr.product ? "cumprod" : "cumsum", {tensor(node.inputs[0])}, {{"dim", std::int64_t{attr.axis}}});
  }

  // --- Whole ops ---
  bool takes(const Graph& graph, const Region& region) const {
    if (trust_ == Trust::limits) return false;
    const Shape& shape = graph[region.inputs[0]].shape;
    if (const auto* softmax = std::get_if<SoftmaxAttr>(&region.attr)) return !softmax->log && shape.rank() > 0;
    if (const auto* norm = std::get_if<NormAttr>(&region.attr))
      return shape.rank() > 1 && norm->axes == AxisSet(1u << (shape.rank() - 1)) && region.inputs.size() <= 3 &&
             std::ranges::all_of(std::span(region.inputs).subspan(1),
                                 [&](NodeId id) { return graph[id].shape.elements() == shape[shape.rank() - 1]; });
    if (const auto* attention = std::get_if<AttentionAttr>(&region.attr))
      return region.inputs.size() == 3 && graph[region.inputs[0]].shape[1] == graph[region.inputs[1]].shape[1] &&
             (!attention->causal || graph[region.inputs[0]].shape[2] == graph[region.inputs[1]].shape[2]);
    return false;
  }
  int region(const Node& node) {
    const auto& any = node.as<RegionAttr>();
    if (const auto* softmax = std::get_if<SoftmaxAttr>(&any))
      return call("softmax", {tensor(node.inputs[0])},
                  {{"dim", std::int64_t{softmax->axis}}, {"compute_kernel_config", PreciseArgument{}}, {"numeric_stable", true}});
    if (const auto* attention = std::get_if<AttentionAttr>(&any)) {
      // The function takes 16-bit tensors.
      std::vector<CallArgument> narrow;
      for (const NodeId x : node.inputs)
        narrow.emplace_back(TensorArgument{call("typecast", {tensor(x), AttributeArgument{"bfloat16"}})});
      const int result =
          call("transformer.scaled_dot_product_attention", std::move(narrow),
               {{"is_causal", attention->causal}, {"scale", attention->scale}, {"compute_kernel_config", PreciseArgument{}}});
      return call("typecast", {TensorArgument{result}, AttributeArgument{"float32"}});
    }
    const NormAttr& norm = std::get<NormAttr>(any);
    std::vector<std::pair<std::string, CallArgument>> named{{"epsilon", norm.eps}};
    const std::int64_t width = graph_[node.inputs[0]].shape[graph_[node.inputs[0]].shape.rank() - 1];
    for (std::size_t i = 1; i < node.inputs.size(); ++i)
      named.emplace_back(i == 1 ? "weight" : "bias",
                         TensorArgument{call("reshape", {tensor(node.inputs[i]), Integers{1, width}})});
    named.emplace_back("compute_kernel_config", PreciseArgument{});
    return call(norm.subtract_mean ? "layer_norm" : "rms_norm", {tensor(node.inputs[0])}, std::move(named));
  }

  // --- Lifetimes ---
  void drop_dead_slots() {
    std::map<int, std::size_t> last;
    const auto use = [&](int slot, std::size_t step) { last[slot] = std::max(last[slot], step); };
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
      CallStep& step = plan_.steps[i];
      use(step.output, i);
      const auto look = [&](const CallArgument& argument) {
        if (const auto* one = std::get_if<TensorArgument>(&argument)) use(one->slot, i);
        if (const auto* many = std::get_if<TensorsArgument>(&argument))
          for (const int slot : many->slots) use(slot, i);
      };
      for (const CallArgument& argument : step.arguments) look(argument);
      for (const auto& [key, argument] : step.named) look(argument);
    }
    for (const auto& list : {plan_.inputs, plan_.outputs})
      for (const auto& [slot, form] : list) last.erase(slot);
    for (const FastConstant& constant : plan_.constants) last.erase(constant.slot);
    for (const auto& [slot, step] : last) plan_.steps[step].drop.push_back(slot);
  }

  const Trust trust_;
  Graph graph_;
  FastPlan plan_;
  std::map<NodeId, int> slots_;
  int next_slot_ = 0, depth_ = 0;
};

}  // namespace

std::optional<FastPlan> plan_fast(const Graph& graph, Trust trust, std::string* why) {
  try {
    return Planner(graph, trust).run();
  } catch (const NoPlan& none) {
    if (why) *why = none.why;
    return std::nullopt;
  }
}

}  // namespace tenon::ttnn

#include "backends/ttnn/fast.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numbers>
#include <optional>

#include "backends/ttnn/functions.h"
#include "graph/view.h"
#include "tenon/error.h"

namespace tenon::ttnn {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// A window or kernel of more places is left to the exact tier: each place is a few calls.
constexpr std::int64_t kMaxPlaces = 128;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// TTNN's tensors have at least one axis.
Integers extents(const Shape& shape) { return shape.rank() == 0 ? Integers{1} : Integers(shape.begin(), shape.end()); }

bool is_one_element(const Node& node) { return node.prim == Prim::constant && node.shape.elements() == 1; }
double number_of(const Node& constant) {
  const HostArray wide = constant.as<ConstantAttr>().value.cast(DType::f64);
  return wide.view<double>()[0];
}

const char* form_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return "f32";
    case DType::bf16: return "bf16";
    case DType::i32: return "i32";
    case DType::bfloat8_b: return "bf8";
    case DType::bfloat4_b: return "bf4";
    default: return "";
  }
}
const char* type_of(std::string_view form) {
  if (form == "bf16") return "bfloat16";
  return form == "i32" ? "int32" : "float32";
}

std::int64_t reduced(const Node& node, const Shape& from) {
  std::int64_t count = 1;
  for (int i = 0; i < from.rank(); ++i)
    if (node.as<ReduceAttr>().axes >> i & 1) count *= from[i];
  return count;
}
std::int64_t places_of(const Spatial& sizes) { return sizes[0] * sizes[1] * sizes[2]; }

// --- What has a plan ---
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
    if (graph_[node.inputs[0]].dtype == DType::i32 || graph_[node.inputs[0]].dtype == DType::boolean)
      return "windows of integers";
    if (node.shape.rank() > 4) return "windows of three axes";
    if (places_of(node.as<WindowAttr>().size) > kMaxPlaces) return "windows of this size";
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

// --- The plan ---
class Planner {
 public:
  Planner(const LoweredGraph& lowered, const FastRules& rules) : graph_(lowered.graph), rules_(rules) {}

  FastPlan run(std::span<const NodeId> inputs, std::span<const NodeId> outputs) {
    for (std::size_t i = 0; i < inputs.size(); ++i) inputs_[inputs[i]] = static_cast<int>(i);
    // In the order of the graph, so that no chain is deeper than the stack.
    const NodeId last = *std::ranges::max_element(outputs);
    std::vector<bool> wanted(at(last) + 1, false);
    for (const NodeId id : outputs) wanted[at(id)] = true;
    for (NodeId id = last; id >= 0; --id)
      if (wanted[at(id)] && !inputs_.contains(id))
        for (const NodeId x : graph_[id].inputs) wanted[at(x)] = true;
    for (NodeId id = 0; id <= last; ++id)
      if (wanted[at(id)] && is_step(id)) need(id);
    for (const NodeId id : outputs) {
      const int slot = need(id);
      plan_.outputs.emplace_back(slot, form(id));
    }
    drop_dead_slots();
    plan_.slots = next_slot_;
    return std::move(plan_);
  }

 private:
  // Whether it is computed in its turn; what only a reader knows how to use waits for it.
  bool is_step(NodeId id) const {
    const Node& node = graph_[id];
    return !inputs_.contains(id) && node.prim != Prim::constant && node.prim != Prim::cast && node.prim != Prim::broadcast;
  }

  // --- Values ---
  std::string default_bool() const { return rules_.has_32_bit ? "f32" : "bf16"; }
  // Of a value whose slot is known.
  std::string form(NodeId id) const {
    if (graph_[id].dtype != DType::boolean) return form_of(graph_[id].dtype);
    const auto known = bool_forms_.find(id);
    return known == bool_forms_.end() ? default_bool() : known->second;
  }

  int need(NodeId id) {
    if (const auto known = slots_.find(id); known != slots_.end()) return known->second;
    const int slot = inputs_.contains(id)
                         ? input(id, graph_[id].dtype == DType::boolean ? default_bool() : form_of(graph_[id].dtype))
                         : compute(id, graph_[id]);
    slots_[id] = slot;
    return slot;
  }
  int input(NodeId id, const std::string& in_form) {
    const int number = inputs_.at(id);
    for (const FastInput& known : plan_.inputs)
      if (known.input == number && known.form == in_form) return known.slot;
    plan_.inputs.push_back({next_slot_, in_form, number});
    return next_slot_++;
  }
  // A bool in the form of what it is used with.
  int bool_as(NodeId id, const std::string& wanted) {
    if (inputs_.contains(id) && !slots_.contains(id)) return input(id, wanted);
    const int slot = need(id);
    return form(id) == wanted ? slot : typecast(slot, wanted);
  }

  int compute(NodeId id, const Node& node) {
    switch (node.prim) {
      case Prim::constant: return constant(node);
      case Prim::elementwise: return elementwise(id, node);
      case Prim::cast: return cast(node);
      case Prim::broadcast: return moved(id, node, broadcast(node));
      case Prim::reshape: return moved(id, node, call("reshape", {tensor(node.inputs[0]), extents(node.shape)}));
      case Prim::transpose: return moved(id, node, transpose(node));
      case Prim::slice: return moved(id, node, slice(node));
      case Prim::pad: return moved(id, node, pad(node));
      case Prim::concat: return concat(id, node);
      case Prim::reduce: return reduce(id, node);
      case Prim::matmul: return matmul(node);
      case Prim::conv: return conv(node);
      case Prim::window: return window(node);
      case Prim::cumulative:
        return call(node.as<CumulativeAttr>().product ? "cumprod" : "cumsum", {tensor(node.inputs[0])},
                    {{"dim", std::int64_t{node.as<CumulativeAttr>().axis}}});
      case Prim::region: return region(node);
      default: throw Error(ErrorCode::internal, fmt::format("no call of TTNN stands for {}", name(node.prim)));
    }
  }
  int moved(NodeId id, const Node& node, int slot) {
    if (node.dtype == DType::boolean) bool_forms_[id] = form(node.inputs[0]);
    return slot;
  }

  CallArgument tensor(NodeId id) { return TensorArgument{need(id)}; }
  int call(std::string_view function, std::vector<CallArgument> arguments,
           std::vector<std::pair<std::string, CallArgument>> named = {}) {
    plan_.steps.push_back({std::string(function), std::move(arguments), std::move(named), next_slot_, {}});
    return next_slot_++;
  }
  int typecast(int slot, std::string_view to) { return call("typecast", {TensorArgument{slot}, AttributeArgument{type_of(to)}}); }
  int full(const Integers& shape, double value, const std::string& in_form) {
    return call("full", {shape, in_form == "i32" ? CallArgument(static_cast<std::int64_t>(value)) : value},
                {{"dtype", AttributeArgument{type_of(in_form)}},
                 {"layout", AttributeArgument{"TILE_LAYOUT"}},
                 {"device", DeviceArgument{}}});
  }

  int constant(const Node& node) {
    plan_.constants.push_back(
        {next_slot_, node.as<ConstantAttr>().value, node.dtype == DType::boolean ? default_bool() : form_of(node.dtype)});
    return next_slot_++;
  }

  // --- Functions ---
  int elementwise(NodeId id, const Node& node) {
    const ElementwiseAttr& attr = node.as<ElementwiseAttr>();
    const Function& function = *find_function(elementwise_name(attr.op));
    const NodeId last = node.inputs.back();
    const bool is_logic = graph_[last].dtype == DType::boolean;
    if (is_logic) need(node.inputs[0]);
    const std::string in_form = is_logic ? form(node.inputs[0]) : form_of(graph_[last].dtype);
    std::vector<CallArgument> arguments;
    std::vector<std::pair<std::string, CallArgument>> named;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) arguments.push_back(operand(node, i, function, in_form));
    if (function.with_zero) arguments.emplace_back(0.0);
    for (std::size_t i = 0; i < function.parameters.size(); ++i) {
      const std::string_view key = function.parameters[i];
      if (key.empty()) continue;
      if (key == "#")
        arguments.emplace_back(attr.params[i]);
      else
        named.emplace_back(std::string(key), attr.params[i]);
    }
    if (node.dtype == DType::boolean) bool_forms_[id] = in_form;
    if (function.guard == Guard::formula && rules_.trust == Trust::limits) return formula(function.op, attr, arguments);
    const std::vector<CallArgument> operands(arguments.begin(),
                                             arguments.begin() + static_cast<std::ptrdiff_t>(node.inputs.size()));
    const int result = call(function.call, std::move(arguments), std::move(named));
    return rules_.trust == Trust::limits ? guarded(function.guard, operands, result) : result;
  }
  CallArgument operand(const Node& node, std::size_t i, const Function& function, const std::string& in_form) {
    const NodeId id = node.inputs[i];
    if (graph_[id].dtype == DType::boolean) return TensorArgument{bool_as(id, in_form)};
    if (i == 1 && node.inputs.size() == 2) {
      // A number may stand in the place of the second operand of most functions of two.
      NodeId base = id;
      while (graph_[base].prim == Prim::broadcast || graph_[base].prim == Prim::reshape) base = graph_[base].inputs[0];
      if (function.takes_number && is_one_element(graph_[base]) && has_number(function, number_of(graph_[base]))) {
        const double value = number_of(graph_[base]);
        if (in_form == "i32") return static_cast<std::int64_t>(value);
        return value;
      }
    }
    return tensor(id);
  }
  // Dividing by a number, TTNN multiplies by its reciprocal.
  bool has_number(const Function& function, double value) const {
    return function.guard != Guard::quotient || (std::isfinite(value) && std::isnormal(value));
  }

  int where(int condition, CallArgument yes, CallArgument no) {
    return call("where", {TensorArgument{condition}, std::move(yes), std::move(no)});
  }
  int is_nan(const CallArgument& x) { return call("isnan", {x}); }
  // |y|, but |x| where |x| is NaN.
  int with_nan_of(const CallArgument& x, int y) { return where(is_nan(x), x, TensorArgument{y}); }
  int guarded(Guard guard, const std::vector<CallArgument>& x, int y) {
    switch (guard) {
      case Guard::none:
      case Guard::formula: return y;
      case Guard::nan:
        for (const CallArgument& operand : x)
          if (std::holds_alternative<TensorArgument>(operand)) y = with_nan_of(operand, y);
        return y;
      case Guard::extremum: return with_nan_of(x[1], with_nan_of(x[0], y));
      case Guard::zero: return where(call("eq", {x[0], 0.0}), x[0], TensorArgument{y});
      case Guard::sign: return with_nan_of(x[0], where(call("eq", {x[0], 0.0}), x[0], TensorArgument{y}));
      case Guard::pole: return where(call("eq", {x[0], 0.0}), TensorArgument{call("reciprocal", {x[0]})}, TensorArgument{y});
      case Guard::tail: return with_nan_of(x[0], where(call("eq", {x[0], -kInfinity}), 0.0, TensorArgument{y}));
      case Guard::quotient: {
        if (!std::holds_alternative<TensorArgument>(x[1])) return y;
        const int pole = call("multiply", {x[0], TensorArgument{call("reciprocal", {x[1]})}});
        return with_nan_of(x[1], where(call("eq", {x[1], 0.0}), TensorArgument{pole}, TensorArgument{y}));
      }
    }
    return y;
  }

  // Functions of TTNN that were found different, or never measured, made of calls that were measured.
  int formula(std::string_view op, const ElementwiseAttr& attr, const std::vector<CallArgument>& operands) {
    const int x = std::get<TensorArgument>(operands[0]).slot;
    const auto multiplied = [&](int a, double by) { return call("multiply", {TensorArgument{a}, by}); };
    if (op == "clamp" || op == "hardtanh") return clamped(x, attr.params[0], attr.params[1]);
    if (op == "relu6") return clamped(x, 0, 6);
    if (op == "hardsigmoid") return multiplied(clamped(call("add", {TensorArgument{x}, 3.0}), 0, 6), 1.0 / 6);
    if (op == "leaky_relu")
      return where(call("gt", {TensorArgument{x}, 0.0}), TensorArgument{x}, TensorArgument{multiplied(x, attr.params[0])});
    if (op == "log2") return multiplied(call("log", {TensorArgument{x}}), std::numbers::log2e);
    if (op == "log10") return multiplied(call("log", {TensorArgument{x}}), std::numbers::log10e);
    if (op == "deg2rad") return multiplied(x, std::numbers::pi / 180);
    if (op == "rad2deg") return multiplied(x, 180 / std::numbers::pi);
    if (op == "squared_difference") {
      const int difference = call("subtract", {operands[0], operands[1]});
      return call("multiply", {TensorArgument{difference}, TensorArgument{difference}});
    }
    return gelu(x);
  }
  // By comparisons, which NaN passes unchanged.
  int clamped(int x, double low, double high) {
    const int raised = where(call("lt", {TensorArgument{x}, low}), low, TensorArgument{x});
    return where(call("gt", {TensorArgument{raised}, high}), high, TensorArgument{raised});
  }
  // x / 2 (1 + erf(x / sqrt 2)); below -1 by the complement, whose logarithm without x^2 / 2 is a polynomial (Numerical Recipes,
  // erfcc: 1.2e-7 relative everywhere).
  int gelu(int x) {
    const auto multiplied = [&](int a, double by) { return call("multiply", {TensorArgument{a}, by}); };
    const auto plus = [&](int a, double by) { return call("add", {TensorArgument{a}, by}); };
    const auto product_of = [&](int a, int b) { return call("multiply", {TensorArgument{a}, TensorArgument{b}}); };
    const int half = multiplied(x, 0.5), z = multiplied(x, 0.70710678118654752);
    const int body = product_of(half, plus(call("erf", {TensorArgument{z}}), 1));
    const int t = call("reciprocal", {TensorArgument{plus(multiplied(z, -0.5), 1)}});
    constexpr double kSeries[] = {-0.82215223, 1.48851587, -1.13520398, 0.27886807, -0.18628806,
                                  0.09678418,  0.37409196, 1.00002368,  -1.26551223};
    int series = multiplied(t, 0.17087277);
    for (const double term : kSeries) series = plus(term == kSeries[0] ? series : product_of(series, t), term);
    // x^2 / 2 is exact for a bfloat16 number; its exponential is a factor of its own, so that nothing is added to it.
    const int normal = call("exp", {TensorArgument{multiplied(product_of(x, x), -0.5)}});
    const int scale = product_of(t, call("exp", {TensorArgument{series}}));
    const int tail = product_of(product_of(half, scale), normal);
    const int both = where(call("lt", {TensorArgument{x}, -1.0}), TensorArgument{tail}, TensorArgument{body});
    return guarded(Guard::tail, {TensorArgument{x}}, both);
  }

  int cast(const Node& node) {
    const NodeId x = node.inputs[0];
    const std::string to = form_of(node.dtype);
    if (graph_[x].dtype == DType::boolean) return bool_as(x, to);
    if (is_block(graph_[x].dtype)) {
      // A block's numbers are numbers of bfloat16.
      const int slot = block(x, "bf16");
      return to == "bf16" ? slot : typecast(slot, to);
    }
    return typecast(need(x), to);
  }
  // Blocks come from outside.
  int block(NodeId x, const std::string& in_form) {
    if (inputs_.contains(x)) return input(x, in_form);
    plan_.constants.push_back({next_slot_, graph_[x].as<ConstantAttr>().value, in_form});
    return next_slot_++;
  }

  // --- Moving data ---
  int broadcast(const Node& node) {
    const NodeId x = node.inputs[0];
    const Shape& from = graph_[x].shape;
    if (is_one_element(graph_[x]) && node.dtype != DType::boolean)
      return full(extents(node.shape), number_of(graph_[x]), form_of(node.dtype));
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
      starts.push_back(start);
      steps.push_back(step);
      ends.push_back(start + (node.shape[i] - 1) * step + 1);
    }
    return call("slice", {tensor(node.inputs[0]), starts, ends, steps});
  }
  int pad(const Node& node) {
    const PadAttr& attr = node.as<PadAttr>();
    Integers low, high, inside = extents(graph_[node.inputs[0]].shape);
    for (int i = 0; i < node.shape.rank(); ++i) {
      low.push_back(attr.low[at(i)]);
      high.push_back(node.shape[i] - inside[at(i)] - low.back());
    }
    const int x = need(node.inputs[0]);
    return padded(x, inside, low, high, attr.value, form(node.inputs[0]));
  }
  // TTNN refuses padding in front of a tile: a tensor is put there instead.
  int padded(int x, Integers shape, const Integers& low, const Integers& high, double value, const std::string& in_form) {
    for (std::size_t axis = 0; axis < low.size(); ++axis) {
      if (low[axis] == 0) continue;
      Integers border = shape;
      border[axis] = low[axis];
      const int front = full(border, value, in_form);
      x = call("concat", {TensorsArgument{{front, x}}}, {{"dim", static_cast<std::int64_t>(axis)}});
      shape[axis] += low[axis];
    }
    if (std::ranges::all_of(high, [](std::int64_t n) { return n == 0; })) return x;
    IntegerPairs amounts;
    for (const std::int64_t n : high) amounts.emplace_back(0, n);
    return call("pad", {TensorArgument{x}, amounts, value});
  }
  int concat(NodeId id, const Node& node) {
    TensorsArgument parts;
    for (const NodeId part : node.inputs)
      parts.slots.push_back(node.dtype == DType::boolean ? bool_as(part, default_bool()) : need(part));
    if (node.dtype == DType::boolean) bool_forms_[id] = default_bool();
    return call("concat", {parts}, {{"dim", std::int64_t{node.as<AxisAttr>().axis}}});
  }

  // --- Reductions ---
  int reduce(NodeId id, const Node& node) {
    const ReduceAttr& attr = node.as<ReduceAttr>();
    const NodeId x = node.inputs[0];
    Integers axes;
    for (int i = 0; i < node.shape.rank(); ++i)
      if (attr.axes >> i & 1) axes.push_back(i);
    if (attr.kind == ReduceKind::any || attr.kind == ReduceKind::all) {
      bool_forms_[id] = default_bool();
      return reduced_by(attr.kind == ReduceKind::any ? "max" : "min", bool_as(x, default_bool()), axes);
    }
    if (attr.kind == ReduceKind::sum) return sum(x, node, axes);
    const char* const function = attr.kind == ReduceKind::max ? "max" : "min";
    if (rules_.trust == Trust::all) return reduced_by(function, need(x), axes);
    // The matrix unit, through which these go, cuts float32 off, and NaN are lost.
    const int result = graph_[x].dtype == DType::bf16 ? reduced_by(function, need(x), axes) : extremum(x, axes, attr.kind);
    const int has_nan = reduced_by("max", is_nan(tensor(x)), axes);
    return where(has_nan, std::numeric_limits<double>::quiet_NaN(), TensorArgument{result});
  }
  int reduced_by(const char* function, int x, const Integers& axes) {
    return call(function, {TensorArgument{x}}, {{"dim", axes}, {"keepdim", true}, {"compute_kernel_config", PreciseArgument{}}});
  }
  // The mean is right where the sum is not; int32 is right in both.
  int sum(NodeId x, const Node& node, const Integers& axes) {
    if (graph_[x].dtype != DType::f32) return reduced_by("sum", need(x), axes);
    const int mean = reduced_by("mean", need(x), axes);
    const std::int64_t count = reduced(node, graph_[x].shape);
    return count == 1 ? mean : call("multiply", {TensorArgument{mean}, static_cast<double>(count)});
  }
  int extremum(NodeId x, const Integers& axes, ReduceKind kind) {
    const char* const function = kind == ReduceKind::max ? "maximum" : "minimum";
    int slot = need(x);
    Integers shape = extents(graph_[x].shape);
    for (const std::int64_t axis : axes)
      while (shape[at(axis)] > 1) {
        // Two halves, which may share an element.
        const std::int64_t all = shape[at(axis)], half = (all + 1) / 2;
        const Integers ones(shape.size(), 1), zeros(shape.size(), 0);
        Integers starts = zeros, ends = shape;
        ends[at(axis)] = half;
        const int low = call("slice", {TensorArgument{slot}, zeros, ends, ones});
        starts[at(axis)] = all - half;
        const int high = call("slice", {TensorArgument{slot}, starts, shape, ones});
        slot = call(function, {TensorArgument{low}, TensorArgument{high}});
        shape[at(axis)] = half;
      }
    return slot;
  }

  // --- Products ---
  // In the form in which it is stored: the matrix unit widens it.
  int product_operand(NodeId x) {
    const Node& node = graph_[x];
    if (inputs_.contains(x) || node.prim != Prim::cast) return need(x);
    const NodeId from = node.inputs[0];
    if (graph_[from].dtype == DType::bf16) return need(from);
    return is_block(graph_[from].dtype) ? block(from, form_of(graph_[from].dtype)) : need(x);
  }
  int product(int a, int b, DType result, bool transpose_a = false, bool transpose_b = false) {
    return call("matmul", {TensorArgument{a}, TensorArgument{b}},
                {{"transpose_a", transpose_a},
                 {"transpose_b", transpose_b},
                 {"dtype", AttributeArgument{type_of(form_of(result))}},
                 {"compute_kernel_config", PreciseArgument{}}});
  }
  int matmul(const Node& node) {
    const MatMulAttr& attr = node.as<MatMulAttr>();
    return product(product_operand(node.inputs[0]), product_operand(node.inputs[1]), node.dtype, attr.transpose_a,
                   attr.transpose_b);
  }

  // Pairwise, so that the error grows with the logarithm of their number.
  int combined(std::int64_t begin, std::int64_t end, const std::function<int(std::int64_t)>& part,
               const std::function<int(int, int)>& combine) {
    if (end - begin == 1) return part(begin);
    const std::int64_t middle = begin + (end - begin) / 2;
    const int first = combined(begin, middle, part, combine);
    return combine(first, combined(middle, end, part, combine));
  }
  // Place |number| of a kernel or window, as an index along each axis.
  static Spatial place(std::int64_t number, const Spatial& sizes) {
    return {number / (sizes[1] * sizes[2]), number / sizes[2] % sizes[1], number % sizes[2]};
  }
  // The elements of |x| that lie under one place, for every place of the result; spatial axes start at |first|.
  int under(int x, const Integers& shape, std::size_t first, const Shape& result, int result_first, const Spatial& where,
            const Spatial& stride, const Spatial& dilation) {
    Integers starts(shape.size(), 0), ends = shape, steps(shape.size(), 1);
    for (int i = 0; i + result_first < result.rank(); ++i) {
      const std::size_t axis = first + at(i);
      starts[axis] = where[at(i)] * dilation[at(i)];
      steps[axis] = stride[at(i)];
      ends[axis] = starts[axis] + (result[result_first + i] - 1) * stride[at(i)] + 1;
    }
    return call("slice", {TensorArgument{x}, starts, ends, steps});
  }

  // A product for each place of the kernel. Channels are the last axis meanwhile: [n, spatial..., c].
  int conv(const Node& node) {
    const ConvAttr& attr = node.as<ConvAttr>();
    const Shape& x_shape = graph_[node.inputs[0]].shape;
    const Shape& w_shape = graph_[node.inputs[1]].shape;
    const int spatial = x_shape.rank() - 2;
    const bool is_depthwise = attr.groups != 1;
    Integers to_last{0}, to_first{0, spatial + 1}, shape{x_shape[0]}, w_order, low{0}, high{0}, result{node.shape[0]};
    Spatial sizes{1, 1, 1};
    for (int i = 0; i < spatial; ++i) {
      to_last.push_back(i + 2);
      to_first.push_back(i + 1);
      shape.push_back(x_shape[i + 2]);
      w_order.push_back(i + 2);
      low.push_back(attr.pad_low[at(i)]);
      high.push_back(attr.pad_high[at(i)]);
      result.push_back(node.shape[i + 2]);
      sizes[at(i)] = w_shape[i + 2];
    }
    to_last.push_back(1);
    shape.push_back(x_shape[1]);
    w_order.insert(w_order.end(), {1, 0});
    low.push_back(0);
    high.push_back(0);
    result.push_back(node.shape[1]);
    const auto operand = [&](NodeId id) { return is_depthwise ? need(id) : product_operand_as_tile(id); };
    const std::string in_form = is_depthwise ? form_of(node.dtype) : operand_form(node.inputs[0]);
    int x = call("permute", {TensorArgument{operand(node.inputs[0])}, to_last});
    x = padded(x, shape, low, high, 0, in_form);
    for (std::size_t i = 0; i < shape.size(); ++i) shape[i] += low[i] + high[i];
    // [kernel..., c, o], one matrix after the other.
    const std::int64_t places = places_of(sizes), rows = w_shape[1], columns = w_shape[0];
    int weight = call("permute", {TensorArgument{operand(node.inputs[1])}, w_order});
    weight = call("reshape", {TensorArgument{weight}, Integers{places, rows, columns}});
    std::int64_t points = 1;
    for (std::size_t i = 0; i + 1 < result.size(); ++i) points *= result[i];
    const auto part = [&](std::int64_t number) {
      const int seen = under(x, shape, 1, node.shape, 2, place(number, sizes), attr.stride, attr.dilation);
      const int rows_of_x = call("reshape", {TensorArgument{seen}, Integers{points, x_shape[1]}});
      int matrix =
          call("slice", {TensorArgument{weight}, Integers{number, 0, 0}, Integers{number + 1, rows, columns}, Integers{1, 1, 1}});
      matrix = call("reshape", {TensorArgument{matrix}, Integers{rows, columns}});
      return is_depthwise ? call("multiply", {TensorArgument{rows_of_x}, TensorArgument{matrix}})
                          : product(rows_of_x, matrix, node.dtype);
    };
    const int flat = combined(0, places, part, [&](int a, int b) { return call("add", {TensorArgument{a}, TensorArgument{b}}); });
    const int whole = call("reshape", {TensorArgument{flat}, result});
    return call("permute", {TensorArgument{whole}, to_first});
  }
  // Blocks are not cut into pieces.
  int product_operand_as_tile(NodeId x) {
    const Node& node = graph_[x];
    if (!inputs_.contains(x) && node.prim == Prim::cast && is_block(graph_[node.inputs[0]].dtype))
      return block(node.inputs[0], "bf16");
    return product_operand(x);
  }
  std::string operand_form(NodeId x) const {
    const Node& node = graph_[x];
    if (node.dtype == DType::bf16) return "bf16";
    if (inputs_.contains(x) || node.prim != Prim::cast) return "f32";
    const DType from = graph_[node.inputs[0]].dtype;
    return from == DType::bf16 || is_block(from) ? "bf16" : "f32";
  }

  int window(const Node& node) {
    const WindowAttr& attr = node.as<WindowAttr>();
    const NodeId x = node.inputs[0];
    const int spatial = node.shape.rank() - 2;
    Integers shape = extents(graph_[x].shape), low(shape.size(), 0), high(shape.size(), 0);
    for (int i = 0; i < spatial; ++i) {
      low[at(i) + 2] = attr.pad_low[at(i)];
      high[at(i) + 2] = attr.pad_high[at(i)];
    }
    const int source = padded(need(x), shape, low, high, attr.max ? -kInfinity : 0, form(x));
    for (std::size_t i = 0; i < shape.size(); ++i) shape[i] += low[i] + high[i];
    const auto part = [&](std::int64_t number) {
      return under(source, shape, 2, node.shape, 2, place(number, attr.size), attr.stride, attr.dilation);
    };
    const auto combine = [&](int a, int b) {
      const CallArgument first = TensorArgument{a}, second = TensorArgument{b};
      if (!attr.max) return call("add", {first, second});
      const int larger = call("maximum", {first, second});
      return rules_.trust == Trust::limits ? guarded(Guard::extremum, {first, second}, larger) : larger;
    };
    return combined(0, places_of(attr.size), part, combine);
  }

  // --- Whole ops ---
  int region(const Node& node) {
    const auto& any = node.as<RegionAttr>();
    if (const auto* softmax = std::get_if<SoftmaxAttr>(&any))
      return call("softmax", {tensor(node.inputs[0])},
                  {{"dim", std::int64_t{softmax->axis}}, {"compute_kernel_config", PreciseArgument{}}, {"numeric_stable", true}});
    if (const auto* attention = std::get_if<AttentionAttr>(&any)) {
      std::vector<std::pair<std::string, CallArgument>> named;
      if (node.inputs.size() > 3) named.emplace_back("attn_mask", tensor(node.inputs[3]));
      named.emplace_back("is_causal", attention->causal);
      named.emplace_back("scale", attention->scale);
      named.emplace_back("compute_kernel_config", PreciseArgument{});
      return call("transformer.scaled_dot_product_attention",
                  {tensor(node.inputs[0]), tensor(node.inputs[1]), tensor(node.inputs[2])}, std::move(named));
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
    for (const FastInput& input : plan_.inputs) last.erase(input.slot);
    for (const auto& [slot, form] : plan_.outputs) last.erase(slot);
    for (const FastConstant& constant : plan_.constants) last.erase(constant.slot);
    for (const auto& [slot, step] : last) plan_.steps[step].drop.push_back(slot);
  }

  const Graph& graph_;
  const FastRules rules_;
  FastPlan plan_;
  std::map<NodeId, int> inputs_;  // their numbers
  std::map<NodeId, int> slots_;
  std::map<NodeId, std::string> bool_forms_;
  int next_slot_ = 0;
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

FastPlan plan_fast_part(const LoweredGraph& lowered, std::span<const NodeId> inputs, std::span<const NodeId> outputs,
                        const FastRules& rules) {
  return Planner(lowered, rules).run(inputs, outputs);
}

}  // namespace tenon::ttnn

#include "backends/ttnn/fast.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "backends/ttnn/call_writer.h"
#include "backends/ttnn/functions.h"
#include "tenon/error.h"

namespace tenon::ttnn {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// TTNN's tensors have at least one axis.
Integers extents(const Shape& shape) { return shape.rank() == 0 ? Integers{1} : Integers(shape.begin(), shape.end()); }

bool is_one_element(const Node& node) { return node.prim == Prim::constant && node.shape.elements() == 1; }
double number_of(const Node& constant) {
  const HostArray wide = constant.as<ConstantAttr>().value.cast(DType::f64);
  return wide.view<double>()[0];
}

std::int64_t reduced(const Node& node, const Shape& from) {
  std::int64_t count = 1;
  for (int i = 0; i < from.rank(); ++i)
    if (node.as<ReduceAttr>().axes >> i & 1) count *= from[i];
  return count;
}
std::int64_t places_of(const Spatial& sizes) { return sizes[0] * sizes[1] * sizes[2]; }

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
    writer_.finish();
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
    plan_.inputs.push_back({writer_.new_slot(), in_form, number});
    return plan_.inputs.back().slot;
  }
  // A bool in the form of what it is used with.
  int bool_as(NodeId id, const std::string& wanted) {
    if (inputs_.contains(id) && !slots_.contains(id)) return input(id, wanted);
    const int slot = need(id);
    return form(id) == wanted ? slot : writer_.typecast(slot, wanted);
  }

  int compute(NodeId id, const Node& node) {
    switch (node.prim) {
      case Prim::constant: return constant(node);
      case Prim::elementwise: return elementwise(id, node);
      case Prim::cast: return cast(node);
      case Prim::broadcast: return moved(id, node, broadcast(node));
      case Prim::reshape: return moved(id, node, writer_.call("reshape", {tensor(node.inputs[0]), extents(node.shape)}));
      case Prim::transpose: return moved(id, node, transpose(node));
      case Prim::slice: return moved(id, node, slice(node));
      case Prim::pad: return moved(id, node, pad(node));
      case Prim::concat: return concat(id, node);
      case Prim::reduce: return reduce(id, node);
      case Prim::matmul: return matmul(node);
      case Prim::conv: return conv(node);
      case Prim::window: return window(node);
      case Prim::cumulative:
        return writer_.call(node.as<CumulativeAttr>().product ? "cumprod" : "cumsum", {tensor(node.inputs[0])},
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

  int constant(const Node& node) {
    const std::string in_form = node.dtype == DType::boolean ? default_bool() : form_of(node.dtype);
    plan_.constants.push_back({writer_.new_slot(), node.as<ConstantAttr>().value, in_form});
    return plan_.constants.back().slot;
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
    if (function.guard == Guard::formula && rules_.trust == Trust::limits) return writer_.formula(function.op, attr, arguments);
    const std::vector<CallArgument> operands(arguments.begin(),
                                             arguments.begin() + static_cast<std::ptrdiff_t>(node.inputs.size()));
    const int result = writer_.call(function.call, std::move(arguments), std::move(named));
    return rules_.trust == Trust::limits ? writer_.guarded(function.guard, operands, result) : result;
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

  int cast(const Node& node) {
    const NodeId x = node.inputs[0];
    const std::string to = form_of(node.dtype);
    if (graph_[x].dtype == DType::boolean) return bool_as(x, to);
    if (is_block(graph_[x].dtype)) {
      // A block's numbers are numbers of bfloat16.
      const int slot = block(x, "bf16");
      return to == "bf16" ? slot : writer_.typecast(slot, to);
    }
    return writer_.typecast(need(x), to);
  }
  // Blocks come from outside.
  int block(NodeId x, const std::string& in_form) {
    if (inputs_.contains(x)) return input(x, in_form);
    plan_.constants.push_back({writer_.new_slot(), graph_[x].as<ConstantAttr>().value, in_form});
    return plan_.constants.back().slot;
  }

  // --- Moving data ---
  int broadcast(const Node& node) {
    const NodeId x = node.inputs[0];
    const Shape& from = graph_[x].shape;
    if (is_one_element(graph_[x]) && node.dtype != DType::boolean)
      return writer_.full(extents(node.shape), number_of(graph_[x]), form_of(node.dtype));
    Integers lifted(at(node.shape.rank() - from.rank()), 1), times;
    lifted.insert(lifted.end(), from.begin(), from.end());
    for (int i = 0; i < node.shape.rank(); ++i) times.push_back(lifted[at(i)] == node.shape[i] ? 1 : node.shape[i]);
    int slot = need(x);
    if (from.rank() < node.shape.rank()) slot = writer_.call("reshape", {TensorArgument{slot}, lifted});
    if (std::ranges::all_of(times, [](std::int64_t n) { return n == 1; })) return slot;
    return writer_.call("repeat", {TensorArgument{slot}, times});
  }
  int transpose(const Node& node) {
    Integers order;
    for (int i = 0; i < node.shape.rank(); ++i) order.push_back(node.as<TransposeAttr>().perm[at(i)]);
    return writer_.call("permute", {tensor(node.inputs[0]), order});
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
    return writer_.call("slice", {tensor(node.inputs[0]), starts, ends, steps});
  }
  int pad(const Node& node) {
    const PadAttr& attr = node.as<PadAttr>();
    Integers low, high, inside = extents(graph_[node.inputs[0]].shape);
    for (int i = 0; i < node.shape.rank(); ++i) {
      low.push_back(attr.low[at(i)]);
      high.push_back(node.shape[i] - inside[at(i)] - low.back());
    }
    const int x = need(node.inputs[0]);
    return writer_.padded(x, inside, low, high, attr.value, form(node.inputs[0]));
  }
  int concat(NodeId id, const Node& node) {
    TensorsArgument parts;
    for (const NodeId part : node.inputs)
      parts.slots.push_back(node.dtype == DType::boolean ? bool_as(part, default_bool()) : need(part));
    if (node.dtype == DType::boolean) bool_forms_[id] = default_bool();
    return writer_.call("concat", {parts}, {{"dim", std::int64_t{node.as<AxisAttr>().axis}}});
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
    const int has_nan = reduced_by("max", writer_.is_nan(tensor(x)), axes);
    return writer_.where(has_nan, std::numeric_limits<double>::quiet_NaN(), TensorArgument{result});
  }
  int reduced_by(const char* function, int x, const Integers& axes) {
    return writer_.call(function, {TensorArgument{x}},
                        {{"dim", axes}, {"keepdim", true}, {"compute_kernel_config", PreciseArgument{}}});
  }
  // The mean is right where the sum is not; int32 is right in both.
  int sum(NodeId x, const Node& node, const Integers& axes) {
    if (graph_[x].dtype != DType::f32) return reduced_by("sum", need(x), axes);
    const int mean = reduced_by("mean", need(x), axes);
    const std::int64_t count = reduced(node, graph_[x].shape);
    return count == 1 ? mean : writer_.call("multiply", {TensorArgument{mean}, static_cast<double>(count)});
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
        const int low = writer_.call("slice", {TensorArgument{slot}, zeros, ends, ones});
        starts[at(axis)] = all - half;
        const int high = writer_.call("slice", {TensorArgument{slot}, starts, shape, ones});
        slot = writer_.call(function, {TensorArgument{low}, TensorArgument{high}});
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
    return writer_.call("matmul", {TensorArgument{a}, TensorArgument{b}},
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
    return writer_.call("slice", {TensorArgument{x}, starts, ends, steps});
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
    int x = writer_.call("permute", {TensorArgument{operand(node.inputs[0])}, to_last});
    x = writer_.padded(x, shape, low, high, 0, in_form);
    for (std::size_t i = 0; i < shape.size(); ++i) shape[i] += low[i] + high[i];
    // [kernel..., c, o], one matrix after the other.
    const std::int64_t places = places_of(sizes), rows = w_shape[1], columns = w_shape[0];
    int weight = writer_.call("permute", {TensorArgument{operand(node.inputs[1])}, w_order});
    weight = writer_.call("reshape", {TensorArgument{weight}, Integers{places, rows, columns}});
    std::int64_t points = 1;
    for (std::size_t i = 0; i + 1 < result.size(); ++i) points *= result[i];
    const auto part = [&](std::int64_t number) {
      const int seen = under(x, shape, 1, node.shape, 2, place(number, sizes), attr.stride, attr.dilation);
      const int rows_of_x = writer_.call("reshape", {TensorArgument{seen}, Integers{points, x_shape[1]}});
      int matrix = writer_.call(
          "slice", {TensorArgument{weight}, Integers{number, 0, 0}, Integers{number + 1, rows, columns}, Integers{1, 1, 1}});
      matrix = writer_.call("reshape", {TensorArgument{matrix}, Integers{rows, columns}});
      return is_depthwise ? writer_.call("multiply", {TensorArgument{rows_of_x}, TensorArgument{matrix}})
                          : product(rows_of_x, matrix, node.dtype);
    };
    const int flat =
        combined(0, places, part, [&](int a, int b) { return writer_.call("add", {TensorArgument{a}, TensorArgument{b}}); });
    const int whole = writer_.call("reshape", {TensorArgument{flat}, result});
    return writer_.call("permute", {TensorArgument{whole}, to_first});
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
    const int source = writer_.padded(need(x), shape, low, high, attr.max ? -kInfinity : 0, form(x));
    for (std::size_t i = 0; i < shape.size(); ++i) shape[i] += low[i] + high[i];
    const auto part = [&](std::int64_t number) {
      return under(source, shape, 2, node.shape, 2, place(number, attr.size), attr.stride, attr.dilation);
    };
    const auto combine = [&](int a, int b) {
      const CallArgument first = TensorArgument{a}, second = TensorArgument{b};
      if (!attr.max) return writer_.call("add", {first, second});
      const int larger = writer_.call("maximum", {first, second});
      return rules_.trust == Trust::limits ? writer_.guarded(Guard::extremum, {first, second}, larger) : larger;
    };
    return combined(0, places_of(attr.size), part, combine);
  }

  // --- Whole ops ---
  int region(const Node& node) {
    const auto& any = node.as<RegionAttr>();
    if (const auto* softmax = std::get_if<SoftmaxAttr>(&any))
      return writer_.call(
          "softmax", {tensor(node.inputs[0])},
          {{"dim", std::int64_t{softmax->axis}}, {"compute_kernel_config", PreciseArgument{}}, {"numeric_stable", true}});
    if (const auto* attention = std::get_if<AttentionAttr>(&any)) {
      std::vector<std::pair<std::string, CallArgument>> named;
      if (node.inputs.size() > 3) named.emplace_back("attn_mask", tensor(node.inputs[3]));
      named.emplace_back("is_causal", attention->causal);
      named.emplace_back("scale", attention->scale);
      named.emplace_back("compute_kernel_config", PreciseArgument{});
      return writer_.call("transformer.scaled_dot_product_attention",
                          {tensor(node.inputs[0]), tensor(node.inputs[1]), tensor(node.inputs[2])}, std::move(named));
    }
    const NormAttr& norm = std::get<NormAttr>(any);
    std::vector<std::pair<std::string, CallArgument>> named{{"epsilon", norm.eps}};
    const std::int64_t width = graph_[node.inputs[0]].shape[graph_[node.inputs[0]].shape.rank() - 1];
    for (std::size_t i = 1; i < node.inputs.size(); ++i)
      named.emplace_back(i == 1 ? "weight" : "bias",
                         TensorArgument{writer_.call("reshape", {tensor(node.inputs[i]), Integers{1, width}})});
    named.emplace_back("compute_kernel_config", PreciseArgument{});
    return writer_.call(norm.subtract_mean ? "layer_norm" : "rms_norm", {tensor(node.inputs[0])}, std::move(named));
  }

  const Graph& graph_;
  const FastRules rules_;
  FastPlan plan_;
  CallWriter writer_{plan_};
  std::map<NodeId, int> inputs_;  // their numbers
  std::map<NodeId, int> slots_;
  std::map<NodeId, std::string> bool_forms_;
};

}  // namespace

FastPlan plan_fast_part(const LoweredGraph& lowered, std::span<const NodeId> inputs, std::span<const NodeId> outputs,
                        const FastRules& rules) {
  return Planner(lowered, rules).run(inputs, outputs);
}

}  // namespace tenon::ttnn

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_map>

#include "ops/constant_value.h"
#include "ops/elementwise/elementwise.h"
#include "ops/names.h"
#include "ops/parameter_check.h"
#include "ops/register.h"
#include "tenon/error.h"
#include "tenon/ops.h"

namespace tenon {
namespace {

struct Catalogue {
  std::vector<OpInfo> ops;
  std::unordered_map<std::string_view, const OpInfo*> by_name;

  Catalogue() {
    for (const auto add_ops :
         {register_arithmetic_ops, register_logic_ops, register_function_ops, register_activation_ops, register_reduction_ops,
          register_normalization_ops, register_order_ops, register_linear_algebra_ops, register_einsum_ops, register_distance_ops,
          register_convolution_ops, register_pooling_ops, register_shape_ops, register_layout_ops, register_indexing_ops,
          register_creation_ops, register_neural_ops, register_attention_ops, register_loss_ops})
      add_ops(ops);
    std::sort(ops.begin(), ops.end(), [](const OpInfo& a, const OpInfo& b) { return a.name < b.name; });
    for (const OpInfo& op : ops) {
      add(op.name, op);
      for (const std::string& alias : op.aliases) add(alias, op);
    }
  }

  void add(const std::string& name, const OpInfo& op) {
    if (!by_name.emplace(name, &op).second)
      throw Error(ErrorCode::already_exists, fmt::format("the op name '{}' is registered twice", name));
  }
};

const Catalogue& catalogue() {
  static const Catalogue instance;
  return instance;
}

[[noreturn]] void invalid(const OpInfo& op, const std::string& message, const std::string& hint = {}) {
  throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}", op.name, message), hint);
}

std::string arity_text(const OpInfo& op) {
  const auto inputs = [](int n) { return fmt::format("{} input{}", n, n == 1 ? "" : "s"); };
  if (op.max_inputs < 0) return op.min_inputs == 0 ? "any number of inputs" : "at least " + inputs(op.min_inputs);
  if (op.min_inputs == op.max_inputs) return op.max_inputs == 0 ? "no inputs" : inputs(op.max_inputs);
  return fmt::format("{} to {}", op.min_inputs, inputs(op.max_inputs));
}

// The usage line of hints: "elu(x, alpha=1)".
std::string signature(const OpInfo& op) {
  std::vector<std::string> parts = op.input_names;
  for (const Parameter& p : op.parameters) parts.push_back(p.name);
  return fmt::format("{}({})", op.name, fmt::join(parts, ", "));
}

void set_named(const OpInfo& op, const NamedValue& named, std::vector<ParameterValue>& values, std::vector<bool>& set) {
  const auto& [name, value] = named;
  for (std::size_t i = 0; i < op.parameters.size(); ++i) {
    if (op.parameters[i].name != name) continue;
    if (set[i]) invalid(op, fmt::format("parameter '{}' is set twice", name));
    values[i] = checked_parameter(op, op.parameters[i], value);
    set[i] = true;
    return;
  }
  std::vector<std::string> names;
  for (const Parameter& p : op.parameters) names.push_back(p.name);
  const std::string suggestion = nearest(name, std::span<const std::string>(names));
  std::string hint;
  if (!suggestion.empty())
    hint = fmt::format("did you mean '{}'?", suggestion);
  else if (names.empty())
    hint = fmt::format("{} has no parameters", op.name);
  else
    hint = fmt::format("valid parameters: {}", fmt::join(names, ", "));
  invalid(op, fmt::format("unknown parameter '{}'", name), hint);
}

// Inputs past the op's own are parameters given by position; they must be known now, not when the program runs.
void set_positional(const OpInfo& op, const Graph& graph, std::span<const NodeId> extra, std::vector<ParameterValue>& values,
                    std::vector<bool>& set) {
  if (extra.size() > op.parameters.size())
    invalid(op, fmt::format("expected {}, got {}", arity_text(op), static_cast<std::size_t>(op.max_inputs) + extra.size()),
            fmt::format("write {}", signature(op)));
  for (std::size_t i = 0; i < extra.size(); ++i) {
    const Parameter& parameter = op.parameters[i];
    const std::optional<ParameterValue> value = constant_value(graph, extra[i]);
    if (!value)
      invalid(op, fmt::format("parameter '{}' must be a constant, not a tensor", parameter.name),
              fmt::format("write {}", signature(op)));
    values[i] = checked_parameter(op, parameter, *value);
    set[i] = true;
  }
}

// "2.5 is a float" for a number that was written out, else "input 'b' is float32".
std::string kind_of(const OpInfo& op, const Graph& graph, std::span<const NodeId> inputs, std::size_t index) {
  const std::optional<ParameterValue> value = constant_value(graph, inputs[index]);
  if (const double* number = value ? std::get_if<double>(&*value) : nullptr) return fmt::format("{} is a float", *number);
  return fmt::format("input '{}' is {}", input_name(op, index), name(graph[inputs[index]].dtype));
}

void check_integers(const OpInfo& op, const Graph& graph, std::span<const NodeId> inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (is_float(graph[inputs[i]].dtype))
      invalid(op, fmt::format("it takes integers; {}", kind_of(op, graph, inputs, i)), "cast the input, e.g. cast(x, int32)");
}

void check_dtype(const OpInfo& op, const Graph& graph, std::span<const NodeId> inputs) {
  const std::size_t data = op.elementwise && traits(*op.elementwise).condition ? 1 : 0;
  if (data >= inputs.size() || op.dtypes.empty()) return;
  const bool takes_floats = std::any_of(op.dtypes.begin(), op.dtypes.end(), [](DType d) { return is_float(d); });
  if (op.elementwise && !takes_floats) check_integers(op, graph, inputs);
  const DType dtype = graph[inputs[data]].dtype;
  if (std::find(op.dtypes.begin(), op.dtypes.end(), dtype) != op.dtypes.end()) return;
  invalid(op, fmt::format("inputs of type {} are not supported", name(dtype)),
          takes_floats ? "cast the input, e.g. cast(x, float32)" : "it takes integers; cast the input, e.g. cast(x, int32)");
}

}  // namespace

std::vector<DType> float_dtypes() {
  return {DType::f16, DType::bf16, DType::f32, DType::f64, DType::bfloat8_b, DType::bfloat4_b};
}
std::vector<DType> integer_dtypes() {
  return {DType::u8, DType::u16, DType::u32, DType::u64, DType::i8, DType::i16, DType::i32, DType::i64};
}
std::vector<DType> number_dtypes() {
  std::vector<DType> all = integer_dtypes();
  for (DType d : float_dtypes()) all.push_back(d);
  return all;
}
std::vector<DType> every_dtype() {
  std::vector<DType> all = {DType::boolean};
  for (DType d : number_dtypes()) all.push_back(d);
  return all;
}

std::span<const OpInfo> all_ops() { return catalogue().ops; }

const OpInfo* lookup_op(std::string_view name) {
  const auto& by_name = catalogue().by_name;
  const auto found = by_name.find(name);
  return found == by_name.end() ? nullptr : found->second;
}

const OpInfo& find_op(std::string_view name) {
  if (const OpInfo* op = lookup_op(name)) return *op;
  // Names before aliases, in the order of the list: the suggestion does not depend on a hash.
  std::vector<std::string_view> names;
  for (const OpInfo& op : all_ops()) names.push_back(op.name);
  for (const OpInfo& op : all_ops()) names.insert(names.end(), op.aliases.begin(), op.aliases.end());
  throw Error(ErrorCode::not_found, fmt::format("unknown op '{}'", name),
              name_hint(name, names, "check its name in the list of ops"));
}

std::vector<NodeId> apply(Graph& graph, const OpInfo& op, std::span<const NodeId> inputs,
                          std::span<const NamedValue> parameters) {
  if (static_cast<int>(inputs.size()) < op.min_inputs)
    invalid(op, fmt::format("expected {}, got {}", arity_text(op), inputs.size()), fmt::format("write {}", signature(op)));

  std::vector<ParameterValue> values;
  for (const Parameter& p : op.parameters) values.push_back(p.fallback);
  std::vector<bool> set(values.size(), false);
  const std::size_t own = op.max_inputs < 0 ? inputs.size() : std::min(inputs.size(), static_cast<std::size_t>(op.max_inputs));
  set_positional(op, graph, inputs.subspan(own), values, set);
  for (const NamedValue& named : parameters) set_named(op, named, values, set);
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!set[i] && op.parameters[i].required)
      invalid(op, fmt::format("parameter '{}' is required", op.parameters[i].name),
              fmt::format("{}: {}", op.parameters[i].name, op.parameters[i].doc));

  inputs = inputs.first(own);
  check_dtype(op, graph, inputs);
  return op.build(OpCall(graph, op, inputs, std::move(values)));
}

std::vector<NodeId> apply(Graph& graph, std::string_view op, std::initializer_list<NodeId> inputs,
                          std::initializer_list<NamedValue> parameters) {
  return apply(graph, find_op(op), std::span<const NodeId>(inputs.begin(), inputs.size()),
               std::span<const NamedValue>(parameters.begin(), parameters.size()));
}

}  // namespace tenon

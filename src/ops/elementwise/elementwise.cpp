#include "ops/elementwise/elementwise.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/elementwise/register.h"
#include "tenon/error.h"

namespace tenon {
namespace {

bool is_fractional(double x) { return std::isfinite(x) && x != std::trunc(x); }

std::vector<NodeId> add_node(const OpCall& call, ElementwiseOp op, std::span<const double> params) {
  const ElementwiseTraits& t = traits(op);
  Graph& graph = call.graph();
  std::vector<NodeId> operands(call.inputs().begin(), call.inputs().end());
  const bool whole = std::none_of(operands.begin(), operands.end(), [&](NodeId id) { return is_float(graph[id].dtype); });
  if (t.kinds & kFloats && whole && std::any_of(params.begin(), params.end(), is_fractional))
    operands[0] = graph.cast(operands[0], DType::f32);
  return {graph.elementwise(op, operands, params)};
}

// The declared parameters, in order, are the params of the body.
std::vector<NodeId> build_plain(const OpCall& call) {
  std::vector<double> params;
  for (const Parameter& p : call.op().parameters) {
    switch (p.type) {
      case ParameterType::number: params.push_back(call.number(p.name)); break;
      case ParameterType::integer: params.push_back(static_cast<double>(call.integer(p.name))); break;
      case ParameterType::boolean: params.push_back(call.boolean(p.name) ? 1 : 0); break;
      default: throw Error(ErrorCode::internal, call.op().name + " needs a builder of its own for " + p.name);
    }
  }
  return add_node(call, *call.op().elementwise, params);
}

const char* category(const ElementwiseTraits& t) { return t.inputs == 1 ? "unary" : t.inputs == 2 ? "binary" : "ternary"; }

std::vector<std::string> input_names(const ElementwiseTraits& t) {
  if (t.condition) return {"condition", "x", "y"};
  const std::vector<std::string> names = {"x", "y", "z"};
  return {names.begin(), names.begin() + t.inputs};
}

std::vector<DType> accepted_dtypes(ValueKinds kinds) {
  if (kinds & kFloats) return every_dtype();
  std::vector<DType> dtypes = integer_dtypes();
  dtypes.insert(dtypes.begin(), DType::boolean);
  return dtypes;
}

}  // namespace

Entry::Entry(OpList& ops, const char* name, ElementwiseOp op) : info_(ops.emplace_back()) {
  const ElementwiseTraits& t = traits(op);
  info_.name = name;
  info_.category = category(t);
  info_.min_inputs = info_.max_inputs = t.inputs;
  info_.input_names = input_names(t);
  info_.dtypes = accepted_dtypes(t.kinds);
  info_.build = build_plain;
  info_.elementwise = op;
}

Entry& Entry::formula(const char* text) {
  info_.formula = text;
  return *this;
}
Entry& Entry::doc(const char* text) {
  info_.doc = text;
  return *this;
}
Entry& Entry::example(const char* expression) {
  info_.example = expression;
  return *this;
}
Entry& Entry::aliases(std::initializer_list<const char*> names) {
  info_.aliases.assign(names.begin(), names.end());
  return *this;
}
Entry& Entry::inputs(std::initializer_list<const char*> names) {
  info_.input_names.assign(names.begin(), names.end());
  return *this;
}
Entry& Entry::build(std::vector<NodeId> (*builder)(const OpCall& call)) {
  info_.build = builder;
  return *this;
}
Entry& Entry::composed() {
  info_.elementwise.reset();
  return *this;
}

Parameter& Entry::parameter(const char* name, ParameterType type, ParameterValue fallback, const char* doc) {
  return info_.parameters.emplace_back(Parameter{.name = name, .type = type, .fallback = std::move(fallback), .doc = doc});
}
Entry& Entry::number(const char* name, double fallback, const char* doc) {
  parameter(name, ParameterType::number, fallback, doc);
  return *this;
}
Entry& Entry::positive(const char* name, double fallback, const char* doc) {
  parameter(name, ParameterType::number, fallback, doc).min = std::numeric_limits<float>::min();
  return *this;
}
Entry& Entry::at_least_zero(const char* name, double fallback, const char* doc) {
  parameter(name, ParameterType::number, fallback, doc).min = 0;
  return *this;
}
Entry& Entry::optional_number(const char* name, const char* doc) {
  parameter(name, ParameterType::number, std::monostate{}, doc);
  return *this;
}
Entry& Entry::integer(const char* name, std::int64_t fallback, std::int64_t min, std::int64_t max, const char* doc) {
  Parameter& p = parameter(name, ParameterType::integer, fallback, doc);
  p.min = static_cast<double>(min);
  p.max = static_cast<double>(max);
  return *this;
}
Entry& Entry::boolean(const char* name, bool fallback, const char* doc) {
  parameter(name, ParameterType::boolean, fallback, doc);
  return *this;
}
Entry& Entry::choice(const char* name, std::initializer_list<const char*> choices, const char* doc) {
  Parameter& p = parameter(name, ParameterType::text, std::string(*choices.begin()), doc);
  p.choices.assign(choices.begin(), choices.end());
  return *this;
}
Entry& Entry::optional_input(const char* name) {
  info_.max_inputs = info_.min_inputs + 1;
  info_.input_names.emplace_back(name);
  return *this;
}

std::vector<NodeId> add_elementwise(const OpCall& call, ElementwiseOp op, std::initializer_list<double> params) {
  return add_node(call, op, std::span<const double>(params.begin(), params.size()));
}

void register_elementwise_ops(OpList& ops) {
  register_arithmetic_ops(ops);
  register_logic_ops(ops);
  register_function_ops(ops);
  register_activation_ops(ops);
}

}  // namespace tenon

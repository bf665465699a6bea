#include "ops/elementwise/elementwise.h"

#include <algorithm>
#include <cmath>

#include "ops/register.h"
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

const char* category_of(const ElementwiseTraits& t) { return t.inputs == 1 ? "unary" : t.inputs == 2 ? "binary" : "ternary"; }

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
  info_.category = category_of(t);
  info_.min_inputs = info_.max_inputs = t.inputs;
  info_.input_names = input_names(t);
  info_.dtypes = accepted_dtypes(t.kinds);
  info_.build = build_plain;
  info_.elementwise = op;
}

std::vector<NodeId> add_elementwise(const OpCall& call, ElementwiseOp op, std::initializer_list<double> params) {
  return add_node(call, op, std::span<const double>(params.begin(), params.size()));
}

}  // namespace tenon

#include "conformance/cases/cases.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>

#include "conformance/plan.h"
#include "ops/elementwise/elementwise.h"
#include "tenon/error.h"

namespace tenon::conformance {
namespace {

PlanFunction find_plan(const OpInfo& op) {
  for (const PlanTable* table : {&reduction_plans(), &linear_algebra_plans(), &shape_plans(), &indexing_plans(), &neural_plans(),
                                 &spatial_plans(), &creation_plans()})
    if (const auto found = table->find(op.name); found != table->end()) return found->second;
  // float_power puts casts around its one node: elementwise all the same.
  return op.elementwise || op.category == "binary" ? plan_elementwise : nullptr;
}

Shape reversed(const Shape& shape) {
  return Shape(std::vector<std::int64_t>(std::make_reverse_iterator(shape.end()), std::make_reverse_iterator(shape.begin())));
}

NodeId add_input(Program& program, const CaseInput& input, std::uint64_t seed) {
  const std::string name = fmt::format("x{}", program.inputs.size());
  const Shape stored = input.transposed ? reversed(input.shape) : input.shape;
  program.inputs.push_back(filled(input.fill, input.dtype, stored, seed));
  const NodeId id = program.graph.input(name, input.dtype, stored);
  if (!input.transposed) return id;
  std::vector<int> perm(static_cast<std::size_t>(stored.rank()));
  std::iota(perm.rbegin(), perm.rend(), 0);
  return program.graph.transpose(id, perm);
}

// One element that no pass can fold into the program, because only the input knows its value.
NodeId add_scalar(Program& program, DType dtype, Values value) { return add_input(program, {Shape{}, dtype, Fill{value}}, 0); }

NodeId binary(Graph& graph, ElementwiseOp op, NodeId x, NodeId y) {
  const NodeId operands[] = {x, y};
  return graph.elementwise(op, operands);
}

NodeId surround(Program& program, const Case& c, NodeId y) {
  Graph& graph = program.graph;
  const Shape shape = graph[y].shape;
  const auto axis = [](int i) { return static_cast<AxisSet>(1u << i); };
  switch (c.around) {
    case Around::nothing: return y;
    case Around::chain:
      if (graph[y].dtype == DType::boolean)
        return binary(graph, ElementwiseOp::LogicalOr, y, add_scalar(program, DType::boolean, Values::zero));
      return binary(graph, ElementwiseOp::Add, y, add_scalar(program, graph[y].dtype, Values::zero));
    case Around::sum_last: return graph.reduce(ReduceKind::sum, y, axis(shape.rank() - 1));
    case Around::sum_first: return graph.reduce(ReduceKind::sum, y, axis(0));
    case Around::sum_all: return graph.reduce(ReduceKind::sum, y, static_cast<AxisSet>((1u << shape.rank()) - 1));
    case Around::products: {
      const auto matrix = [&](std::int64_t rows, std::int64_t columns) {
        return add_input(program, {Shape{rows, columns}, graph[y].dtype, Fill{Values::small}}, static_cast<std::uint64_t>(rows));
      };
      const NodeId operand[] = {y}, hidden = graph.elementwise(ElementwiseOp::Tanh, operand);
      return graph.matmul(graph.matmul(hidden, matrix(shape[shape.rank() - 1], 6)), matrix(6, 4));
    }
  }
  return y;
}

std::string value_text(const ParameterValue& value) {
  return std::visit(
      []<class T>(const T& v) -> std::string {
        if constexpr (std::is_same_v<T, std::monostate>)
          return "none";
        else if constexpr (std::is_same_v<T, std::string>)
          return fmt::format("\"{}\"", v);
        else
          return fmt::format("{}", v);
      },
      value);
}

}  // namespace

Case& Plan::add(std::string label, std::vector<CaseInput> inputs, std::vector<NamedValue> parameters) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    inputs[i].fill.operand = static_cast<int>(i);
    inputs[i].fill.operands = static_cast<int>(inputs.size());
  }
  Case c{.op = &op_,
         .dtype = dtype_,
         .number = static_cast<int>(cases_.size()),
         .label = std::move(label),
         .inputs = std::move(inputs),
         .parameters = std::move(parameters)};
  cases_.push_back(std::move(c));
  return cases_.back();
}

void Plan::add_transposed() {
  const std::size_t n = cases_.size();
  for (std::size_t i = 0; i < n; ++i) {
    Case c = cases_[i];
    bool any = false;
    for (CaseInput& input : c.inputs)
      if (input.shape.rank() >= 2 && !input.transposed) input.transposed = any = true;
    if (!any) continue;
    c.number = static_cast<int>(cases_.size());
    c.label += ", transposed";
    cases_.push_back(std::move(c));
  }
}

std::vector<Case> cases_for(const OpInfo& op, DType dtype, Extent extent) {
  const PlanFunction make = find_plan(op);
  if (make == nullptr)
    throw Error(ErrorCode::not_found, fmt::format("op {} has no conformance cases", op.name),
                "add it to the table of its kind in tests/conformance/cases/cases_*.cpp");
  Plan plan(op, dtype, extent);
  make(plan);
  if (!op.elementwise) plan.add_transposed();
  std::vector<Case> cases = plan.take();
  if (cases.empty())
    throw Error(ErrorCode::not_found, fmt::format("op {} has no conformance cases for {}", op.name, name(dtype)));
  return cases;
}

Program program_of(const Case& c, std::uint64_t seed) {
  Program program;
  std::uint64_t base = mix(seed, static_cast<std::uint64_t>(c.dtype));
  for (char letter : c.op->name) base = mix(base, static_cast<std::uint64_t>(letter));
  base = mix(base, static_cast<std::uint64_t>(c.number));
  std::vector<NodeId> nodes;
  for (const CaseInput& input : c.inputs) {
    NodeId id = add_input(program, input, mix(base, nodes.size() + 1));
    if (c.around == Around::chain && is_float(input.dtype))
      id = binary(program.graph, ElementwiseOp::Mul, id, add_scalar(program, input.dtype, Values::one));
    nodes.push_back(id);
  }
  std::vector<NodeId> outputs = apply(program.graph, *c.op, nodes, c.parameters);
  for (NodeId& y : outputs) y = surround(program, c, y);
  program.graph.set_outputs(outputs);
  return program;
}

std::string parameters_text(std::span<const NamedValue> parameters) {
  std::string text;
  for (const auto& [key, value] : parameters) text += fmt::format("{}{}={}", text.empty() ? "" : ", ", key, value_text(value));
  return text;
}

}  // namespace tenon::conformance

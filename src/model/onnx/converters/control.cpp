#include <fmt/format.h>

#include "model/onnx/converters/families.h"
#include "model/onnx/import/importer.h"

namespace tenon::onnx {
namespace {

using namespace build;

Results all(const std::vector<ValuePtr>& values) { return {values.begin(), values.end()}; }

Results if_op(const NodeContext& node) {
  return all(node.importer().call(node.subgraph(node.host_number(0) != 0 ? "then_branch" : "else_branch"), node.scope(), {}));
}

// Values of successive steps along a new first axis.
ValuePtr stacked(const NodeContext& node, const std::vector<ValuePtr>& steps, const ValueInfoProto& info, int axis = 0) {
  if (steps.empty()) {
    Dims extents{0};
    for (const TypeProto::Dim& dim : info.type.dims) extents.push_back(dim.extent.value_or(0));
    return known(HostArray::zeros(held_as(info.type.element), Shape(extents)), info.type.element);
  }
  bool is_known = true;
  for (const ValuePtr& step : steps) is_known = is_known && step->host.has_value();
  std::vector<Expr> parts;
  for (const ValuePtr& step : steps) parts.push_back(unsqueeze(node.in(step), axis));
  return computed(concat(parts, axis), steps[0]->type);
}

Results loop(const NodeContext& node) {
  const GraphProto& body = node.subgraph("body");
  std::int64_t limit = std::numeric_limits<std::int64_t>::max();
  if (node.has(0)) limit = node.host_integers(0).at(0);
  bool is_running = !node.has(1) || node.host_number(1) != 0;
  std::vector<ValuePtr> carried;
  for (std::size_t i = 2; i < node.inputs(); ++i) carried.push_back(node.has(i) ? node.value(i) : nullptr);
  if (body.outputs.size() < carried.size() + 1) node.fail("the body has too few outputs");
  std::vector<std::vector<ValuePtr>> scanned(body.outputs.size() - 1 - carried.size());
  for (std::int64_t step = 0; step < limit && is_running; ++step) {
    node.importer().count_step();
    std::vector<ValuePtr> arguments{known(HostArray::from<std::int64_t>({}, {step})),
                                    known(HostArray::full(DType::boolean, {}, 1))};
    arguments.insert(arguments.end(), carried.begin(), carried.end());
    const std::vector<ValuePtr> results = node.importer().call(body, node.scope(), arguments);
    is_running = node.host(results[0]).value(0) != 0;
    carried.assign(results.begin() + 1, results.begin() + 1 + static_cast<std::ptrdiff_t>(carried.size()));
    for (std::size_t i = 0; i < scanned.size(); ++i) scanned[i].push_back(results[1 + carried.size() + i]);
  }
  Results out = all(carried);
  for (std::size_t i = 0; i < scanned.size(); ++i)
    out.emplace_back(stacked(node, scanned[i], body.outputs[1 + carried.size() + i]));
  return out;
}

struct ScanPlan {
  std::vector<ValuePtr> state, inputs;
  Dims input_axes, input_directions, output_axes, output_directions;
};

Results scan_steps(const NodeContext& node, ScanPlan plan) {
  const GraphProto& body = node.subgraph("body");
  const std::size_t states = plan.state.size();
  if (plan.inputs.empty() || body.outputs.size() < states) node.fail("the body does not fit the inputs");
  const auto axis_of = [&](std::size_t i) {
    return normalize_axis(i < plan.input_axes.size() ? plan.input_axes[i] : 0, plan.inputs[i]->shape.rank());
  };
  const std::int64_t length = plan.inputs[0]->shape[axis_of(0)];
  std::vector<std::vector<ValuePtr>> scanned(body.outputs.size() - states);
  for (std::int64_t step = 0; step < length; ++step) {
    node.importer().count_step();
    std::vector<ValuePtr> arguments = plan.state;
    for (std::size_t i = 0; i < plan.inputs.size(); ++i) {
      const int axis = axis_of(i);
      const bool backwards = i < plan.input_directions.size() && plan.input_directions[i] != 0;
      const Expr x = node.in(plan.inputs[i]);
      arguments.push_back(
          computed(squeeze(narrow(x, axis, backwards ? length - 1 - step : step, 1), one_axis(axis)), plan.inputs[i]->type));
    }
    const std::vector<ValuePtr> results = node.importer().call(body, node.scope(), arguments);
    plan.state.assign(results.begin(), results.begin() + static_cast<std::ptrdiff_t>(states));
    for (std::size_t i = 0; i < scanned.size(); ++i) {
      const bool backwards = i < plan.output_directions.size() && plan.output_directions[i] != 0;
      scanned[i].insert(backwards ? scanned[i].begin() : scanned[i].end(), results[states + i]);
    }
  }
  Results out = all(plan.state);
  for (std::size_t i = 0; i < scanned.size(); ++i) {
    const std::int64_t axis = i < plan.output_axes.size() ? plan.output_axes[i] : 0;
    const int rank = scanned[i].empty() ? 1 : scanned[i][0]->shape.rank() + 1;
    out.emplace_back(stacked(node, scanned[i], body.outputs[states + i], normalize_axis(axis, rank)));
  }
  return out;
}

// Opset 8: every input has a batch axis first, and each batch is scanned on its own.
Results scan_batches(const NodeContext& node, std::size_t scanned) {
  if (node.has(0)) node.refuse("sequence_lens");
  const std::size_t states = node.inputs() - 1 - scanned;
  const std::int64_t batches = node.shape(1)[0];
  const auto item = [&](std::size_t i, std::int64_t b) {
    return computed(squeeze(narrow(node.in(i), 0, b, 1), one_axis(0)), node.type(i));
  };
  std::vector<std::vector<Expr>> parts;
  for (std::int64_t b = 0; b < batches; ++b) {
    ScanPlan plan;
    for (std::size_t i = 0; i < states; ++i) plan.state.push_back(item(1 + i, b));
    for (std::size_t i = 0; i < scanned; ++i) plan.inputs.push_back(item(1 + states + i, b));
    plan.input_directions = node.integers("directions");
    const Results one = scan_steps(node, std::move(plan));
    parts.resize(one.size());
    for (std::size_t i = 0; i < one.size(); ++i) parts[i].push_back(unsqueeze(node.in(one[i].value()), 0));
  }
  Results out;
  for (const std::vector<Expr>& each : parts) out.emplace_back(concat(each, 0));
  return out;
}

Results scan(const NodeContext& node) {
  const auto scanned = static_cast<std::size_t>(node.integer("num_scan_inputs"));
  if (scanned < 1 || scanned > node.inputs()) node.fail("num_scan_inputs is out of range");
  if (node.version() < 9) return scan_batches(node, scanned);
  ScanPlan plan;
  for (std::size_t i = 0; i < node.inputs(); ++i)
    (i < node.inputs() - scanned ? plan.state : plan.inputs).push_back(node.value(i));
  plan.input_axes = node.integers("scan_input_axes");
  plan.input_directions = node.integers("scan_input_directions");
  plan.output_axes = node.integers("scan_output_axes");
  plan.output_directions = node.integers("scan_output_directions");
  return scan_steps(node, std::move(plan));
}

}  // namespace

void add_control(ConverterTable& table) {
  table.add("If", if_op);
  table.add("Loop", loop);
  table.add("Scan", scan);
}

}  // namespace tenon::onnx

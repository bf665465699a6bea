#include "codegen/c/loops/group.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tenon/error.h"

namespace tenon::emit {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

bool joins_to_one(const ValueView& view, const std::vector<int>& axes) {
  std::vector<std::int64_t> extents, strides;
  for (int axis : axes) {
    extents.push_back(view.shape[axis]);
    strides.push_back(view.strides[at(axis)]);
  }
  return joined(extents, {strides}).extents.size() <= 1;
}

std::vector<Launch> emit_elementwise(const KernelTarget& target, GroupReader& reader, GroupPlacement& placement) {
  std::vector<Access> inputs, outputs;
  std::vector<NodeId> stored;
  for (const External& e : reader.externals()) inputs.push_back(access(e.from.slot, e.from.stored, e.view));
  for (NodeId output : reader.group().outputs) {
    for (const StoredValue& to : placement.targets(output)) {
      outputs.push_back(dense_access(to.slot, to.stored, reader.group().domain));
      stored.push_back(output);
    }
    if (const Access* part = placement.part(output)) {
      outputs.push_back(*part);
      stored.push_back(output);
    }
  }
  const MapBody body = [&](const MapContext& context, std::vector<std::string>& results) {
    std::string text;
    const auto variable = [&](NodeId operand) -> std::string {
      if (const auto m = reader.member(operand)) return reader.name(*m);
      return reader.is_number(operand) ? reader.number(context.body, operand)
                                       : context.inputs[at(reader.external_index(operand))];
    };
    for (NodeId id : reader.group().nodes) text += reader.statement(context.body, id, variable);
    for (std::size_t k = 0; k < stored.size(); ++k) results[k] = reader.name(stored[k]);
    return text;
  };
  return {emit_map(target, reader.group().domain, inputs, outputs, body)};
}

}  // namespace

GroupAxes group_axes(const Group& group) {
  GroupAxes axes;
  for (int axis = 0; axis < group.domain.rank(); ++axis) {
    if (group.domain[axis] == 1) continue;
    if (group.reduced & (1u << axis))
      axes.reduced.push_back(axis);
    else
      (axes.reduced.empty() ? axes.outer : axes.inner).push_back(axis);
  }
  return axes;
}

std::string combine_text(ReduceKind kind, DType dtype, const std::string& a, const std::string& b) {
  const DType compute = compute_dtype(dtype);
  const std::string type = variable_type(compute);
  const bool floats = is_float(compute);
  const char* wrap = element_bytes(compute) == 8 ? "u64" : "u32";
  switch (kind) {
    case ReduceKind::sum:
      return floats ? fmt::format("{} + {}", a, b) : fmt::format("({})(({}){} + ({}){})", type, wrap, a, wrap, b);
    case ReduceKind::prod:
      return floats ? fmt::format("{} * {}", a, b) : fmt::format("({})(({}){} * ({}){})", type, wrap, a, wrap, b);
    case ReduceKind::max:
      if (compute == DType::f32) return fmt::format("LARGER({}, {})", a, b);
      return fmt::format("({} > {} || {} != {} ? {} : {})", a, b, a, a, a, b);
    case ReduceKind::min:
      if (compute == DType::f32) return fmt::format("SMALLER({}, {})", a, b);
      return fmt::format("({} < {} || {} != {} ? {} : {})", a, b, a, a, a, b);
    case ReduceKind::any: return fmt::format("({})({} != 0 || {} != 0)", type, a, b);
    case ReduceKind::all: return fmt::format("({})({} != 0 && {} != 0)", type, a, b);
  }
  return {};
}

std::string identity_text(ReduceKind kind, DType dtype) {
  if (dtype == DType::boolean) return kind == ReduceKind::min || kind == ReduceKind::prod || kind == ReduceKind::all ? "1" : "0";
  switch (kind) {
    case ReduceKind::sum:
    case ReduceKind::any: return literal(dtype, 0);
    case ReduceKind::prod:
    case ReduceKind::all: return literal(dtype, 1);
    case ReduceKind::max: return literal(dtype, -INFINITY);
    case ReduceKind::min: return literal(dtype, INFINITY);
  }
  return {};
}

std::string across_warp_text(ReduceKind kind, DType dtype, const std::string& value, int lanes) {
  const std::string type = variable_type(dtype);
  std::string text;
  for (int distance = lanes / 2; distance > 0; distance /= 2)
    text += fmt::format("{{ const {0} other = ({0})SHUFFLE({1}, {2}); {1} = {3}; }}\n", type, value, distance,
                        combine_text(kind, dtype, value, "other"));
  return text;
}

void extreme_text(Body& body, ReduceKind kind, DType dtype, const std::string& key, const std::string& result,
                  const std::string& value, std::string& before, std::string& inside, std::string& after) {
  const std::string type = variable_type(dtype), integer = dtype == DType::f64 ? "i64" : "i32";
  before += fmt::format("{} {} = {};\ni32 n{} = 0;\n", integer, key, body.call("order_" + type, identity_text(kind, dtype)), key);
  inside += fmt::format("{{ const {0} o = {1}; {2} = o {3} {2} ? o : {2}; n{2} |= {4} != {4}; }}\n", integer,
                        body.call("order_" + type, value), key, kind == ReduceKind::max ? ">" : "<", value);
  after += fmt::format("{} {} = n{} ? {} : {};\n", type, result, key, literal(dtype, NAN), body.call("unorder_" + type, key));
}

std::string compensated_add_text(const std::string& sum, const std::string& lost, const std::string& value) {
  return fmt::format(
      "{{ const f64 y = {2}, t = {0} + y; {1} += fabs({0}) >= fabs(y) ? ({0} - t) + y : (y - t) + {0}; {0} = t; }}\n", sum, lost,
      value);
}
std::string compensated_total_text(const std::string& sum, const std::string& lost) {
  return fmt::format("({1} - {1} == 0.0 ? {0} + {1} : {0})", sum, lost);
}

GroupReader::GroupReader(const Graph& graph, const Plan& plan, int group, const GroupPlacement& placement)
    : graph_(graph),
      plan_(plan),
      index_(group),
      group_(plan.groups[at(group)]) {
  for (NodeId id : group_.nodes)
    for (NodeId operand : graph_[id].inputs) {
      if (member(operand) || is_number(operand) || external_index(operand) >= 0) continue;
      const ValueView& view = plan_.views[at(operand)];
      const bool row = group_.kind == Group::Kind::rows && !(graph_[operand].shape == group_.domain);
      externals_.push_back({operand, placement.source(view.base), view, row});
    }
}

bool GroupReader::is_number(NodeId operand) const {
  const Node& base = graph_[plan_.views[at(operand)].base];
  return base.prim == Prim::constant && base.shape.elements() == 1;
}

std::optional<double> GroupReader::number_value(NodeId operand) const {
  if (!is_number(operand)) return std::nullopt;
  return graph_[plan_.views[at(operand)].base].as<ConstantAttr>().value.value(0);
}

int GroupReader::external_index(NodeId operand) const {
  for (std::size_t k = 0; k < externals_.size(); ++k)
    if (externals_[k].operand == operand) return static_cast<int>(k);
  return -1;
}

bool GroupReader::is_row(NodeId id) const {
  return group_.kind == Group::Kind::rows && (graph_[id].prim == Prim::reduce || !(graph_[id].shape == group_.domain));
}

std::string GroupReader::name(NodeId id) const {
  return fmt::format("v{}", std::find(group_.nodes.begin(), group_.nodes.end(), id) - group_.nodes.begin());
}

std::string GroupReader::number(Body& body, NodeId operand) {
  const NodeId base = plan_.views[at(operand)].base;
  std::string& name = numbers_[base];
  if (name.empty()) {
    const HostArray& value = graph_[base].as<ConstantAttr>().value;
    const DType compute = compute_dtype(graph_[base].dtype);
    if (compute == DType::i64 || compute == DType::u64) {
      std::int64_t bits = 0;
      std::copy_n(value.data(), sizeof bits, reinterpret_cast<std::byte*>(&bits));
      name = fmt::format("({}){}", variable_type(compute), body.parameters().whole_number(bits));
    } else {
      name = body.parameters().number(compute, value.value(0));
    }
  }
  return name;
}

std::string GroupReader::statement(Body& body, NodeId id, const std::function<std::string(NodeId)>& variable) {
  const Node& node = graph_[id];
  std::vector<std::string> operands;
  for (NodeId operand : node.inputs) operands.push_back(variable(operand));
  if (node.prim == Prim::cast)
    return fmt::format("{} {} = {};\n", variable_type(node.dtype), name(id),
                       body.cast(graph_[node.inputs[0]].dtype, node.dtype, operands[0]));
  return body.elementwise(node, graph_[node.inputs.back()].dtype, operands, name(id), params_[id]);
}

std::string element_text(GroupReader& reader, Body& body, const std::function<std::string(const External&)>& load,
                         const std::map<NodeId, std::string>& known) {
  std::string text;
  for (std::size_t k = 0; k < reader.externals().size(); ++k) {
    const External& e = reader.externals()[k];
    text += fmt::format("const {} x{} = {};\n", variable_type(e.from.stored), k, load(e));
  }
  const auto variable = [&](NodeId operand) -> std::string {
    if (const auto m = reader.member(operand)) return reader.name(*m);
    return reader.is_number(operand) ? reader.number(body, operand) : fmt::format("x{}", reader.external_index(operand));
  };
  for (const NodeId id : reader.group().nodes) {
    const auto found = known.find(id);
    if (found == known.end())
      text += reader.statement(body, id, variable);
    else if (!found->second.empty())
      text += fmt::format("const {} {} = {};\n", variable_type(reader.graph()[id].dtype), reader.name(id), found->second);
  }
  return text;
}

bool group_can_read(const Graph& graph, const Plan& plan, const Group& group, NodeId operand) {
  if (group.kind == Group::Kind::elementwise || !(graph[operand].shape == group.domain)) return true;
  const GroupAxes axes = group_axes(group);
  const ValueView& view = plan.views[at(operand)];
  return joins_to_one(view, axes.reduced) && joins_to_one(view, axes.inner);
}

std::vector<Launch> emit_group(const KernelTarget& target, const Graph& graph, const Plan& plan, int group,
                               GroupPlacement& placement) {
  GroupReader reader(graph, plan, group, placement);
  switch (reader.group().kind) {
    case Group::Kind::elementwise: return emit_elementwise(target, reader, placement);
    case Group::Kind::rows: return emit_rows(target, reader, placement);
    case Group::Kind::reduction: return emit_reduction(target, reader, placement);
  }
  throw Error(ErrorCode::internal, "a group of unknown kind");
}

}  // namespace tenon::emit

#include "hal/kernel_plan/values.h"

#include <fmt/format.h>

#include <algorithm>

#include "tenon/error.h"

namespace tenon {

using namespace emit;

namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace

PlanValues::PlanValues(const Graph& graph, Plan& fused, const KernelTarget& target, PlanSteps& steps)
    : graph_(graph),
      fused_(fused),
      target_(target),
      steps_(steps) {
  find_exact();
  count_readers();
  find_computed_by_readers();
  place_inputs();
  place_outputs();
}

// Numbers of the node's dtype stay so when they are only moved.
void PlanValues::find_exact() {
  for (NodeId id = 0; id < graph_.size(); ++id) {
    const Node& node = graph_[id];
    const auto is = [&](NodeId in) { return bool{is_exact_[at(in)]}; };
    bool exact = node.prim == Prim::input || memory_dtype_of(id) == node.dtype;
    if (is_view(node.prim) || node.prim == Prim::take || node.prim == Prim::gather) exact = exact || is(node.inputs[0]);
    if (node.prim == Prim::concat) exact = exact || std::ranges::all_of(node.inputs, is);
    is_exact_.push_back(exact && !is_block(node.dtype));
  }
}

DType PlanValues::memory_dtype_of(NodeId id) const {
  const bool is_known = at(id) < is_exact_.size();
  return is_known && is_exact_[at(id)] ? graph_[id].dtype : tenon::memory_dtype(graph_, fused_, id);
}

NodeId PlanValues::base_of(NodeId id) const { return fused_.views[at(id)].base; }

void PlanValues::count_readers() {
  const auto read = [&](NodeId operand, int group) {
    if (group >= 0 && member_behind(graph_, fused_, group, operand)) return;
    ++readers_[base_of(operand)];
  };
  for (const Step& step : fused_.steps) {
    if (step.group >= 0) {
      for (NodeId n : fused_.groups[at(step.group)].nodes)
        for (NodeId operand : graph_[n].inputs) read(operand, step.group);
    } else {
      for (NodeId operand : graph_[step.node].inputs) read(operand, -1);
    }
  }
  for (NodeId id : graph_.outputs())
    if (base_of(id) != id && !is_renamed(id)) ++readers_[base_of(id)];
}

void PlanValues::find_computed_by_readers() {
  for (NodeId id = 0; id < graph_.size(); ++id)
    if (graph_[id].prim == Prim::iota) computed_by_readers_.insert(id);
  for (NodeId id : graph_.outputs()) computed_by_readers_.erase(base_of(id));
  for (const Step& step : fused_.steps) {
    if (step.group >= 0 && fused_.groups[at(step.group)].kind == Group::Kind::elementwise) continue;
    const std::vector<NodeId> nodes = step.group >= 0 ? fused_.groups[at(step.group)].nodes : std::vector<NodeId>{step.node};
    for (NodeId n : nodes)
      for (NodeId operand : graph_[n].inputs) computed_by_readers_.erase(base_of(operand));
  }
}

// Whether |id| is a whole computed value with another shape, so that the value can be written directly to the output. Must be
// called before steps are added, because a view that has been copied looks like one.
bool PlanValues::is_renamed(NodeId output) const {
  const ValueView& view = fused_.views[at(output)];
  const Node& base = graph_[view.base];
  return is_dense(view) && view.offset == 0 && view.shape.elements() == base.shape.elements() && base.prim != Prim::input &&
         base.prim != Prim::constant && !is_block(base.dtype) && graph_[output].dtype == base.dtype;
}

void PlanValues::place_inputs() {
  for (std::size_t i = 0; i < graph_.inputs().size(); ++i) {
    const NodeId id = graph_.inputs()[i];
    const Node& node = graph_[id];
    sources_[id] = {steps_.input_slot(i), node.dtype};
    if (!is_block(node.dtype) || !readers_.contains(id)) continue;
    const int decoded = steps_.temporary(DType::f32, node.shape);
    if (node.shape.elements() > 0) steps_.add(emit_block_decode(target_, node.dtype, node.shape, steps_.input_slot(i), decoded));
    sources_[id] = {decoded, DType::f32};
  }
}

void PlanValues::place_outputs() {
  is_direct_.assign(graph_.outputs().size(), false);
  for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
    if (!is_renamed(graph_.outputs()[i])) continue;
    direct_outputs_[base_of(graph_.outputs()[i])].push_back(i);
    is_direct_[i] = true;
  }
  place_direct_outputs();
}

// A value that is stored as its output is has no other memory.
void PlanValues::place_direct_outputs() {
  for (const auto& [id, indices] : direct_outputs_)
    if (memory_dtype_of(id) == graph_[id].dtype) sources_[id] = {steps_.output_slot(indices[0]), graph_[id].dtype};
}

// --- Reading ---

StoredValue PlanValues::source(NodeId base) const {
  if (const auto found = sources_.find(base); found != sources_.end()) return found->second;
  if (is_computed_by_readers(base)) return {kNumbers, graph_[base].dtype};
  if (graph_[base].prim != Prim::constant)
    throw Error(ErrorCode::internal, fmt::format("%{} ({}) was read before it was computed", base, name(graph_[base].prim)));
  HostArray value = graph_[base].as<ConstantAttr>().value;
  if (is_block(value.dtype())) value = value.cast(DType::f32);
  return sources_[base] = {steps_.constant(value), value.dtype()};
}

Access PlanValues::stored(NodeId id) const {
  const ValueView& view = fused_.views[at(id)];
  const StoredValue value = source(view.base);
  return access(value.slot, value.stored, view);
}

Dense PlanValues::dense(NodeId id) {
  const ValueView& view = fused_.views[at(id)];
  const StoredValue value = source(view.base);
  if (is_dense(view) && view.offset == 0) return {value.slot, value.stored, view.shape};
  return copied(id);
}

Dense PlanValues::copied(NodeId id) {
  const Access from = stored(id);
  const Shape shape = graph_[id].shape;
  const int to = steps_.temporary(from.stored, shape);
  if (shape.elements() > 0) steps_.add(emit_copy(target_, shape, from, dense_access(to, from.stored, shape)));
  fused_.views[at(id)] = whole_view(id, shape);
  sources_[id] = {to, from.stored};
  return {to, from.stored, shape};
}

bool PlanValues::is_read_once(NodeId base) const {
  const auto readers = readers_.find(base);
  return readers != readers_.end() && readers->second == 1 && !direct_outputs_.contains(base);
}

// --- Writing ---

const Access* PlanValues::part(NodeId output) const {
  const auto found = parts_.find(output);
  return found == parts_.end() ? nullptr : &found->second;
}

void PlanValues::store_rounded(std::span<const NodeId> ids) {
  for (const NodeId id : ids) fused_.rounded[at(id)] = true;
  is_exact_.clear();
  find_exact();
  place_direct_outputs();
}

void PlanValues::place(NodeId id) {
  if (parts_.contains(id)) return;
  if (sources_.contains(id) || (direct_outputs_.contains(id) && !readers_.contains(id))) return;
  const DType dtype = memory_dtype_of(id);
  sources_[id] = {steps_.temporary(dtype, graph_[id].shape), dtype};
}

bool PlanValues::is_stored_already(NodeId id) {
  const Node& node = graph_[id];
  if (node.prim != Prim::cast || is_block(node.dtype) || direct_outputs_.contains(id)) return false;
  const ValueView& view = fused_.views[at(node.inputs[0])];
  if (!is_dense(view) || view.offset != 0 || is_block(graph_[view.base].dtype)) return false;
  const StoredValue value = source(view.base);
  const bool is_float_pair = is_float(node.dtype) && is_float(graph_[node.inputs[0]].dtype);
  if (!is_float_pair || value.stored != memory_dtype_of(id)) return false;
  sources_[id] = value;
  return true;
}

Dense PlanValues::result_of(NodeId id) {
  const Node& node = graph_[id];
  place(id);
  if (const auto own = sources_.find(id); own != sources_.end()) return {own->second.slot, own->second.stored, node.shape};
  return {steps_.output_slot(direct_outputs_.at(id)[0]), node.dtype, node.shape};
}

Dense PlanValues::unrounded_result_of(NodeId id) {
  place(id);
  const DType dtype = compute_dtype(graph_[id].dtype);
  if (!sources_.contains(id) && dtype != graph_[id].dtype) sources_[id] = {steps_.temporary(dtype, graph_[id].shape), dtype};
  return result_of(id);
}

std::vector<StoredValue> PlanValues::targets(NodeId output) const {
  std::vector<StoredValue> all;
  if (const auto direct = direct_outputs_.find(output); direct != direct_outputs_.end())
    for (const std::size_t index : direct->second) all.push_back({steps_.output_slot(index), graph_[output].dtype});
  const auto own = sources_.find(output);
  if (own != sources_.end() && std::ranges::none_of(all, [&](const StoredValue& v) { return v.slot == own->second.slot; }))
    all.push_back(own->second);
  return all;
}

// --- Outputs of the graph ---

void PlanValues::deliver(NodeId id, const Dense& from) {
  const auto direct = direct_outputs_.find(id);
  if (direct == direct_outputs_.end()) return;
  for (const std::size_t index : direct->second) {
    const int slot = steps_.output_slot(index);
    if (slot == from.slot) continue;
    steps_.add(emit_copy(target_, from.shape, dense_access(from.slot, from.stored, from.shape),
                         dense_access(slot, graph_[id].dtype, from.shape)));
  }
}

void PlanValues::deliver_others() {
  for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
    const NodeId id = graph_.outputs()[i];
    const auto [dtype, shape] = steps_.output_types()[i];
    if (is_direct_[i] || shape.elements() == 0) continue;
    const int to = steps_.output_slot(i);
    if (!is_block(dtype)) {
      steps_.add(emit_copy(target_, shape, stored(id), dense_access(to, dtype, shape)));
    } else if (graph_[id].prim == Prim::input) {
      const auto place = std::find(graph_.inputs().begin(), graph_.inputs().end(), id) - graph_.inputs().begin();
      steps_.add(emit_byte_copy(target_, storage_bytes(dtype, shape), steps_.input_slot(at(place)), to));
    } else {
      steps_.add(emit_block_encode(target_, dtype, shape, dense(id).slot, to));
    }
  }
}

}  // namespace tenon

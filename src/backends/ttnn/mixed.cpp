#include "backends/ttnn/mixed.h"

#include <algorithm>
#include <set>

#include "backends/ttnn/functions.h"
#include "graph/view.h"

namespace tenon::ttnn {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

bool computes(const Node& node) {
  switch (node.prim) {
    case Prim::elementwise:
    case Prim::reduce:
    case Prim::matmul:
    case Prim::conv:
    case Prim::window:
    case Prim::cumulative:
    case Prim::region: return true;
    default: return false;
  }
}
bool only_moves(const Node& node) { return is_view(node.prim) || node.prim == Prim::concat || node.prim == Prim::pad; }

std::string op_name(const Node& node) {
  if (node.prim == Prim::elementwise) return std::string(elementwise_name(node.as<ElementwiseAttr>().op));
  if (node.prim == Prim::reduce) return std::string(name(node.as<ReduceAttr>().kind));
  if (node.prim == Prim::region) {
    const RegionAttr& attr = node.as<RegionAttr>();
    if (std::holds_alternative<SoftmaxAttr>(attr)) return "softmax";
    if (std::holds_alternative<AttentionAttr>(attr)) return "attention";
    return std::get<NormAttr>(attr).subtract_mean ? "layer_norm" : "rms_norm";
  }
  return std::string(name(node.prim));
}

class Partition {
 public:
  Partition(const Graph& graph, const FastRules& rules)
      : rules_(rules),
        lowered_(lower(
            graph, [&](const Graph& g, const Region& region) { return takes_region(g, region, rules); },
            rules.has_32_bit || rules.trust == Trust::limits ? Narrow::in_float32 : Narrow::each)) {}

  std::optional<MixedPlan> run(std::string* why) {
    find_live();
    choose_tiers(why);
    do find_levels();
    while (gives_up_idle_parts());
    if (std::ranges::none_of(all(), [&](NodeId id) { return is_fast(id); })) return std::nullopt;
    return made();
  }

 private:
  const Graph& graph() const { return lowered_.graph; }
  bool is_leaf(NodeId id) const { return graph()[id].prim == Prim::input || graph()[id].prim == Prim::constant; }
  std::vector<NodeId> all() const {
    std::vector<NodeId> ids;
    for (NodeId id = 0; id < graph().size(); ++id)
      if (live_[at(id)] && !is_leaf(id)) ids.push_back(id);
    return ids;
  }
  bool is_fast(NodeId id) const { return fast_[at(id)]; }

  void find_live() {
    live_.assign(at(graph().size()), false);
    for (const NodeId id : graph().outputs()) live_[at(id)] = true;
    for (NodeId id = graph().size() - 1; id >= 0; --id)
      if (live_[at(id)])
        for (const NodeId x : graph()[id].inputs) live_[at(x)] = true;
  }

  void choose_tiers(std::string* why) {
    fast_.assign(at(graph().size()), false);
    // Who only moves data goes with its readers.
    std::vector<bool> has_fast_reader(at(graph().size()), false), has_reader(at(graph().size()), false);
    for (NodeId id = graph().size() - 1; id >= 0; --id) {
      if (!live_[at(id)] || is_leaf(id)) continue;
      std::string reason = why_not_fast(lowered_, id, rules_);
      const bool follows =
          (only_moves(graph()[id]) || graph()[id].prim == Prim::cast) && has_reader[at(id)] && !has_fast_reader[at(id)];
      fast_[at(id)] = reason.empty() && !follows;
      if (!reason.empty() && why && computes(graph()[id])) *why = std::move(reason);
      for (const NodeId x : graph()[id].inputs) {
        has_reader[at(x)] = true;
        if (is_fast(id)) has_fast_reader[at(x)] = true;
      }
    }
  }

  // Parts are the levels: fast ones even, exact ones odd. A node is in the first level of its tier at which its inputs exist.
  void find_levels() {
    level_.assign(at(graph().size()), -1);
    for (const NodeId id : all()) {
      int level = is_fast(id) ? 0 : 1;
      for (const NodeId x : graph()[id].inputs)
        if (!is_leaf(x)) level = std::max(level, level_[at(x)] + (is_fast(x) == is_fast(id) ? 0 : 1));
      level_[at(id)] = level;
    }
  }
  // A part that computes nothing is not worth the way to another layout and back.
  bool gives_up_idle_parts() {
    std::map<int, bool> is_busy;
    for (const NodeId id : all())
      if (is_fast(id)) is_busy[level_[at(id)]] = is_busy[level_[at(id)]] || computes(graph()[id]);
    bool any = false;
    for (const NodeId id : all())
      if (is_fast(id) && !is_busy.at(level_[at(id)])) {
        fast_[at(id)] = false;
        any = true;
      }
    return any;
  }

  // --- The parts ---
  MixedPlan made() {
    MixedPlan plan;
    for (const NodeId id : graph().inputs()) {
      values_[id] = static_cast<int>(plan.values.size());
      plan.values.push_back(type_of(id));
    }
    plan.input_types = plan.values;
    int last = 0;
    for (const NodeId id : all()) last = std::max(last, level_[at(id)]);
    for (int level = 0; level <= last; ++level) add_part(plan, level);
    for (const NodeId id : graph().outputs()) {
      plan.output_types.push_back(type_of(id));
      if (!values_.contains(id)) add_constant_part(plan, id);
      plan.outputs.push_back(values_.at(id));
    }
    return plan;
  }
  TensorType type_of(NodeId id) const { return {graph()[id].dtype, graph()[id].shape}; }

  void add_part(MixedPlan& plan, int level) {
    std::vector<NodeId> nodes, inputs, outputs;
    for (const NodeId id : all())
      if (level_[at(id)] == level) nodes.push_back(id);
    if (nodes.empty()) return;
    const auto is_here = [&](NodeId id) { return !is_leaf(id) && level_[at(id)] == level; };
    std::set<NodeId> read, leaving;
    for (const NodeId id : nodes)
      for (const NodeId x : graph()[id].inputs)
        if (!is_here(x) && graph()[x].prim != Prim::constant) read.insert(x);
    for (const NodeId id : all())
      for (const NodeId x : graph()[id].inputs)
        if (is_here(x) && !is_here(id)) leaving.insert(x);
    for (const NodeId id : graph().outputs())
      if (is_here(id)) leaving.insert(id);
    inputs.assign(read.begin(), read.end());
    outputs.assign(leaving.begin(), leaving.end());
    PlanPart part{.is_fast = level % 2 == 0};
    if (part.is_fast)
      part.fast = plan_fast_part(lowered_, inputs, outputs, rules_);
    else
      part.exact = plan_exact(part_graph(nodes, inputs, outputs));
    finish(plan, std::move(part), inputs, outputs);
    for (const NodeId id : nodes)
      if (!only_moves(graph()[id]) && graph()[id].prim != Prim::cast)
        note(plan, level % 2 == 0 ? "fast" : "exact", op_name(graph()[id]));
  }
  // A result that depends on nothing.
  void add_constant_part(MixedPlan& plan, NodeId id) {
    PlanPart part;
    part.exact = plan_exact(part_graph({}, {}, {id}));
    finish(plan, std::move(part), {}, {id});
  }
  void finish(MixedPlan& plan, PlanPart part, const std::vector<NodeId>& inputs, const std::vector<NodeId>& outputs) {
    for (const NodeId id : inputs) part.inputs.push_back(values_.at(id));
    for (const NodeId id : outputs) {
      values_[id] = static_cast<int>(plan.values.size());
      part.outputs.push_back(values_[id]);
      plan.values.push_back(type_of(id));
    }
    plan.parts.push_back(std::move(part));
  }
  static void note(MixedPlan& plan, const char* tier, std::string op) {
    std::vector<std::string>& ops = plan.ops_by_tier[tier];
    if (std::ranges::find(ops, op) == ops.end()) ops.push_back(std::move(op));
  }

  Graph part_graph(const std::vector<NodeId>& nodes, const std::vector<NodeId>& inputs,
                   const std::vector<NodeId>& outputs) const {
    Graph part;
    std::map<NodeId, NodeId> renamed;
    for (const NodeId id : inputs) renamed[id] = part.input(fmt_name(renamed.size()), graph()[id].dtype, graph()[id].shape);
    const auto place = [&](NodeId id) {
      if (const auto known = renamed.find(id); known != renamed.end()) return known->second;
      return renamed[id] = part.append(graph()[id]);  // a constant
    };
    for (const NodeId id : nodes) {
      Node node = graph()[id];
      for (NodeId& x : node.inputs) x = place(x);
      renamed[id] = part.append(std::move(node));
    }
    std::vector<NodeId> results;
    for (const NodeId id : outputs) results.push_back(place(id));
    part.set_outputs(std::move(results));
    return part;
  }
  static std::string fmt_name(std::size_t number) { return "v" + std::to_string(number); }

  const FastRules rules_;
  const LoweredGraph lowered_;
  std::vector<bool> live_, fast_;
  std::vector<int> level_;
  std::map<NodeId, int> values_;
};

}  // namespace

std::string MixedPlan::tier() const {
  const bool has_fast = std::ranges::any_of(parts, &PlanPart::is_fast);
  const bool has_exact = std::ranges::any_of(parts, [](const PlanPart& part) { return !part.is_fast; });
  if (has_fast) return has_exact ? "mixed" : "fast";
  return "exact";
}

std::optional<MixedPlan> plan_mixed(const Graph& graph, const FastRules& rules, std::string* why) {
  return Partition(graph, rules).run(why);
}

MixedPlan plan_all_exact(const Graph& graph) {
  MixedPlan plan;
  PlanPart part;
  part.exact = plan_exact(graph);
  plan.values = plan.input_types = part.exact.input_types;
  plan.output_types = part.exact.output_types;
  for (std::size_t i = 0; i < plan.input_types.size(); ++i) part.inputs.push_back(static_cast<int>(i));
  for (const TensorType& type : plan.output_types) {
    plan.outputs.push_back(static_cast<int>(plan.values.size()));
    part.outputs.push_back(plan.outputs.back());
    plan.values.push_back(type);
  }
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph[id];
    if (node.prim == Prim::input || node.prim == Prim::constant || only_moves(node) || node.prim == Prim::cast) continue;
    std::vector<std::string>& ops = plan.ops_by_tier["exact"];
    if (std::string op = op_name(node); std::ranges::find(ops, op) == ops.end()) ops.push_back(std::move(op));
  }
  plan.parts.push_back(std::move(part));
  return plan;
}

}  // namespace tenon::ttnn

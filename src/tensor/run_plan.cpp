#include "tensor/run_plan.h"

#include <fmt/format.h>

#include <unordered_map>
#include <utility>

#include "manager/evaluate.h"
#include "tenon/error.h"

namespace tenon {
namespace {

// A graph is cut here, well before Graph::kMaxNodes: one op may add many nodes, and what compiles in a moment at this size takes
// much longer at ten times of it.
constexpr NodeId kCutNodes = 20'000;

[[noreturn]] void throw_without_value() {
  throw Error(ErrorCode::failed_precondition, "a placeholder has no value: it is an argument of a program that is being recorded",
              "use operations on tensors instead of the value, or compute this part outside of the recorded function");
}

// The graph under construction, the values it takes, and where the planned nodes are in it.
class Builder {
 public:
  Builder(std::vector<PlannedNode>& planned, DeviceManager& manager, const RunOptions& options, Evaluation& evaluation)
      : planned_(planned),
        manager_(manager),
        options_(options),
        evaluation_(evaluation),
        ids_(planned.size(), -1) {}

  void run() {
    for (std::size_t i = 0; i < planned_.size(); ++i) {
      add(i);
      for (const std::size_t input : planned_[i].inputs) --planned_[input].uses;
      if (graph_.size() >= kCutNodes && i + 1 < planned_.size()) cut(i);
    }
    finish();
  }

 private:
  NodeId add(std::size_t i) {
    PlannedNode& planned = planned_[i];
    const TensorNode& node = *planned.node;
    if (const auto* whole = std::get_if<std::int64_t>(&node.literal)) return ids_[i] = graph_.literal(*whole);
    if (const auto* real = std::get_if<double>(&node.literal)) return ids_[i] = graph_.literal(*real);
    if (planned.storage) return ids_[i] = add_input(planned);
    if (node.is_placeholder) throw_without_value();

    std::vector<NodeId>& results = results_[planned.expression.get()];
    if (results.empty()) {
      std::vector<NodeId> inputs;
      for (const std::size_t input : planned.inputs) inputs.push_back(ids_[input] >= 0 ? ids_[input] : add(input));
      results = planned.expression->build(graph_, inputs);
    }
    return ids_[i] = results.at(node.result);
  }

  NodeId add_input(const PlannedNode& planned) {
    const TensorType& type = planned.storage->type();
    // One input for one value, though several tensors have it.
    const auto [place, is_new] = inputs_.try_emplace(planned.storage.get(), -1);
    if (is_new) {
      place->second = graph_.input(fmt::format("x{}", values_.size()), type.dtype, type.shape);
      values_.push_back(planned.storage);
    }
    if (!planned.node->weak) return place->second;
    // A number that crosses a cut goes on without a type of its own.
    return graph_.append({Prim::cast, type.dtype, true, type.shape, {place->second}, {}});
  }

  // Runs what there is; what later nodes need of it becomes an input of theirs.
  void cut(std::size_t last) {
    std::vector<std::size_t> frontier;
    std::vector<NodeId> outputs;
    for (std::size_t i = 0; i <= last; ++i) {
      PlannedNode& planned = planned_[i];
      if (ids_[i] < 0 || planned.storage || planned.node->is_literal()) continue;
      if (!planned.is_target && planned.uses == 0) continue;
      frontier.push_back(i);
      outputs.push_back(planned.node->weak ? graph_.cast(ids_[i], planned.node->graph_dtype) : ids_[i]);
    }
    const std::vector<std::shared_ptr<Storage>> values = evaluate(outputs);
    for (std::size_t k = 0; k < frontier.size(); ++k) planned_[frontier[k]].storage = values[k];
    graph_ = {};
    values_.clear();
    inputs_.clear();
    results_.clear();
    ids_.assign(planned_.size(), -1);
  }

  void finish() {
    std::vector<std::size_t> targets;
    std::vector<NodeId> outputs;
    for (std::size_t i = 0; i < planned_.size(); ++i) {
      const PlannedNode& planned = planned_[i];
      if (!planned.is_target || (planned.storage && !planned.node->weak)) continue;
      targets.push_back(i);
      outputs.push_back(graph_.strong(ids_[i] >= 0 ? ids_[i] : add(i)));
    }
    const std::vector<std::shared_ptr<Storage>> values = evaluate(outputs);
    for (std::size_t k = 0; k < targets.size(); ++k) planned_[targets[k]].storage = values[k];
    for (const PlannedNode& planned : planned_)
      if (planned.is_target) planned.node->set_storage(planned.storage);
  }

  // The values of |outputs|, one for each: equal ids share one, and an input is its own value.
  std::vector<std::shared_ptr<Storage>> evaluate(std::span<const NodeId> outputs) {
    std::unordered_map<NodeId, std::shared_ptr<Storage>> known;
    for (std::size_t k = 0; k < values_.size(); ++k) known[graph_.inputs()[k]] = values_[k];
    std::vector<NodeId> wanted;
    for (const NodeId id : outputs)
      if (known.try_emplace(id).second) wanted.push_back(id);
    if (!wanted.empty()) {
      graph_.set_outputs(wanted);
      EvaluateResult result = tenon::evaluate(manager_, graph_, values_, options_);
      for (std::size_t k = 0; k < wanted.size(); ++k) known[wanted[k]] = std::move(result.outputs.at(k));
      evaluation_.device = std::move(result.device);
      for (Span& span : result.timeline) evaluation_.timeline.push_back(std::move(span));
      ++evaluation_.programs;
    }
    std::vector<std::shared_ptr<Storage>> values;
    for (const NodeId id : outputs) values.push_back(known.at(id));
    return values;
  }

  std::vector<PlannedNode>& planned_;
  DeviceManager& manager_;
  const RunOptions& options_;
  Evaluation& evaluation_;

  Graph graph_;
  std::vector<std::shared_ptr<Storage>> values_;  // of the graph's inputs
  std::unordered_map<const Storage*, NodeId> inputs_;
  std::unordered_map<const TensorExpression*, std::vector<NodeId>> results_;
  std::vector<NodeId> ids_;  // of the planned nodes; -1 for one that is not in the graph
};

PlannedNode look_at(const std::shared_ptr<TensorNode>& node) {
  PlannedNode planned{.node = node};
  TensorNode::State state = node->state();
  if (node->is_literal()) return planned;
  if (state.storage && !node->weak)
    planned.storage = std::move(state.storage);
  else
    planned.expression = std::move(state.expression);
  return planned;
}

}  // namespace

std::vector<PlannedNode> plan(std::span<const std::shared_ptr<TensorNode>> targets) {
  struct Visit {
    PlannedNode planned;
    std::size_t next_input = 0;
  };
  std::vector<PlannedNode> done;
  std::unordered_map<const TensorNode*, std::size_t> places;
  std::vector<Visit> open;
  for (const auto& target : targets) {
    if (!places.contains(target.get())) open.push_back({look_at(target)});
    while (!open.empty()) {
      Visit& visit = open.back();
      const auto* expression = visit.planned.expression.get();
      if (expression && visit.next_input < expression->inputs.size()) {
        const std::shared_ptr<TensorNode>& input = expression->inputs[visit.next_input];
        const auto place = places.find(input.get());
        if (place == places.end()) {
          open.push_back({look_at(input)});  // comes back to this input when it is done
          continue;
        }
        ++visit.next_input;
        visit.planned.inputs.push_back(place->second);
        ++done[place->second].uses;
        continue;
      }
      places.emplace(visit.planned.node.get(), done.size());
      done.push_back(std::move(visit.planned));
      open.pop_back();
    }
    done[places.at(target.get())].is_target = true;
  }
  return done;
}

void run_plan(std::vector<PlannedNode>& planned, DeviceManager& manager, const RunOptions& options, Evaluation& evaluation) {
  Builder(planned, manager, options, evaluation).run();
}

}  // namespace tenon

#include "tensor/run_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "manager/evaluate.h"
#include "tenon/error.h"
#include "tensor/program_cache.h"

namespace tenon {
namespace {

// A graph is cut here, well before Graph::kMaxNodes: one op may add many nodes, and what compiles in a moment at this size takes
// much longer at ten times of it.
constexpr NodeId kCutNodes = 20'000;

[[noreturn]] void throw_without_value() {
  throw Error(ErrorCode::failed_precondition, "an input of a program that is being recorded has no value",
              "use operations on tensors instead of the value, or compute this part outside of the recorded function");
}

void add_report(Evaluation* evaluation, EvaluateResult& result) {
  if (!evaluation) return;
  evaluation->device = result.owner->device();
  for (Span& span : result.timeline) evaluation->timeline.push_back(std::move(span));
  ++evaluation->programs;
}

// The graph under construction, the values it takes, and where the planned nodes are in it.
class Builder {
 public:
  Builder(TensorPlan& planned, DeviceManager& manager, const RunOptions& options, Evaluation* evaluation)
      : plan_(planned),
        manager_(manager),
        options_(options),
        evaluation_(evaluation),
        ids_(planned.nodes.size(), -1) {}

  void run() {
    for (std::size_t i = 0; i < plan_.nodes.size(); ++i) {
      if (!plan_.nodes[i].node->is_literal()) add(i);
      for (const std::uint32_t input : plan_.inputs(plan_.nodes[i])) --plan_.nodes[input].uses;
      if (graph_.size() >= kCutNodes && i + 1 < plan_.nodes.size()) cut(i);
    }
    finish();
  }

  // The whole program, if its outputs are exactly the targets in order; null if it was cut or has other outputs.
  std::shared_ptr<const Graph> program() { return is_plain_ ? std::make_shared<const Graph>(std::move(graph_)) : nullptr; }

 private:
  NodeId add(std::size_t i) {
    PlannedNode& planned = plan_.nodes[i];
    const TensorNode& node = *planned.node;
    if (const auto* whole = std::get_if<std::int64_t>(&node.literal)) return ids_[i] = graph_.literal(*whole);
    if (const auto* real = std::get_if<double>(&node.literal)) return ids_[i] = graph_.literal(*real);
    if (planned.storage) return ids_[i] = add_input(planned);
    if (node.is_program_input) throw_without_value();

    std::vector<NodeId>& results = results_[planned.expression.get()];
    if (results.empty()) {
      std::vector<NodeId> inputs;
      for (std::size_t k = 0; k < planned.operands; ++k) inputs.push_back(add_operand(planned, k));
      results = planned.expression->build(graph_, inputs);
    }
    return ids_[i] = results.at(node.result);
  }

  NodeId add_operand(const PlannedNode& planned, std::size_t k) {
    const std::uint32_t place = plan_.inputs(planned)[k];
    if (const std::optional<ScalarUse> use = scalar_use(plan_, planned, k)) {
      values_.push_back(Storage::from_host(plan_.nodes[place].node->literal_as(use->dtype)));
      return graph_.input(fmt::format("x{}", values_.size() - 1), use->dtype, {});
    }
    return ids_[place] >= 0 ? ids_[place] : add(place);
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
      PlannedNode& planned = plan_.nodes[i];
      if (ids_[i] < 0 || planned.storage || planned.node->is_literal()) continue;
      if (!planned.is_target && planned.uses == 0) continue;
      frontier.push_back(i);
      outputs.push_back(planned.node->weak ? graph_.cast(ids_[i], planned.node->graph_dtype) : ids_[i]);
    }
    const std::vector<std::shared_ptr<Storage>> values = evaluate(outputs);
    for (std::size_t k = 0; k < frontier.size(); ++k) plan_.nodes[frontier[k]].storage = values[k];
    graph_ = {};
    values_.clear();
    inputs_.clear();
    results_.clear();
    ids_.assign(plan_.nodes.size(), -1);
    was_cut_ = true;
  }

  void finish() {
    std::vector<std::size_t> targets;
    std::vector<NodeId> outputs;
    for (std::size_t i = 0; i < plan_.nodes.size(); ++i) {
      const PlannedNode& planned = plan_.nodes[i];
      if (!planned.is_target || (planned.storage && !planned.node->weak)) continue;
      targets.push_back(i);
      outputs.push_back(graph_.strong(ids_[i] >= 0 ? ids_[i] : add(i)));
    }
    const std::vector<std::shared_ptr<Storage>> values = evaluate(outputs);
    is_plain_ = !was_cut_ && std::ranges::equal(outputs, graph_.outputs());
    for (std::size_t k = 0; k < targets.size(); ++k) plan_.nodes[targets[k]].storage = values[k];
    for (const PlannedNode& planned : plan_.nodes)
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
      add_report(evaluation_, result);
    }
    std::vector<std::shared_ptr<Storage>> values;
    for (const NodeId id : outputs) values.push_back(known.at(id));
    return values;
  }

  TensorPlan& plan_;
  DeviceManager& manager_;
  const RunOptions& options_;
  Evaluation* const evaluation_;

  Graph graph_;
  std::vector<std::shared_ptr<Storage>> values_;  // of the graph's inputs
  std::unordered_map<const Storage*, NodeId> inputs_;
  std::unordered_map<const TensorExpression*, std::vector<NodeId>> results_;
  std::vector<NodeId> ids_;  // of the planned nodes; -1 for one that is not in the graph
  bool was_cut_ = false, is_plain_ = false;
};

PlannedNode look_at(TensorNode& node) {
  PlannedNode planned{.node = &node};
  if (node.is_literal()) return planned;
  TensorNode::State state = node.state();
  if (state.storage && !node.weak)
    planned.storage = std::move(state.storage);
  else
    planned.expression = std::move(state.expression);
  return planned;
}

// The places of nodes in a plan: open addressing, as lookups are a good part of planning. Reused by the thread.
class Places {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  void clear() {
    if (slots_.empty()) slots_.resize(16);
    for (Slot& slot : slots_) slot = {};
    count_ = 0;
  }
  std::uint32_t find(const TensorNode* node) const { return slots_[slot_of(node)].place; }
  void add(const TensorNode* node, std::uint32_t place) {
    if (2 * ++count_ > slots_.size()) grow();
    slots_[slot_of(node)] = {node, place};
  }
  // A large plan does not make every later one slow.
  void shrink() {
    if (slots_.size() > 128) decltype(slots_)().swap(slots_);
  }

 private:
  struct Slot {
    const TensorNode* node = nullptr;
    std::uint32_t place = kNone;
  };
  std::size_t slot_of(const TensorNode* node) const {
    const auto address = reinterpret_cast<std::uintptr_t>(node);
    std::size_t at = (address >> 4) * 0x9E3779B97F4A7C15u >> 20;
    for (at &= slots_.size() - 1; slots_[at].node != nullptr && slots_[at].node != node;) at = (at + 1) & (slots_.size() - 1);
    return at;
  }
  void grow() {
    std::vector<Slot> before(2 * slots_.size());
    before.swap(slots_);
    for (const Slot& slot : before)
      if (slot.node) slots_[slot_of(slot.node)] = slot;
  }

  std::vector<Slot> slots_;
  std::size_t count_ = 0;
};

}  // namespace

TensorPlan plan(std::span<const std::shared_ptr<TensorNode>> targets) {
  struct Visit {
    PlannedNode planned;
    std::uint32_t next_input = 0;
  };
  thread_local Places places;
  thread_local std::vector<std::uint32_t> waiting;  // operands of open visits, innermost last
  thread_local std::vector<Visit> open;
  places.clear();
  waiting.clear();
  open.clear();
  constexpr std::size_t kFew = 8;  // nodes of a small plan
  TensorPlan done;
  done.nodes.reserve(kFew);
  done.operands.reserve(kFew);
  for (const auto& target : targets) {
    if (places.find(target.get()) == Places::kNone) open.push_back({look_at(*target)});
    while (!open.empty()) {
      Visit& visit = open.back();
      const auto* expression = visit.planned.expression.get();
      if (expression && visit.next_input < expression->inputs.size()) {
        TensorNode& input = *expression->inputs[visit.next_input];
        std::uint32_t place = places.find(&input);
        if (place == Places::kNone) {
          PlannedNode planned = look_at(input);
          if (planned.expression) {
            open.push_back({std::move(planned)});  // comes back to this input when it is done
            continue;
          }
          place = static_cast<std::uint32_t>(done.nodes.size());
          places.add(&input, place);
          done.nodes.push_back(std::move(planned));
        }
        ++visit.next_input;
        waiting.push_back(place);
        ++done.nodes[place].uses;
        continue;
      }
      PlannedNode& planned = visit.planned;
      planned.first_operand = static_cast<std::uint32_t>(done.operands.size());
      planned.operands = visit.next_input;
      done.operands.insert(done.operands.end(), waiting.end() - visit.next_input, waiting.end());
      waiting.resize(waiting.size() - visit.next_input);
      places.add(planned.node, static_cast<std::uint32_t>(done.nodes.size()));
      done.nodes.push_back(std::move(planned));
      open.pop_back();
    }
    done.nodes[places.find(target.get())].is_target = true;
  }
  places.shrink();
  if (open.capacity() > 128) std::vector<Visit>().swap(open);
  return done;
}

namespace {

struct KnownProgram {
  std::optional<GraphKey> structure;
  std::shared_ptr<const Graph> graph;  // null: it has to be built
};

// Decides whether the numbers of the plan are constants or inputs: constants, unless the same structure came with others before.
KnownProgram known_program(TensorPlan& planned) {
  ProgramCache& cache = ProgramCache::instance();
  const std::optional<GraphKey> exact = structure_of(planned);
  if (!exact) return {};
  if (std::shared_ptr<const Graph> graph = cache.find(*exact)) return {exact, std::move(graph)};
  planned.numbers_are_inputs = true;
  const GraphKey general = structure_of(planned).value_or(*exact);
  if (general != *exact && cache.meet(general)) return {general, cache.find(general)};
  planned.numbers_are_inputs = false;
  return {exact, nullptr};
}

}  // namespace

void run_plan(TensorPlan& planned, DeviceManager& manager, const RunOptions& options, Evaluation* evaluation) {
  const KnownProgram known = known_program(planned);
  if (!known.graph) {
    Builder builder(planned, manager, options, evaluation);
    builder.run();
    if (known.structure)
      if (std::shared_ptr<const Graph> program = builder.program())
        ProgramCache::instance().keep(*known.structure, std::move(program));
    return;
  }
  const std::vector<std::shared_ptr<Storage>> arguments = arguments_of(planned);
  const auto set_results = [&](std::vector<std::shared_ptr<Storage>>& values) {
    std::size_t next = 0;
    for (const PlannedNode& node : planned.nodes)
      if (node.is_target) node.node->set_storage(std::move(values.at(next++)));
  };
  if (!evaluation)
    if (auto values = evaluate_at_once(manager, *known.graph, arguments, options)) return set_results(*values);
  EvaluateResult result = evaluate(manager, *known.graph, arguments, options);
  set_results(result.outputs);
  add_report(evaluation, result);
}

}  // namespace tenon

#include "codegen/c/rows/passes.h"

#include <algorithm>

#include "ops/elementwise/elementwise.h"

namespace tenon::emit {

RowsPasses::RowsPasses(const KernelTarget& target, const GroupReader& reader, int per_lane)
    : reader_(reader),
      graph_(reader.graph()),
      group_(reader.group()) {
  find_levels();
  // A stack of a few KiB has no room for rows.
  if (target.dialect != Dialect::tensix) find_kept(target.is_cpu, per_lane);
}

void RowsPasses::find_levels() {
  for (NodeId id : group_.nodes) {
    int level = 0;
    for (NodeId operand : graph_[id].inputs)
      if (const auto member = reader_.member(operand)) level = std::max(level, levels_.at(*member));
    if (graph_[id].prim == Prim::reduce) ++level;
    levels_[id] = level;
    last_ = std::max(last_, level);
  }
}

std::vector<NodeId> RowsPasses::goals_of(int pass) const {
  std::vector<NodeId> goals;
  for (NodeId id : group_.nodes)
    if (graph_[id].prim == Prim::reduce && levels_.at(id) == pass + 1) goals.push_back(id);
  for (NodeId id : group_.outputs)
    if (!reader_.is_row(id) && levels_.at(id) == pass) goals.push_back(id);
  return goals;
}

std::set<NodeId> RowsPasses::needed_in(int pass) const {
  std::set<NodeId> needed;
  std::vector<NodeId> stack;
  const auto visit = [&](NodeId operand) {
    if (const auto member = reader_.member(operand)) {
      if (!reader_.is_row(*member)) stack.push_back(*member);
    } else if (!reader_.is_number(operand)) {
      const int external = reader_.external_index(operand);
      if (!reader_.externals()[static_cast<std::size_t>(external)].is_row) stack.push_back(~external);
    }
  };
  for (NodeId goal : goals_of(pass)) {
    if (graph_[goal].prim == Prim::reduce)
      visit(graph_[goal].inputs[0]);
    else
      stack.push_back(goal);
  }
  while (!stack.empty()) {
    const NodeId value = stack.back();
    stack.pop_back();
    if (!needed.insert(value).second || value < 0 || is_kept_before(pass, value)) continue;
    for (NodeId operand : graph_[value].inputs) visit(operand);
  }
  return needed;
}

bool RowsPasses::is_kept_from(int pass, NodeId value) const {
  const auto found = kept_.find(value);
  return found != kept_.end() && found->second == pass;
}

bool RowsPasses::is_kept_before(int pass, NodeId value) const {
  const auto found = kept_.find(value);
  return found != kept_.end() && found->second < pass;
}

int RowsPasses::most_kept() const {
  int most = 0;
  for (int pass = 0; pass < last_; ++pass) {
    int live = 0;
    for (const auto& [value, first] : kept_) {
      bool is_read = false;
      for (int later = pass + 1; later <= last_; ++later) is_read = is_read || needed_in(later).contains(value);
      live += first <= pass && is_read;
    }
    most = std::max(most, live);
  }
  return most;
}

// Worth keeping on a processor, where reading the inputs again costs little: what takes long to compute.
bool RowsPasses::is_expensive(NodeId member) const {
  const Node& node = graph_[member];
  if (node.prim != Prim::elementwise) return false;
  if (!is_arithmetic(node.as<ElementwiseAttr>().op)) return true;
  return std::ranges::any_of(node.inputs, [&](NodeId operand) {
    const auto behind = reader_.member(operand);
    return behind && !reader_.is_row(*behind) && is_expensive(*behind);
  });
}

void RowsPasses::find_kept(bool is_cpu, int per_lane) {
  if (!is_cpu && per_lane > kMostKept) return;
  std::map<NodeId, int> first;  // computed in which pass for the first time
  int registers = 0;
  for (int pass = 0; pass <= last_; ++pass) {
    const std::set<NodeId> needed = needed_in(pass);
    const std::vector<NodeId> goals = goals_of(pass);
    // What an earlier pass computed and this one reads directly is kept; what lies behind it is not needed again.
    const auto keep = [&](NodeId value) {
      if (!first.contains(value) || first[value] == pass || kept_.contains(value)) return;
      if (is_cpu && (value < 0 || !is_expensive(value))) return;
      if (!is_cpu && (registers += per_lane) > 64) return;
      kept_[value] = first[value];
    };
    // From users to operands: an operand of something kept is only kept if something else reads it.
    for (auto value = needed.rbegin(); value != needed.rend(); ++value) {
      bool is_read = std::ranges::any_of(
          goals, [&](NodeId g) { return g == *value || (graph_[g].prim == Prim::reduce && reads(g, *value)); });
      for (NodeId user : needed) is_read = is_read || (user >= 0 && !is_kept_before(pass, user) && reads(user, *value));
      if (is_read) keep(*value);
    }
    for (NodeId value : needed) first.try_emplace(value, pass);
  }
}

bool RowsPasses::reads(NodeId user, NodeId value) const {
  return std::ranges::any_of(graph_[user].inputs, [&](NodeId operand) {
    if (const auto member = reader_.member(operand)) return *member == value;
    return value < 0 && reader_.external_index(operand) == ~value;
  });
}

}  // namespace tenon::emit

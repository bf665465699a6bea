// GroupView: questions about the nodes of a fused group that compiling a Loop asks again and again.
#pragma once

#include <algorithm>
#include <map>
#include <optional>

#include "graph/optimize/fusion.h"
#include "tenon/graph.h"

namespace tenon::cpu {

class GroupView {
 public:
  GroupView(const Graph& graph, const Plan& plan, int group)
      : graph_(graph),
        plan_(plan),
        index_(group),
        group_(plan.groups[static_cast<std::size_t>(group)]) {
    for (NodeId id : group_.nodes)
      for (NodeId operand : graph_[id].inputs)
        if (const auto m = member(operand)) ++uses_[*m];
  }

  const Group& group() const { return group_; }
  std::optional<NodeId> member(NodeId operand) const { return member_behind(graph_, plan_, index_, operand); }
  // How often members read it.
  int uses(NodeId id) const {
    const auto found = uses_.find(id);
    return found == uses_.end() ? 0 : found->second;
  }
  bool is_output(NodeId id) const { return std::find(group_.outputs.begin(), group_.outputs.end(), id) != group_.outputs.end(); }
  bool is_op(NodeId id, ElementwiseOp op) const {
    const Node& node = graph_[id];
    return node.prim == Prim::elementwise && node.as<ElementwiseAttr>().op == op;
  }
  // A member that one other reads, and nobody else.
  bool is_used_once(NodeId id) const {
    return plan_.group_of[static_cast<std::size_t>(id)] == index_ && uses(id) == 1 && !is_output(id);
  }
  // One value per row.
  bool is_row(NodeId node) const {
    if (group_.kind != Group::Kind::rows) return false;
    return graph_[node].prim == Prim::reduce || !(graph_[node].shape == group_.domain);
  }
  // The member that |operand| is, if it has one value per row where others have a row of them.
  std::optional<NodeId> row_member(NodeId operand) const {
    const auto m = member(operand);
    if (!m || !is_row(*m) || graph_[*m].shape == group_.domain) return std::nullopt;
    return m;
  }
  // An operand from outside the group that has one value for all of the axis |axis| of the domain.
  bool repeats_along(NodeId operand, int axis) const {
    if (member(operand)) return false;
    return graph_[operand].shape[axis] == 1 ||
           plan_.views[static_cast<std::size_t>(operand)].strides[static_cast<std::size_t>(axis)] == 0;
  }
  bool is_constant(NodeId operand) const {
    return graph_[plan_.views[static_cast<std::size_t>(operand)].base].prim == Prim::constant;
  }
  // Computed for every element.
  bool is_whole(NodeId id) const { return !is_row(id) && graph_[id].shape == group_.domain; }

 private:
  const Graph& graph_;
  const Plan& plan_;
  const int index_;
  const Group& group_;
  std::map<NodeId, int> uses_;
};

}  // namespace tenon::cpu

#include "graph/optimize/fusion.h"

#include <algorithm>
#include <numeric>

#include "tenon/error.h"

namespace tenon {
namespace {

std::size_t at(NodeId i) { return static_cast<std::size_t>(i); }

bool can_be_member(const Node& node) {
  if (node.prim == Prim::elementwise || node.prim == Prim::reduce) return true;
  // A cast to a block format reads 16 adjacent elements at once, so it is a separate step.
  return node.prim == Prim::cast && !is_block(node.dtype);
}

// Whether the axes with an extent other than 1 are the last ones of |shape|.
bool is_trailing(AxisSet axes, const Shape& shape) {
  bool inside = true;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    if (shape[axis] == 1) continue;
    const bool reduced = axes & (1u << axis);
    if (reduced && !inside) return false;
    inside = inside && reduced;
  }
  return true;
}

std::int64_t extent_of(AxisSet axes, const Shape& shape) {
  std::int64_t count = 1;
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (axes & (1u << axis)) count *= shape[axis];
  return count;
}

// Whether |a| and |b| reduce the same axes of |shape|, ignoring extents of 1.
bool same_reduction(AxisSet a, AxisSet b, const Shape& shape) {
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (shape[axis] != 1 && ((a ^ b) & (1u << axis))) return false;
  return true;
}

class Fuser {
 public:
  Fuser(const Graph& graph, const FusionLimits& limits) : graph_(graph), limits_(limits) {
    plan_.group_of.assign(at(graph.size()), -1);
    plan_.views.resize(at(graph.size()));
    copied_.assign(at(graph.size()), false);
    find_rounded_products();
    seen_.assign(at(graph.size()), 0);
    cuts_.resize(at(graph.size()));
    std::iota(cuts_.begin(), cuts_.end(), NodeId{0});
  }

  Plan run() {
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_[id];
      resolve_view(id);
      if (is_rounded_product(id)) continue;
      if (node.prim == Prim::reduce)
        place_reduce(id);
      else if (can_be_member(node))
        place_elementwise(id);
    }
    find_outputs();
    order_steps();
    return std::move(plan_);
  }

 private:
  void find_rounded_products() {
    plan_.rounded.assign(at(graph_.size()), false);
    std::vector<int> readers(at(graph_.size()), 0);
    for (NodeId id = 0; id < graph_.size(); ++id)
      for (NodeId operand : graph_[id].inputs) ++readers[at(operand)];
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_[id];
      if (!is_rounding(graph_, node) || is_block(node.dtype)) continue;
      const NodeId source = node.inputs[0];
      const Prim prim = graph_[source].prim;
      if ((prim == Prim::matmul || prim == Prim::conv || prim == Prim::region) && readers[at(source)] == 1)
        plan_.rounded[at(source)] = true;
    }
  }

  // Whether |id| is the rounding that the step of its product does.
  bool is_rounded_product(NodeId id) const { return is_rounding(graph_, graph_[id]) && plan_.rounded[at(graph_[id].inputs[0])]; }

  void resolve_view(NodeId id) {
    const Node& node = graph_[id];
    plan_.views[at(id)] = is_rounded_product(id) ? plan_.views[at(node.inputs[0])] : whole_view(id, node.shape);
    if (!is_view(node.prim)) return;
    if (const auto view = view_through(node, plan_.views[at(node.inputs[0])]))
      plan_.views[at(id)] = *view;
    else
      copied_[at(id)] = true;
  }

  Group& group(int g) { return plan_.groups[static_cast<std::size_t>(g)]; }

  std::optional<NodeId> member(int g, NodeId operand) const { return member_behind(graph_, plan_, g, operand); }

  // The groups that produce an operand of |id|, directly or through a broadcast inside the group.
  std::vector<int> candidate_groups(NodeId id) const {
    std::vector<int> groups;
    for (NodeId operand : graph_[id].inputs) {
      const NodeId base = plan_.views[at(operand)].base;
      const int g = plan_.group_of[at(base)];
      if (g >= 0 && member(g, operand) && std::find(groups.begin(), groups.end(), g) == groups.end()) groups.push_back(g);
    }
    return groups;
  }

  bool has_room(int g) const {
    return static_cast<int>(plan_.groups[static_cast<std::size_t>(g)].nodes.size()) < limits_.max_nodes;
  }

  // True if |start| depends on group |target|, with each group counted as one node. Very large searches give up and return
  // true, which may prevent a fusion but never affects correctness.
  bool reaches(NodeId start, int target) {
    constexpr int kMaxVisits = 20'000;
    int visits = 0;
    std::vector<NodeId>& stack = search_stack_;
    stack.assign(1, start);
    const NodeId cut = last_cut(group(target).nodes.front());
    while (!stack.empty()) {
      const NodeId id = stack.back();
      stack.pop_back();
      if (id < cut || seen_[at(id)] == search_) continue;
      if (++visits > kMaxVisits) return true;
      const int g = plan_.group_of[at(id)];
      if (g == target) return true;
      if (g < 0) {
        seen_[at(id)] = search_;
        stack.insert(stack.end(), graph_[id].inputs.begin(), graph_[id].inputs.end());
        continue;
      }
      for (NodeId n : group(g).nodes) {
        seen_[at(n)] = search_;
        stack.insert(stack.end(), graph_[n].inputs.begin(), graph_[n].inputs.end());
      }
    }
    return false;
  }

  // The last node up to |id| that no group reaches across: nodes before it depend on nothing from it on, so that no search has to
  // follow them. Without this, planning takes time that grows with the square of a chain's length.
  NodeId last_cut(NodeId id) {
    while (cuts_[at(id)] != id) id = cuts_[at(id)] = cuts_[at(cuts_[at(id)])];
    return id;
  }
  // A group reaches from |first| to |last|.
  void cover(NodeId first, NodeId last) {
    for (NodeId id = last_cut(last); id > first; id = last_cut(id)) cuts_[at(id)] = id - 1;
  }

  bool operands_allow(NodeId id, int g) {
    ++search_;
    for (NodeId operand : graph_[id].inputs) {
      if (const auto m = member(g, operand)) {
        // Reads inside the group: domain to domain, row to row, or (broadcast) row to domain.
        if (group(g).kind == Group::Kind::reduction && graph_[*m].prim == Prim::reduce) return false;
        continue;
      }
      if (reaches(operand, g)) return false;
    }
    return true;
  }

  bool fits_domain(int g, const Shape& shape) {
    const Group& candidate = group(g);
    if (shape == candidate.domain) return true;
    return candidate.kind == Group::Kind::rows && shape == candidate.row_shape();
  }

  void join(NodeId id, int g) {
    group(g).nodes.push_back(id);
    plan_.group_of[at(id)] = g;
    cover(group(g).nodes.front(), id);
  }

  int new_group(Group::Kind kind, const Shape& domain, AxisSet reduced) {
    plan_.groups.push_back({kind, domain, reduced, {}, {}});
    return static_cast<int>(plan_.groups.size()) - 1;
  }

  void place_elementwise(NodeId id) {
    const Shape& shape = graph_[id].shape;
    int home = -1;
    for (int g : candidate_groups(id)) {
      if (home < 0) {
        if (has_room(g) && fits_domain(g, shape) && operands_allow(id, g)) {
          home = g;
          join(id, g);
        }
      } else {
        merge(home, g);
      }
    }
    if (home < 0) join(id, new_group(Group::Kind::elementwise, shape, 0));
  }

  std::int64_t longest_row(AxisSet axes, const Shape& domain) const {
    const bool are_many = domain.elements() / std::max<std::int64_t>(extent_of(axes, domain), 1) >= limits_.many_rows;
    return are_many ? std::max(limits_.max_row, limits_.max_row_of_many) : limits_.max_row;
  }

  void place_reduce(NodeId id) {
    const Node& node = graph_[id];
    const AxisSet axes = node.as<ReduceAttr>().axes;
    const Shape domain = graph_[node.inputs[0]].shape;
    const bool row = is_trailing(axes, domain) && extent_of(axes, domain) <= longest_row(axes, domain);
    const Group::Kind kind = row ? Group::Kind::rows : Group::Kind::reduction;
    for (int g : candidate_groups(id)) {
      Group& candidate = group(g);
      if (!has_room(g) || candidate.domain != domain || !operands_allow(id, g)) continue;
      if (candidate.kind == Group::Kind::elementwise) {
        candidate.kind = kind;
        candidate.reduced = axes;
      }
      if (candidate.kind == kind && same_reduction(candidate.reduced, axes, domain)) return join(id, g);
    }
    join(id, new_group(kind, domain, axes));
  }

  // Merges two groups over one domain if neither depends on the other through nodes outside.
  void merge(int into, int from) {
    Group& a = group(into);
    Group& b = group(from);
    if (into == from || a.domain != b.domain) return;
    if (static_cast<int>(a.nodes.size() + b.nodes.size()) > limits_.max_nodes) return;
    const bool compatible = a.kind == Group::Kind::elementwise || b.kind == Group::Kind::elementwise ||
                            (a.kind == b.kind && same_reduction(a.reduced, b.reduced, a.domain));
    if (!compatible || a.kind == Group::Kind::reduction || b.kind == Group::Kind::reduction) return;
    if (depends(into, from) || depends(from, into)) return;
    if (a.kind == Group::Kind::elementwise) {
      a.kind = b.kind;
      a.reduced = b.reduced;
    }
    for (NodeId n : b.nodes) plan_.group_of[at(n)] = into;
    a.nodes.insert(a.nodes.end(), b.nodes.begin(), b.nodes.end());
    std::sort(a.nodes.begin(), a.nodes.end());
    b.nodes.clear();
    cover(a.nodes.front(), a.nodes.back());
  }

  // True if group |g| depends indirectly on group |other|, except through values that it could read inside a merged group.
  bool depends(int g, int other) {
    ++search_;
    for (NodeId n : group(g).nodes)
      for (NodeId operand : graph_[n].inputs) {
        if (plan_.group_of[at(operand)] == g || member(other, operand) || member(g, operand)) continue;
        if (reaches(operand, other)) return true;
      }
    return false;
  }

  void find_outputs() {
    std::vector<bool> needed(at(graph_.size()), false);
    const auto need = [&](NodeId operand, int reader) {
      const NodeId base = plan_.views[at(operand)].base;
      const int g = plan_.group_of[at(base)];
      if (g < 0) return;
      if (g == reader && member(g, operand)) return;
      needed[at(base)] = true;
    };
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_[id];
      if ((is_view(node.prim) && !copied_[at(id)]) || is_rounded_product(id)) continue;
      for (NodeId operand : node.inputs) need(operand, plan_.group_of[at(id)]);
    }
    for (NodeId id : graph_.outputs()) need(id, -1);
    for (Group& g : plan_.groups)
      for (NodeId n : g.nodes)
        if (needed[at(n)]) g.outputs.push_back(n);
  }

  // Depth-first over units (groups and single nodes); each unit comes after everything it reads.
  void order_steps() {
    std::vector<bool> node_done(at(graph_.size()), false), group_done(plan_.groups.size(), false);
    std::vector<std::pair<NodeId, bool>> stack;  // node, and whether its operands were visited
    const auto finish = [&](NodeId id) {
      const int g = plan_.group_of[at(id)];
      if (g >= 0) {
        if (group_done[static_cast<std::size_t>(g)]) return;
        group_done[static_cast<std::size_t>(g)] = true;
        for (NodeId n : group(g).nodes) node_done[at(n)] = true;
        plan_.steps.push_back({g, -1});
        return;
      }
      if (node_done[at(id)]) return;
      node_done[at(id)] = true;
      const Prim prim = graph_[id].prim;
      if (prim == Prim::input || prim == Prim::constant || (is_view(prim) && !copied_[at(id)]) || is_rounded_product(id)) return;
      plan_.steps.push_back({-1, id});
    };
    for (NodeId root : graph_.outputs()) {
      stack.push_back({root, false});
      while (!stack.empty()) {
        auto [id, expanded] = stack.back();
        stack.pop_back();
        if (node_done[at(id)]) continue;
        if (expanded) {
          finish(id);
          continue;
        }
        stack.push_back({id, true});
        const int g = plan_.group_of[at(id)];
        if (g >= 0) {
          for (NodeId n : group(g).nodes)
            for (NodeId in : graph_[n].inputs)
              if (plan_.group_of[at(in)] != g && !member(g, in) && !node_done[at(in)]) stack.push_back({in, false});
        } else {
          for (NodeId in : graph_[id].inputs)
            if (!node_done[at(in)]) stack.push_back({in, false});
        }
      }
    }
  }

  const Graph& graph_;
  const FusionLimits limits_;
  Plan plan_;
  std::vector<bool> copied_;
  std::vector<NodeId> search_stack_;
  std::vector<std::uint32_t> seen_;  // by node: the last search that met it
  std::vector<NodeId> cuts_;         // by node: itself if it is a cut, else a node before it that is nearer to one
  std::uint32_t search_ = 0;
};

}  // namespace

Shape Group::row_shape() const {
  Shape shape = domain;
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (reduced & (1u << axis)) shape = shape.with(axis, 1);
  return shape;
}

std::optional<NodeId> member_behind(const Graph& graph, const Plan& plan, int group, NodeId operand) {
  const Group& g = plan.groups[static_cast<std::size_t>(group)];
  if (plan.group_of[at(operand)] == group) return operand;
  if (g.kind != Group::Kind::rows || !(graph[operand].shape == g.domain)) return std::nullopt;
  // A row value broadcast over the domain; with a single row, any chain of views of it is one.
  const Node& node = graph[operand];
  if (node.prim == Prim::broadcast && plan.group_of[at(node.inputs[0])] == group && graph[node.inputs[0]].shape == g.row_shape())
    return node.inputs[0];
  const ValueView& view = plan.views[at(operand)];
  if (plan.group_of[at(view.base)] == group && graph[view.base].shape.elements() == 1 && g.row_shape().elements() == 1)
    return view.base;
  return std::nullopt;
}

DType memory_dtype(const Graph& graph, const Plan& plan, NodeId id) {
  const Node& node = graph[id];
  const bool is_exact = !is_block(node.dtype) && (node.prim == Prim::cast || plan.rounded[at(id)]);
  return is_exact ? node.dtype : compute_dtype(node.dtype);
}

Plan fuse(const Graph& graph, const FusionLimits& limits) { return Fuser(graph, limits).run(); }

}  // namespace tenon

#include "hal/kernel_plan/absorbed.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "codegen/c/attention/attention.h"
#include "ops/elementwise/elementwise.h"

namespace tenon {

using namespace emit;

namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// Where emit_few_rows() is likely to take it; if it does not, the group runs as before, in a kernel of its own.
bool has_few_rows(const Graph& graph, const Node& node) {
  constexpr std::int64_t kMost = 4, kLeastColumns = 64;
  return node.prim == Prim::matmul && node.shape.rank() == 2 && node.shape[0] >= 1 && node.shape[0] <= kMost &&
         node.shape[1] >= kLeastColumns && node.as<MatMulAttr>().transpose_b && !node.as<MatMulAttr>().transpose_a &&
         graph[node.inputs[1]].prim == Prim::input;
}

class Finder {
 public:
  Finder(const Graph& graph, const Plan& fused)
      : graph_(graph),
        fused_(fused),
        reads_(at(graph.size()), 0),
        uses_(at(graph.size()), 0) {
    for (const Step& step : fused.steps) {
      if (step.group < 0) {
        for (const NodeId operand : graph[step.node].inputs) ++reads_[at(base_of(operand))];
        continue;
      }
      for (const NodeId id : fused.groups[at(step.group)].nodes)
        for (const NodeId operand : graph[id].inputs)
          if (!member_behind(graph, fused, step.group, operand)) ++reads_[at(base_of(operand))];
    }
    for (const NodeId id : graph.outputs()) ++reads_[at(base_of(id))];
    for (NodeId id = 0; id < graph.size(); ++id)
      for (const NodeId operand : graph[id].inputs) ++uses_[at(operand)];
    for (const NodeId id : graph.outputs()) ++uses_[at(id)];
  }

  const ValueView& view(NodeId id) const { return fused_.views[at(id)]; }
  NodeId base_of(NodeId id) const { return view(id).base; }
  int reads(NodeId base) const { return reads_[at(base)]; }

  // The nodes of group |index| to move if |id| is the sum of a product of few rows, which nothing else reads, and of something
  // from outside the group: a cast of the product, and |id|.
  std::vector<NodeId> sum_with_product(NodeId id, int index) const {
    const Node& node = graph_[id];
    if (node.prim != Prim::elementwise || node.as<ElementwiseAttr>().op != ElementwiseOp::Add || node.dtype != DType::f32 ||
        !(node.shape == fused_.groups[at(index)].domain))
      return {};
    for (const std::size_t k : {std::size_t{0}, std::size_t{1}}) {
      if (member_behind(graph_, fused_, index, node.inputs[1 - k])) continue;
      std::vector<NodeId> nodes;
      NodeId operand = node.inputs[k];
      if (graph_[operand].prim == Prim::cast && fused_.group_of[at(operand)] == index && uses_[at(operand)] == 1) {
        nodes.push_back(operand);
        operand = graph_[operand].inputs[0];
      }
      const NodeId base = base_of(operand);
      if (!has_few_rows(graph_, graph_[base]) || reads(base) != 1 || !is_whole(operand)) continue;
      nodes.push_back(id);
      return nodes;
    }
    return {};
  }
  bool is_whole(NodeId id) const {
    const ValueView& v = view(id);
    return is_dense(v) && v.offset == 0 && v.shape.elements() == graph_[v.base].shape.elements();
  }

  // An iota that only elementwise groups read is in no memory: emit_map() computes its elements, the kernels that absorb a group
  // would load them.
  bool reads_iota(const Group& group) const {
    return std::ranges::any_of(group.nodes, [&](NodeId id) {
      return std::ranges::any_of(graph_[id].inputs, [&](NodeId in) { return graph_[base_of(in)].prim == Prim::iota; });
    });
  }

  // The group that computes the queries [n, heads, 1, width] of attention for nothing else, as [n, heads, parts, width / parts].
  int queries_of(const Node& attention) const {
    const NodeId q = attention.inputs[0];
    const Shape& shape = graph_[q].shape;
    const NodeId base = base_of(q);
    const int index = fused_.group_of[at(base)];
    if (index < 0 || shape[2] != 1 || graph_[q].dtype != DType::f32 || attention.dtype != DType::f32) return -1;
    if (!has_few_queries(shape, graph_[attention.inputs[1]].shape, graph_[attention.inputs[2]].shape)) return -1;
    const Group& group = fused_.groups[at(index)];
    const bool fits = group.domain.rank() == 4 && group.domain[0] == shape[0] && group.domain[1] == shape[1] &&
                      group.domain[2] * group.domain[3] == shape[3];
    if (reads_iota(group)) return -1;
    const bool is_only = group.kind == Group::Kind::elementwise && group.outputs == std::vector{base} && reads(base) == 1;
    return fits && is_only && is_whole(q) ? index : -1;
  }

  // The group that renews the last keys and values of attention, if nothing reads them before.
  std::optional<RenewedKeys> renewed_keys_of(NodeId id) const {
    const Node& attention = graph_[id];
    const Shape& q = graph_[attention.inputs[0]].shape;
    const NodeId whole[]{attention.inputs[1], attention.inputs[2]};
    if (whole[0] == whole[1] || attention.dtype != DType::f32 || q[2] != 1 ||
        !has_few_queries(q, graph_[whole[0]].shape, graph_[whole[1]].shape))
      return std::nullopt;
    for (const NodeId part : whole)
      if (graph_[part].prim != Prim::concat || graph_[part].inputs.size() != 2 || graph_[part].as<AxisAttr>().axis != 2 ||
          uses_[at(part)] != 1)
        return std::nullopt;
    const ValueView &k = view(graph_[whole[0]].inputs[1]), &v = view(graph_[whole[1]].inputs[1]);
    const int index = fused_.group_of[at(k.base)];
    if (index < 0 || k.base != v.base) return std::nullopt;
    const Group& group = fused_.groups[at(index)];
    const Shape& domain = group.domain;
    const Node& last = graph_[k.base];
    if (group.kind != Group::Kind::elementwise || group.outputs != std::vector{k.base} || last.dtype != DType::f32 ||
        !(last.shape == domain) || domain.rank() < 4 || domain.rank() > 5 || reads_iota(group))
      return std::nullopt;
    if (last.prim != Prim::elementwise || last.as<ElementwiseAttr>().op != ElementwiseOp::Where) return std::nullopt;
    const std::int64_t line = q[3], head = domain[2] * line, shared = k.shape[1];
    if (domain[0] != q[0] || domain[1] != 2 * shared || domain.elements() != domain[0] * domain[1] * head) return std::nullopt;
    for (const ValueView* x : {&k, &v}) {
      const std::array dense{domain[1] * head, head, line, std::int64_t{1}};
      for (int axis = 0; axis < 4; ++axis)
        if (x->shape[axis] > 1 && x->strides[at(axis)] != dense[at(axis)]) return std::nullopt;
      if (x->shape != Shape{q[0], shared, domain[2], line} || x->offset % head != 0) return std::nullopt;
    }
    const RenewedKeys found{index, last.inputs[0], last.inputs[2], k.offset / head, v.offset / head};
    if (std::min(found.k_head, found.v_head) != 0 || std::max(found.k_head, found.v_head) != shared) return std::nullopt;
    const ValueView &is_new = view(found.is_new), &old = view(found.old);
    if (member_behind(graph_, fused_, index, found.is_new) || member_behind(graph_, fused_, index, found.old) ||
        graph_[is_new.base].dtype != DType::boolean || graph_[old.base].dtype != DType::f32 || !is_dense(old) ||
        old.offset % 8 != 0 || !(old.shape == domain) || !(is_new.shape == domain))
      return std::nullopt;
    for (int axis = 0; axis < domain.rank(); ++axis)
      if (axis != 0 && axis != 2 && domain[axis] > 1 && is_new.strides[at(axis)] != 0) return std::nullopt;
    return is_read_before(k.base, index, id, whole) ? std::nullopt : std::optional(found);
  }
  // Whether a step between the group and attention |id|, other than those that put its operands together, reads |base|.
  bool is_read_before(NodeId base, int index, NodeId id, std::span<const NodeId> others) const {
    bool is_between = false;
    for (const Step& step : fused_.steps) {
      if (step.group == index) is_between = true;
      if (step.group < 0 && step.node == id) return !is_between;
      if (!is_between || step.group == index || (step.group < 0 && std::ranges::find(others, step.node) != others.end()))
        continue;
      const std::vector<NodeId> nodes = step.group < 0 ? std::vector{step.node} : fused_.groups[at(step.group)].nodes;
      for (const NodeId node : nodes)
        for (const NodeId operand : graph_[node].inputs)
          if (base_of(operand) == base) return true;
    }
    return true;
  }

  std::optional<ProductTail> tail_of(int index) const {
    const Group& group = fused_.groups[at(index)];
    if (group.kind != Group::Kind::elementwise || group.outputs.size() != 1 || group.domain.rank() != 2) return std::nullopt;
    if (reads_iota(group)) return std::nullopt;
    ProductTail found{-1, group.outputs[0], index, 1};
    std::int64_t own = 0;  // reads of the product
    std::set<std::int64_t> offsets;
    const std::int64_t m = group.domain[0], n = group.domain[1];
    for (const NodeId id : group.nodes)
      for (const NodeId operand : graph_[id].inputs) {
        if (member_behind(graph_, fused_, index, operand)) continue;
        const ValueView& v = view(operand);
        if (!has_few_rows(graph_, graph_[v.base])) continue;
        if (found.product >= 0 && found.product != v.base) return std::nullopt;
        found.product = v.base;
        ++own;
        offsets.insert(v.offset);
        const bool has_rows = m == 1 || v.strides[0] == graph_[v.base].shape[1];
        if (!(v.shape == group.domain) || !has_rows || (n > 1 && v.strides[1] != 1)) return std::nullopt;
      }
    if (found.product < 0 || reads(found.product) != own) return std::nullopt;
    found.segments = static_cast<std::int64_t>(offsets.size());
    if (found.segments > 2 || graph_[found.product].shape != Shape{m, n * found.segments} || *offsets.rbegin() > n)
      return std::nullopt;
    if (found.segments == 2 && (*offsets.begin() != 0 || *offsets.rbegin() != n)) return std::nullopt;
    if (memory_dtype(graph_, fused_, found.product) != DType::f32) return std::nullopt;
    return found;
  }

  // The random numbers that elementwise group |index| alone reads, whole and in their order; or -1.
  NodeId random_of(int index) const {
    const Group& group = fused_.groups[at(index)];
    if (group.kind != Group::Kind::elementwise || reads_iota(group)) return -1;
    std::map<NodeId, int> own;  // reads of random numbers; -1: of a part of them, or of some several times
    for (const NodeId id : group.nodes)
      for (const NodeId operand : graph_[id].inputs) {
        if (member_behind(graph_, fused_, index, operand) || graph_[base_of(operand)].prim != Prim::random) continue;
        int& count = own[base_of(operand)];
        count = count >= 0 && is_whole(operand) ? count + 1 : -1;
      }
    for (const auto& [random, count] : own)
      if (count == reads(random)) return random;
    return -1;
  }

  // Nodes of a group, matched from the last one back.
  class Matcher {
   public:
    Matcher(const Finder& finder, int index) : finder_(finder), index_(index) {}
    // The member behind |operand| if it is this op of elements, or none.
    const Node* is(NodeId operand, ElementwiseOp op) {
      const Node* const node = member(operand);
      if (!node || node->prim != Prim::elementwise || node->as<ElementwiseAttr>().op != op) return nullptr;
      return node;
    }
    const Node* member(NodeId operand) {
      const auto id = member_behind(finder_.graph_, finder_.fused_, index_, operand);
      if (!id) return nullptr;
      seen_.insert(*id);
      return &finder_.graph_[*id];
    }
    std::optional<double> number(NodeId operand) const {
      const Node& base = finder_.graph_[finder_.base_of(operand)];
      if (base.prim != Prim::constant || base.shape.elements() != 1) return std::nullopt;
      return base.as<ConstantAttr>().value.value(0);
    }
    std::size_t seen() const { return seen_.size(); }

   private:
    const Finder& finder_;
    const int index_;
    std::set<NodeId> seen_;
  };

  // x / sqrt(sum(x * x) / n + eps) * weight, rounded.
  std::optional<ProductHead> head_of(int index) const {
    const Group& group = fused_.groups[at(index)];
    if (group.kind != Group::Kind::rows || group.outputs.size() != 1 || group.domain.rank() != 2 || group.reduced != 2)
      return std::nullopt;
    Matcher match(*this, index);
    const Node* last = match.member(group.outputs[0]);
    while (last && last->prim == Prim::cast) last = match.member(last->inputs[0]);
    if (!last || last->prim != Prim::elementwise || last->as<ElementwiseAttr>().op != ElementwiseOp::Mul) return std::nullopt;
    for (const std::size_t k : {std::size_t{0}, std::size_t{1}}) {
      const Node* const quotient = match.is(last->inputs[k], ElementwiseOp::Div);
      if (!quotient) continue;
      ProductHead found{quotient->inputs[0], last->inputs[1 - k], index, 0};
      const Node* const root = match.is(quotient->inputs[1], ElementwiseOp::Sqrt);
      const Node* const sum = root ? match.is(root->inputs[0], ElementwiseOp::Add) : nullptr;
      const Node* const mean = sum ? match.is(sum->inputs[0], ElementwiseOp::Div) : nullptr;
      const Node* const total = mean ? match.member(mean->inputs[0]) : nullptr;
      if (!total || total->prim != Prim::reduce || total->as<ReduceAttr>().kind != ReduceKind::sum) return std::nullopt;
      const Node* const square = match.is(total->inputs[0], ElementwiseOp::Square);
      const std::optional<double> eps = match.number(sum->inputs[1]), count = match.number(mean->inputs[1]);
      if (!square || !eps || count != static_cast<double>(group.domain[1]) || square->inputs[0] != found.x) return std::nullopt;
      if (match.seen() != group.nodes.size() || match.member(found.x) || match.member(found.weight)) return std::nullopt;
      const ValueView &x = view(found.x), &weight = view(found.weight);
      const bool is_row = group.domain[0] == 1 || weight.strides[0] == 0;
      if (!(x.shape == group.domain) || x.strides[1] != 1 || !(weight.shape == group.domain) || !is_row || weight.strides[1] != 1)
        return std::nullopt;
      if (graph_[found.x].dtype != DType::f32 || graph_[found.weight].dtype != DType::f32) return std::nullopt;
      found.eps = *eps;
      return found;
    }
    return std::nullopt;
  }

 private:
  const Graph& graph_;
  const Plan& fused_;
  std::vector<int> reads_;  // by base: by steps, and as outputs
  std::vector<int> uses_;   // by node: as an operand, and as outputs
};

bool is_attention(const Node& node) {
  return node.prim == Prim::region && std::holds_alternative<AttentionAttr>(node.as<RegionAttr>());
}

}  // namespace

Plan with_sums_apart(const Graph& graph, Plan fused) {
  std::map<int, std::vector<NodeId>> moved;  // by group: the sum, and the cast before it
  const Finder finder(graph, fused);
  for (std::size_t g = 0; g < fused.groups.size(); ++g) {
    const Group& group = fused.groups[g];
    if (group.kind != Group::Kind::rows || group.domain.rank() != 2) continue;
    for (const NodeId id : group.nodes)
      if (std::vector<NodeId> nodes = finder.sum_with_product(id, static_cast<int>(g)); !nodes.empty()) {
        moved[static_cast<int>(g)] = std::move(nodes);
        break;
      }
  }
  std::map<int, int> apart;
  for (auto& [g, nodes] : moved) {
    Group& group = fused.groups[at(g)];
    const auto is_moved = [&](NodeId id) { return std::ranges::find(nodes, id) != nodes.end(); };
    std::erase_if(group.nodes, is_moved);
    std::erase_if(group.outputs, is_moved);
    const int number = apart[g] = static_cast<int>(fused.groups.size());
    for (const NodeId id : nodes) fused.group_of[at(id)] = number;
    Group sum{Group::Kind::elementwise, group.domain, 0, nodes, {nodes.back()}};
    fused.groups.push_back(std::move(sum));
  }
  std::vector<Step> steps;
  for (const Step& step : fused.steps) {
    if (const auto found = apart.find(step.group); step.group >= 0 && found != apart.end()) steps.push_back({found->second, -1});
    steps.push_back(step);
  }
  fused.steps = std::move(steps);
  return fused;
}

namespace {

// The group that computes nothing but |part|, for a single reader; or -1.
int group_of_part(const Graph& graph, const Plan& fused, const Finder& finder, NodeId part) {
  const int index = fused.group_of[at(part)];
  if (index < 0 || finder.reads(part) != 1) return -1;
  const Group& group = fused.groups[at(index)];
  return group.kind == Group::Kind::elementwise && group.outputs == std::vector{part} && group.domain == graph[part].shape ? index
                                                                                                                           : -1;
}

// What group |index| reads; nothing if a product is among it, with which the group may be computed.
std::set<NodeId> read_by(const Graph& graph, const Plan& fused, const Finder& finder, int index) {
  std::set<NodeId> bases;
  for (const NodeId id : fused.groups[at(index)].nodes)
    for (const NodeId operand : graph[id].inputs) {
      if (member_behind(graph, fused, index, operand)) continue;
      const Node& base = graph[finder.base_of(operand)];
      if (base.prim == Prim::matmul || base.prim == Prim::conv || base.prim == Prim::region) return {};
      if (base.prim != Prim::constant) bases.insert(finder.base_of(operand));
    }
  return bases;
}

}  // namespace

Plan with_parts_together(const Graph& graph, Plan fused) {
  const std::size_t most_nodes = FusionLimits().max_nodes;
  const Finder finder(graph, fused);
  std::set<int> gone;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph[id];
    if (node.prim != Prim::concat) continue;
    std::set<int> groups;
    for (const NodeId part : node.inputs) groups.insert(group_of_part(graph, fused, finder, part));
    if (groups.size() < 2 || groups.size() != node.inputs.size() || groups.contains(-1)) continue;
    const std::set<NodeId> bases = read_by(graph, fused, finder, *groups.begin());
    std::size_t count = 0;
    bool are_alike = !bases.empty();
    for (const int index : groups) {
      const Group& group = fused.groups[at(index)];
      count += group.nodes.size();
      are_alike =
          are_alike && group.domain == fused.groups[at(*groups.begin())].domain && read_by(graph, fused, finder, index) == bases;
    }
    if (!are_alike || count > most_nodes) continue;
    // Nothing but the concatenation needs them, so that they can all be computed where the last one was.
    int last = -1;
    for (const Step& step : fused.steps)
      if (step.group >= 0 && groups.contains(step.group)) last = step.group;
    Group& joined = fused.groups[at(last)];
    for (const int index : groups) {
      if (index == last) continue;
      Group& group = fused.groups[at(index)];
      for (const NodeId member : group.nodes) fused.group_of[at(member)] = last;
      joined.nodes.insert(joined.nodes.end(), group.nodes.begin(), group.nodes.end());
      joined.outputs.insert(joined.outputs.end(), group.outputs.begin(), group.outputs.end());
      group.nodes.clear();
      group.outputs.clear();
      gone.insert(index);
    }
    std::ranges::sort(joined.nodes);
    std::ranges::sort(joined.outputs);
  }
  std::erase_if(fused.steps, [&](const Step& step) { return gone.contains(step.group); });
  return fused;
}

Absorbed find_absorbed(const Graph& graph, const Plan& fused) {
  const Finder finder(graph, fused);
  Absorbed all;
  std::map<NodeId, ProductHead> heads;  // by result
  for (std::size_t g = 0; g < fused.groups.size(); ++g) {
    const int index = static_cast<int>(g);
    const Group& group = fused.groups[g];
    if (const auto tail = finder.tail_of(index)) all.tails[index] = *tail;
    if (const auto head = finder.head_of(index)) heads[group.outputs[0]] = *head;
    if (const NodeId random = finder.random_of(index); random >= 0 && !all.tails.contains(index)) all.random[index] = random;
    // A cast of the whole result of attention.
    if (group.nodes.size() != 1) continue;
    const Node& node = graph[group.nodes[0]];
    if (node.prim != Prim::cast || (node.dtype != DType::f16 && node.dtype != DType::bf16)) continue;
    const NodeId base = finder.base_of(node.inputs[0]);
    if (is_attention(graph[base]) && graph[base].dtype == DType::f32 && finder.reads(base) == 1 &&
        finder.is_whole(node.inputs[0]))
      all.rounded[base] = group.nodes[0];
  }
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph[id];
    if (!has_few_rows(graph, node)) continue;
    const auto head = heads.find(finder.base_of(node.inputs[0]));
    if (head != heads.end() && finder.reads(head->first) == 1 && finder.is_whole(node.inputs[0]) &&
        graph[head->first].dtype == graph[node.inputs[1]].dtype)
      all.heads[id] = head->second;
  }
  for (NodeId id = 0; id < graph.size(); ++id)
    if (is_attention(graph[id])) {
      if (const int group = finder.queries_of(graph[id]); group >= 0) all.queries[id] = group;
      if (const auto keys = finder.renewed_keys_of(id)) all.renewed[id] = *keys;
    }
  return all;
}

namespace {

// The element of the group whose place along each axis of its domain is |by|.
std::string element_at(GroupReader& reader, Body& body, std::span<const std::string> by) {
  Parameters& p = body.parameters();
  return element_text(reader, body, [&](const External& e) {
    const std::string buffer = p.input(e.from.stored, e.from.slot);
    std::string index = p.whole_number(e.view.offset);
    for (std::size_t axis = 0; axis < by.size(); ++axis)
      if (e.view.strides[axis] != 0) index += fmt::format(" + {} * {}", by[axis], p.whole_number(e.view.strides[axis]));
    return body.loaded(e.from.stored, fmt::format("{}[{}]", buffer, index));
  });
}

// Widths are in the text: a division by a parameter takes long.
std::string quotient(const std::string& place, std::int64_t by) { return fmt::format("({} / {})", place, by); }
std::string remainder(const std::string& place, std::int64_t by) { return fmt::format("({} % {})", place, by); }

}  // namespace

std::function<std::string(Body&, const std::string&, const std::string&, const std::string&, std::string&)> query_text(
    GroupReader& reader) {
  return [&reader](Body& body, const std::string& batch, const std::string& head, const std::string& place, std::string& result) {
    const std::int64_t width = reader.group().domain[3];
    result = reader.name(reader.group().outputs[0]);
    return element_at(reader, body, std::array{batch, head, quotient(place, width), remainder(place, width)});
  };
}

std::function<std::string(Body&, const std::string&, const std::string&, const std::string&, const std::string&, std::string&)>
renewed_text(GroupReader& reader) {
  return [&reader](Body& body, const std::string& batch, const std::string& head, const std::string& key,
                   const std::string& place, std::string& result) {
    const Shape& domain = reader.group().domain;
    result = reader.name(reader.group().outputs[0]);
    if (domain.rank() == 4) return element_at(reader, body, std::array{batch, head, key, place});
    return element_at(reader, body, std::array{batch, head, key, quotient(place, domain[4]), remainder(place, domain[4])});
  };
}

}  // namespace tenon

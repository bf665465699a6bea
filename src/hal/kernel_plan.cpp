#include "hal/kernel_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "codegen/c/loops/group.h"
#include "codegen/c/primitives/primitives.h"
#include "codegen/c/sort/sort.h"
#include "graph/optimize/fusion.h"
#include "graph/optimize/simplify.h"
#include "hal/kernel_plan/absorbed.h"
#include "hal/kernel_plan/epilogues.h"
#include "hal/kernel_plan/products.h"
#include "hal/kernel_plan/regions.h"
#include "hal/kernel_plan/small_products.h"
#include "hal/kernel_plan/steps.h"
#include "hal/kernel_plan/values.h"
#include "tenon/error.h"

namespace tenon {
namespace {

using namespace emit;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

std::vector<TensorType> types_of(const Graph& graph, std::span<const NodeId> ids) {
  std::vector<TensorType> types;
  for (NodeId id : ids) types.push_back({graph[id].dtype, graph[id].shape});
  return types;
}

FusionLimits limits_of(const KernelTarget& target, bool fuses) {
  if (!fuses) return {.max_nodes = 1};
  // Rows too long for the registers are read again in every pass, which is less than what passes would hand on through memory.
  if (target.dialect == Dialect::cuda) return {.max_row_of_many = std::int64_t{1} << 18};
  return {};
}

Graph simplified(const Graph& graph, const KernelTarget& target, const PlanOptions& options) {
  Graph result =
      simplify(graph, [&](const Graph& g, const Region& region) { return options.fuse && takes_region(target, g, region); });
  return options.fuse && !target.is_cpu ? with_small_products_as_sums(result) : std::move(result);
}

// The sources of a group that draws its random numbers, which have no memory.
class RandomPlacement final : public GroupPlacement {
 public:
  RandomPlacement(PlanValues& values, NodeId random, DType dtype)
      : values_(values),
        random_(random),
        drawn_{0, compute_dtype(dtype)} {}
  StoredValue source(NodeId base) const override { return base == random_ ? drawn_ : values_.source(base); }
  std::vector<StoredValue> targets(NodeId output) const override { return values_.targets(output); }
  int scratch(std::uint64_t bytes) override { return values_.scratch(bytes); }

 private:
  PlanValues& values_;
  const NodeId random_;
  const StoredValue drawn_;
};

// A reduction whose result an elementwise group takes over before it is stored: it has no memory.
class EndPlacement final : public GroupPlacement {
 public:
  EndPlacement(PlanValues& values, NodeId reduction, DType dtype)
      : values_(values),
        reduction_(reduction),
        result_{0, compute_dtype(dtype)} {}
  void set_end(GroupReader* end) { end_ = end; }
  StoredValue source(NodeId base) const override { return base == reduction_ ? result_ : values_.source(base); }
  std::vector<StoredValue> targets(NodeId output) const override { return values_.targets(output); }
  GroupReader* end(NodeId /*reduction*/) const override { return end_; }
  int scratch(std::uint64_t bytes) override { return values_.scratch(bytes); }

 private:
  PlanValues& values_;
  const NodeId reduction_;
  const StoredValue result_;
  GroupReader* end_ = nullptr;
};

// Walks the groups and the other primitives in order and adds their kernels.
class Planner {
 public:
  Planner(const Graph& graph, const KernelTarget& target, const PlanOptions& options)
      : target_(target),
        fuses_(options.fuse),
        graph_(simplified(graph, target, options)),
        fused_(fused()),
        steps_(types_of(graph_, graph_.inputs()), types_of(graph_, graph_.outputs())),
        values_(graph_, fused_, target_, steps_),
        products_(graph_, fused_, target_, options, values_, steps_) {
    if (options.library_matmul && options.fuse) epilogues_ = find_epilogues(graph_, fused_, values_);
    if (absorbs()) absorbed_ = find_absorbed(graph_, fused_);
    if (fuses_ && !target_.is_cpu) values_.store_rounded(products_to_round());
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (has_two_parts(target_, graph_, graph_[id], values_))
        done_.insert({graph_[id].inputs[1], graph_[id].inputs[2]});
      else
        absorbed_.renewed.erase(id);
    }
  }

  KernelPlan run() {
    std::set<NodeId> waiting;  // products, for their epilogue's group; random numbers, for the group that draws them
    for (const auto& [group, epilogue] : epilogues_) {
      waiting.insert(epilogue.product);
      absorbed_.tails.erase(group);
      absorbed_.heads.erase(epilogue.product);
    }
    for (const auto& [group, tail] : absorbed_.tails) waiting.insert(tail.product);
    std::set<int> left;  // groups that a product computes
    for (const auto& [product, head] : absorbed_.heads) left.insert(head.group);
    for (const auto& [attention, cast] : absorbed_.rounded) left.insert(fused_.group_of[at(cast)]);
    for (const auto& [attention, group] : absorbed_.queries) left.insert(group);
    for (const auto& [attention, keys] : absorbed_.renewed) left.insert(keys.group);
    std::erase_if(absorbed_.random, [&](const auto& of) { return left.contains(of.first) || epilogues_.contains(of.first); });
    for (const auto& [group, random] : absorbed_.random) waiting.insert(random);
    if (fuses_ && !target_.is_cpu) find_ends(left);
    for (const auto& [reduction, end] : ends_) left.insert(end);
    if (fuses_ && !target_.is_cpu) {
      std::set<int> others = left;  // groups whose results other kernels store
      for (const auto& [group, epilogue] : epilogues_) others.insert(group);
      for (const auto& [group, tail] : absorbed_.tails) others.insert(group);
      for (const auto& [group, random] : absorbed_.random) others.insert(group);
      for (NodeId id = 0; id < graph_.size(); ++id)
        if (graph_[id].prim == Prim::concat && !done_.contains(id)) put_parts_into(id, others);
    }
    for (const Step& step : fused_.steps) {
      if (step.group < 0) {
        if (!waiting.contains(step.node) && !done_.contains(step.node)) add_node(step.node);
      } else if (left.contains(step.group)) {
        continue;
      } else if (const auto tail = absorbed_.tails.find(step.group); tail != absorbed_.tails.end()) {
        add_product(tail->second.product, &tail->second);
      } else if (const auto found = epilogues_.find(step.group); found == epilogues_.end()) {
        add_group(step.group);
      } else if (!products_.add_with_epilogue(found->second)) {
        add_primitive(found->second.product);
        add_group(step.group);
      }
    }
    values_.deliver_others();
    return steps_.finish();
  }

 private:
  Plan fused() const {
    Plan plan = fuse(graph_, limits_of(target_, fuses_));
    if (fuses_ && !target_.is_cpu) plan = with_parts_together(graph_, std::move(plan));
    return absorbs() ? with_sums_apart(graph_, std::move(plan)) : plan;
  }

  // Only these have kernels that take groups over.
  bool absorbs() const { return target_.dialect == Dialect::cuda && fuses_; }

  // Products of 16 bits that other kernels read from memory, where half the bytes count: not those of a few rows, and not those
  // whose sums a cast asks for.
  std::vector<NodeId> products_to_round() const {
    constexpr std::int64_t kElements = std::int64_t{1} << 18, kRows = 32;
    std::set<NodeId> found;
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_[id];
      const bool is_product =
          node.prim == Prim::conv || (node.prim == Prim::matmul && node.shape[node.shape.rank() - 2] >= kRows);
      if (is_product && (node.dtype == DType::bf16 || node.dtype == DType::f16) && node.shape.elements() >= kElements)
        found.insert(id);
    }
    for (const auto& [group, tail] : absorbed_.tails) found.erase(tail.product);
    for (const auto& [group, epilogue] : epilogues_)
      if (found.contains(epilogue.product)) found.insert(epilogue.result);
    for (NodeId id = 0; id < graph_.size(); ++id)
      if (graph_[id].prim == Prim::cast && (graph_[id].dtype == DType::f32 || graph_[id].dtype == DType::f64))
        found.erase(fused_.views[at(graph_[id].inputs[0])].base);
    return {found.begin(), found.end()};
  }

  void add_node(NodeId id) {
    if (absorbed_.heads.contains(id)) return add_product(id, nullptr);
    const auto rounded = absorbed_.rounded.find(id);
    const auto queries = absorbed_.queries.find(id);
    const auto renewed = absorbed_.renewed.find(id);
    if (rounded == absorbed_.rounded.end() && queries == absorbed_.queries.end() && renewed == absorbed_.renewed.end())
      return add_primitive(id);
    AttentionGroups groups;
    std::optional<GroupReader> of_queries, of_keys;
    if (queries != absorbed_.queries.end()) groups.queries = &of_queries.emplace(graph_, fused_, queries->second, values_);
    NodeId keys = -1;
    Dense to_keys;
    if (renewed != absorbed_.renewed.end()) {
      groups.keys = renewed->second;
      keys = fused_.groups[at(groups.keys.group)].outputs[0];
      to_keys = values_.result_of(keys);
      const Shape& domain = to_keys.shape;
      const std::int64_t width = domain.elements() / (domain[0] * domain[1] * domain[2]);
      groups.to = {to_keys.slot, to_keys.stored, Shape{domain[0], domain[1], domain[2], width}};
      groups.renewed = &of_keys.emplace(graph_, fused_, groups.keys.group, values_);
    }
    const NodeId result = rounded == absorbed_.rounded.end() ? id : rounded->second;
    const Dense out = values_.result_of(result);
    add_region(target_, graph_, graph_[id], {out.slot, out.stored, graph_[id].shape}, values_, steps_, products_, groups);
    values_.deliver(result, out);
    if (keys >= 0) values_.deliver(keys, to_keys);
  }

  // A product with what it absorbs, or each in its own kernel.
  void add_product(NodeId id, const ProductTail* tail) {
    const auto head = absorbed_.heads.find(id);
    if (head != absorbed_.heads.end()) {
      if (products_.add_absorbing(id, &head->second, tail)) return;
      add_group(head->second.group);
    }
    if (tail && products_.add_absorbing(id, nullptr, tail)) return;
    add_primitive(id);
    if (tail) add_group(tail->group);
  }

  // Elementwise groups that read nothing but numbers and the result of a reduction, which nothing else reads.
  void find_ends(const std::set<int>& left) {
    const auto is_busy = [&](int group) {
      return left.contains(group) || epilogues_.contains(group) || absorbed_.tails.contains(group) ||
             absorbed_.random.contains(group);
    };
    for (int index = 0; index < std::ssize(fused_.groups); ++index) {
      const Group& group = fused_.groups[at(index)];
      if (group.kind != Group::Kind::elementwise || group.nodes.empty() || is_busy(index)) continue;
      NodeId reduction = -1;
      bool fits = group.domain.elements() > 0;
      for (NodeId n : group.nodes)
        for (NodeId operand : graph_[n].inputs) {
          const ValueView& view = fused_.views[at(operand)];
          const Node& base = graph_[view.base];
          if (member_behind(graph_, fused_, index, operand)) continue;
          if (base.prim == Prim::constant && base.shape.elements() == 1) continue;
          fits = fits && (reduction < 0 || reduction == view.base) && base.prim == Prim::reduce && is_dense(view) &&
                 view.offset == 0 && base.shape.elements() == group.domain.elements() && !is_block(base.dtype);
          reduction = view.base;
        }
      if (!fits || reduction < 0 || !values_.is_read_once(reduction)) continue;
      const int from = fused_.group_of[at(reduction)];
      if (from < 0 || from == index || is_busy(from)) continue;
      const Group& sums = fused_.groups[at(from)];
      if (sums.kind == Group::Kind::reduction && sums.outputs == std::vector<NodeId>{reduction}) ends_[from] = index;
    }
  }

  void add_reduction_with_end(int index, int end) {
    const NodeId reduction = fused_.groups[at(index)].outputs[0];
    for (NodeId id : fused_.groups[at(end)].outputs) values_.place(id);
    EndPlacement placement(values_, reduction, graph_[reduction].dtype);
    GroupReader reader(graph_, fused_, end, placement);
    placement.set_end(&reader);
    steps_.add(emit_group(target_, graph_, fused_, index, placement));
  }

  void add_group(int index) {
    const Group& group = fused_.groups[at(index)];
    const auto random = absorbed_.random.find(index);
    if (random == absorbed_.random.end() && group.nodes.size() == 1 && values_.is_stored_already(group.nodes[0])) return;
    for (NodeId n : group.nodes)
      for (NodeId operand : graph_[n].inputs)
        if (!member_behind(graph_, fused_, index, operand) && !group_can_read(graph_, fused_, group, operand))
          values_.copied(operand);
    if (const auto end = ends_.find(index); end != ends_.end()) return add_reduction_with_end(index, end->second);
    bool empty = true;
    for (NodeId id : group.outputs) {
      values_.place(id);
      empty = empty && graph_[id].shape.elements() == 0;
    }
    if (empty) return;
    if (random == absorbed_.random.end()) return steps_.add(emit_group(target_, graph_, fused_, index, values_));
    const RandomPlacement placement(values_, random->second, graph_[random->second].dtype);
    GroupReader reader(graph_, fused_, index, placement);
    steps_.add(emit_random_group(target_, random->second, reader, placement));
  }

  void add_primitive(NodeId id) {
    const Node& node = graph_[id];
    if (node.shape.elements() == 0) return values_.place(id);
    if (node.prim == Prim::arg_sort && add_sort(id)) return;
    if (node.prim == Prim::region && add_selection(id)) return;
    if (values_.is_computed_by_readers(id)) return;
    // Sums that are formed in memory are rounded afterwards.
    const bool is_sum = node.prim == Prim::scatter && node.as<ScatterAttr>().add && !scatters_lines(node) && !scatters_few(node);
    const Dense out = is_sum ? values_.unrounded_result_of(id) : values_.result_of(id);
    add_kernels(node, out);
    values_.deliver(id, out);
  }

  void add_kernels(const Node& node, const Dense& out) {
    const Scratch scratch = [&](std::uint64_t bytes) { return steps_.temporary(bytes); };
    const auto x = [&](std::size_t input) { return values_.dense(node.inputs[input]); };
    switch (node.prim) {
      case Prim::broadcast:
      case Prim::reshape:
      case Prim::transpose:
      case Prim::slice: return add_view(node, out);
      case Prim::cast: return add_block_cast(node, out);
      case Prim::pad: return add_pad(node, out);
      case Prim::concat: return add_concat(node, out);
      case Prim::matmul: return products_.add_matmul(node, out);
      case Prim::conv: return products_.add_conv(node, out);
      case Prim::scatter: return add_scatter(node, out, scratch);
      case Prim::take: return add_take(node, out);
      case Prim::gather: return add_gather(node, out);
      case Prim::iota: return steps_.add(emit_iota(target_, out));
      case Prim::random: return steps_.add(emit_random(target_, node.as<RandomAttr>(), compute_dtype(node.dtype), out));
      case Prim::window: return steps_.add(emit_window(target_, x(0), node.as<WindowAttr>(), out));
      case Prim::arg_reduce: return steps_.add(emit_arg_reduce(target_, x(0), node.as<ArgReduceAttr>(), out, scratch));
      case Prim::cumulative: return steps_.add(emit_cumulative(target_, x(0), node.as<CumulativeAttr>(), out, scratch));
      case Prim::region: return add_region(target_, graph_, node, out, values_, steps_, products_, {});
      case Prim::arg_sort: return steps_.add(emit_arg_sort(target_, x(0), node.as<ArgSortAttr>(), out, scratch));
      default: throw Error(ErrorCode::internal, fmt::format("no kernel implements {}", name(node.prim)));
    }
  }

  // The gather that brings the elements into the order that |sort| finds along |axis|, if there is one: both are one op then.
  NodeId gather_of(NodeId sort, int axis) const {
    const Node& node = graph_[sort];
    for (NodeId id = sort + 1; id < graph_.size(); ++id) {
      const Node& reader = graph_[id];
      if (reader.prim == Prim::gather && reader.inputs[0] == node.inputs[0] && reader.inputs[1] == sort &&
          reader.as<AxisAttr>().axis == axis)
        return id;
    }
    return -1;
  }

  bool add_sort(NodeId id) {
    const ArgSortAttr& attr = graph_[id].as<ArgSortAttr>();
    return add_order(id, {.axis = attr.axis, .descending = attr.descending});
  }
  bool add_selection(NodeId id) {
    const auto* part = std::get_if<TopKAttr>(&graph_[id].as<RegionAttr>());
    return part != nullptr && add_order(id, range_of(*part));
  }
  bool add_order(NodeId id, const SortRange& range) {
    const NodeId gather = gather_of(id, range.axis);
    const Dense x = values_.dense(graph_[id].inputs[0]);
    SortResult to;
    if (gather < 0 || !values_.is_read_once(id)) to.indices = values_.result_of(id);
    if (gather >= 0) to.values = values_.result_of(gather);
    auto launches = emit_radix_sort(target_, x, range, to, [&](std::uint64_t bytes) { return steps_.temporary(bytes); });
    if (!launches) return false;
    steps_.add(std::move(*launches));
    if (to.indices) values_.deliver(id, *to.indices);
    if (to.values) {
      values_.deliver(gather, *to.values);
      done_.insert(gather);
    }
    return true;
  }

  void add_view(const Node& node, const Dense& out) {
    const NodeId x = node.inputs[0];
    steps_.add(emit_copy(target_, graph_[x].shape, values_.stored(x), dense_access(out.slot, out.stored, graph_[x].shape)));
  }

  void add_block_cast(const Node& node, const Dense& out) {
    Dense x = values_.dense(node.inputs[0]);
    if (x.stored != DType::f32) {
      const int to = steps_.temporary(DType::f32, node.shape);
      steps_.add(
          emit_copy(target_, node.shape, dense_access(x.slot, x.stored, node.shape), dense_access(to, DType::f32, node.shape)));
      x = {to, DType::f32, node.shape};
    }
    steps_.add(emit_block_round(target_, node.dtype, node.shape, x.slot, out.slot));
  }

  void add_pad(const Node& node, const Dense& out) {
    const PadAttr& attr = node.as<PadAttr>();
    const Shape& inside = graph_[node.inputs[0]].shape;
    if (inside.elements() > 0)
      if (auto padded = emit_pad(target_, inside, values_.stored(node.inputs[0]), attr, out))
        return steps_.add(std::move(*padded));
    const Access whole = dense_access(out.slot, out.stored, node.shape);
    steps_.add(emit_fill(target_, node.shape, whole, attr.value));
    Access middle = whole;
    for (int i = 0; i < node.shape.rank(); ++i) middle.offset += attr.low[at(i)] * whole.strides[at(i)];
    if (inside.elements() > 0) steps_.add(emit_copy(target_, inside, values_.stored(node.inputs[0]), middle));
  }

  // The group, other than |others|, that can store |part| of a concatenation in its place.
  bool is_stored_by_group(NodeId part, const std::set<int>& others) const {
    const int index = fused_.group_of[at(part)];
    if (index < 0 || others.contains(index) || graph_[part].shape.elements() == 0) return false;
    const Group& group = fused_.groups[at(index)];
    // A cast alone may be stored already.
    const bool is_cast = group.nodes.size() == 1 && graph_[part].prim == Prim::cast;
    return group.kind == Group::Kind::elementwise && !is_cast && values_.is_read_once(part);
  }
  void put_parts_into(NodeId concat, const std::set<int>& others) {
    const Node& node = graph_[concat];
    if (std::ranges::none_of(node.inputs, [&](NodeId part) { return is_stored_by_group(part, others); })) return;
    const Dense out = values_.result_of(concat);
    const int axis = node.as<AxisAttr>().axis;
    Access to = dense_access(out.slot, out.stored, node.shape);
    for (NodeId part : node.inputs) {
      if (is_stored_by_group(part, others)) values_.put_into(part, to);
      to.offset += graph_[part].shape[axis] * to.strides[at(axis)];
    }
  }

  void add_concat(const Node& node, const Dense& out) {
    const int axis = node.as<AxisAttr>().axis;
    Access to = dense_access(out.slot, out.stored, node.shape);
    for (NodeId part : node.inputs) {
      const Shape& shape = graph_[part].shape;
      if (shape.elements() > 0 && !values_.part(part)) steps_.add(emit_copy(target_, shape, values_.stored(part), to));
      to.offset += shape[axis] * to.strides[at(axis)];
    }
  }

  void add_scatter(const Node& node, const Dense& out, const Scratch& scratch) {
    const Access x = values_.stored(node.inputs[0]);
    if (scatters_few(node))
      return steps_.add(emit_scatter_few(target_, x, values_.stored(node.inputs[1]), values_.dense(node.inputs[2]),
                                         node.as<ScatterAttr>(), out, steps_.status(), scratch));
    if (scatters_rows(node)) return add_scatter_rows(node, x, out, scratch);
    const Dense indices = values_.dense(node.inputs[1]), updates = values_.dense(node.inputs[2]);
    if (scatters_lines(node))
      return steps_.add(emit_scatter_lines(target_, x, indices, updates, node.as<ScatterAttr>(), out, steps_.status()));
    steps_.add(emit_copy(target_, node.shape, x, dense_access(out.slot, out.stored, node.shape)));
    if (indices.shape.elements() > 0)
      steps_.add(emit_scatter(target_, indices, updates, node.as<ScatterAttr>(), out, steps_.status(), scratch));
  }

  bool scatters_lines(const Node& node) const {
    return !scatters_rows(node) &&
           can_scatter_lines(target_, graph_[node.inputs[1]].shape, node.as<ScatterAttr>(), node.shape, node.dtype);
  }

  // Whole rows have one index each: the indices are the same along every other axis.
  bool scatters_rows(const Node& node) const {
    const Shape& shape = graph_[node.inputs[1]].shape;
    const ScatterAttr& attr = node.as<ScatterAttr>();
    if (!can_scatter_rows(target_, shape, attr, {0, node.dtype, node.shape})) return false;
    const Strides& strides = fused_.views[at(node.inputs[1])].strides;
    for (int i = 0; i < shape.rank(); ++i)
      if (i != attr.axis && shape[i] > 1 && strides[at(i)] != 0) return false;
    return true;
  }
  bool scatters_few(const Node& node) const {
    return scatters_rows(node) &&
           can_scatter_few(target_, graph_[node.inputs[1]].shape, node.as<ScatterAttr>(), node.shape, node.dtype);
  }
  void add_scatter_rows(const Node& node, const Access& x, const Dense& out, const Scratch& scratch) {
    const Shape& shape = graph_[node.inputs[1]].shape;
    const ScatterAttr& attr = node.as<ScatterAttr>();
    const Access from = values_.stored(node.inputs[1]);
    const std::int64_t count = shape[attr.axis];
    const Dense indices{steps_.temporary(from.stored, Shape{count}), from.stored, Shape{count}};
    const Dense updates = values_.dense(node.inputs[2]);
    steps_.add(emit_copy(target_, node.shape, x, dense_access(out.slot, out.stored, node.shape)));
    steps_.add(emit_copy(target_, indices.shape, {from.slot, from.stored, from.offset, {from.strides[at(attr.axis)]}},
                         dense_access(indices.slot, indices.stored, indices.shape)));
    steps_.add(emit_scatter_rows(target_, indices, updates, attr, out, steps_.status(), scratch));
  }

  void add_take(const Node& node, const Dense& out) {
    const Dense x = values_.dense(node.inputs[0]), indices = values_.dense(node.inputs[1]);
    steps_.add(emit_take(target_, x, indices, node.as<AxisAttr>().axis, out, steps_.status()));
  }

  void add_gather(const Node& node, const Dense& out) {
    const Dense x = values_.dense(node.inputs[0]), indices = values_.dense(node.inputs[1]);
    steps_.add(emit_gather(target_, x, indices, node.as<AxisAttr>().axis, out, steps_.status()));
  }

  const KernelTarget& target_;
  const bool fuses_;
  const Graph graph_;
  Plan fused_;
  PlanSteps steps_;
  PlanValues values_;
  PlanProducts products_;
  std::map<int, Epilogue> epilogues_;  // by group
  Absorbed absorbed_;
  std::map<int, int> ends_;  // of a reduction's group: the group of its result
  std::set<NodeId> done_;    // computed together with another node
};

}  // namespace

KernelPlan plan_kernels(const Graph& graph, const KernelTarget& target, const PlanOptions& options) {
  check_kernels(graph, target);
  return Planner(graph, target, options).run();
}

void check_kernels(const Graph& graph, const KernelTarget& target) {
  if (target.has_f64) return;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph[id];
    // A literal is a weak f64 that never reaches the device as f64.
    if (node.dtype == DType::f64 && !node.weak)
      throw Error(ErrorCode::unimplemented, "the device does not support float64", "cast to float32, or use the device cpu");
  }
}

void throw_status(std::span<const std::int64_t> words) {
  if ((words[0] & 1) == 0) return;
  throw Error(ErrorCode::out_of_range, fmt::format("index {} is out of range for an axis of {} elements", words[1], words[2]));
}

}  // namespace tenon

#include "mesh/plan/partition.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <optional>

#include "mesh/plan/overlap.h"
#include "mesh/plan/rule.h"
#include "tenon/error.h"

namespace tenon::mesh {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

std::uint64_t bytes_per_element(DType dtype) { return is_block(dtype) ? 4 : storage_bytes(dtype, Shape{1}); }

// A choice for one node: over which axes of the mesh each of its loops is split.
using Choice = std::vector<std::vector<int>>;

// What a choice means: the layouts it needs and gives, and the bytes it moves.
struct Option {
  std::vector<Layout> inputs;
  Layout output;
  double cost = 0;
  int split_axes = 0;  // of the mesh: the more, the less work is done twice
};

class Partitioner {
 public:
  Partitioner(const Graph& graph, const Mesh& mesh, const MeshOptions& options) : graph_(graph), mesh_(mesh), options_(options) {}

  Partition take() {
    value_of_.assign(index(graph_.size()), -1);
    for (NodeId id = 0; id < graph_.size(); ++id) value_of_[index(id)] = add_node(id);
    for (const NodeId output : graph_.outputs()) {
      // A result leaves the devices part by part; only sums have to be added up first.
      Layout whole = layout_of(value_of_[index(output)]);
      for (auto& partial : whole.partials) partial.reset();
      result_.outputs.push_back(converted(value_of_[index(output)], whole));
    }
    for (const Value& value : result_.values) result_.stages = std::max(result_.stages, value.stage + 1);
    return std::move(result_);
  }

 private:
  const Layout& layout_of(int value) const { return result_.values[index(value)].layout; }

  int add(Value value) {
    for (const int input : value.inputs) {
      const Value& source = result_.values[index(input)];
      value.stage = std::max(value.stage, source.stage + (source.is_exchange() ? 1 : 0));
    }
    result_.values.push_back(std::move(value));
    return static_cast<int>(result_.values.size()) - 1;
  }

  int add_node(NodeId id) {
    const Node& node = graph_[id];
    if (node.prim == Prim::input) return add({Value::Kind::node, id, input_layout(node), {}, 0});
    std::vector<int> sources;
    for (const NodeId input : node.inputs) sources.push_back(value_of_[index(input)]);
    const Option option = best_option(node, sources);
    for (std::size_t i = 0; i < sources.size(); ++i) sources[i] = converted(sources[i], option.inputs[i]);
    return add({Value::Kind::node, id, option.output, std::move(sources), 0});
  }

  Layout input_layout(const Node& node) {
    Layout layout = Layout::replicated(node.shape.rank(), mesh_);
    const auto& attr = node.as<InputAttr>();
    const auto found = options_.inputs.find(attr.name);
    if (found == options_.inputs.end()) return layout;
    const Sharding& sharding = found->second;
    for (std::size_t axis = 0; axis < sharding.axes.size(); ++axis) {
      Split split;
      for (const std::string& name : sharding.axes[axis]) {
        const int mesh_axis = mesh_.axis(name);
        if (mesh_.axes()[index(mesh_axis)].size > 1) split.over.push_back(mesh_axis);
      }
      const std::int64_t extent = node.shape[static_cast<int>(axis)];
      if (split.over.empty()) continue;
      if (extent < parts_of(split, mesh_)) {
        result_.notes.push_back(fmt::format("axis {} of {} has {} elements, too few for {} devices: it is not split", axis,
                                            attr.name, extent, parts_of(split, mesh_)));
        continue;
      }
      if (is_block(node.dtype) && static_cast<int>(axis) == node.shape.rank() - 1) {
        result_.notes.push_back(
            fmt::format("{} is {}, whose blocks lie along the last axis: that axis is not split", attr.name, name(node.dtype)));
        continue;
      }
      split.cuts = cuts_for(extent, split.over, mesh_, options_.speeds);
      layout.splits[axis] = std::move(split);
    }
    return layout;
  }

  // --- Choosing the split of a node ---

  Option best_option(const Node& node, const std::vector<int>& sources) {
    const Rule rule = rule_of(graph_, node);
    std::vector<std::vector<int>> candidates = candidate_loops(rule, sources);
    Option best;
    best.cost = std::numeric_limits<double>::infinity();
    Choice choice(rule.loops.size());
    consider(node, rule, sources, candidates, 0, choice, best);
    return best;
  }

  // For each axis of the mesh the loops that some operand already splits over it. Nothing is split that was not.
  std::vector<std::vector<int>> candidate_loops(const Rule& rule, const std::vector<int>& sources) const {
    std::vector<std::vector<int>> candidates(mesh_.axes().size());
    for (std::size_t i = 0; i < sources.size(); ++i) {
      const Layout& layout = layout_of(sources[i]);
      for (std::size_t axis = 0; axis < layout.splits.size(); ++axis) {
        const int loop = rule.inputs[i][axis].loop;
        if (loop < 0 || rule.loops[index(loop)].is_whole) continue;
        for (const int m : layout.splits[axis].over) {
          auto& known = candidates[index(m)];
          if (std::find(known.begin(), known.end(), loop) == known.end()) known.push_back(loop);
        }
      }
    }
    return candidates;
  }

  void consider(const Node& node, const Rule& rule, const std::vector<int>& sources,
                const std::vector<std::vector<int>>& candidates, std::size_t mesh_axis, Choice& choice, Option& best) {
    if (mesh_axis == candidates.size()) {
      const std::optional<Option> option = evaluate(node, rule, sources, choice);
      if (option && (option->cost < best.cost || (option->cost == best.cost && option->split_axes > best.split_axes)))
        best = *option;
      return;
    }
    for (const int loop : candidates[mesh_axis]) {
      choice[index(loop)].push_back(static_cast<int>(mesh_axis));
      consider(node, rule, sources, candidates, mesh_axis + 1, choice, best);
      choice[index(loop)].pop_back();
    }
    consider(node, rule, sources, candidates, mesh_axis + 1, choice, best);
  }

  // The split of a loop over |over|: an operand's own if it is split over the same axes, so that it need not move.
  std::optional<Split> split_of(const Rule& rule, int loop, const std::vector<int>& over, const std::vector<int>& sources) const {
    Split split;
    for (std::size_t i = 0; i < sources.size() && split.cuts.empty(); ++i)
      for (std::size_t axis = 0; axis < rule.inputs[i].size() && split.cuts.empty(); ++axis) {
        const Split& own = layout_of(sources[i]).splits[axis];
        std::vector<int> sorted = own.over;
        std::sort(sorted.begin(), sorted.end());
        if (rule.inputs[i][axis].loop != loop || sorted != over) continue;
        split = own;
        for (std::int64_t& cut : split.cuts) cut *= rule.inputs[i][axis].grain;
      }
    if (split.cuts.empty()) {
      const std::int64_t extent = rule.loops[index(loop)].extent;
      if (extent < parts_of({over, {}}, mesh_)) return std::nullopt;
      split = {over, cuts_for(extent, over, mesh_, options_.speeds)};
    }
    return split;
  }

  // Nothing if a part would begin inside an element of an operand.
  static std::optional<Layout> layout_for(const std::vector<LoopAxis>& axes, const std::vector<Split>& splits, Layout layout) {
    for (std::size_t axis = 0; axis < axes.size(); ++axis) {
      if (axes[axis].loop < 0) continue;
      Split split = splits[index(axes[axis].loop)];
      for (std::int64_t& cut : split.cuts) {
        if (cut % axes[axis].grain != 0) return std::nullopt;
        cut /= axes[axis].grain;
      }
      layout.splits[axis] = std::move(split);
    }
    return layout;
  }

  std::optional<Option> evaluate(const Node& node, const Rule& rule, const std::vector<int>& sources,
                                 const Choice& choice) const {
    std::vector<Split> splits(rule.loops.size());
    Option option;
    option.output = Layout::replicated(node.shape.rank(), mesh_);
    for (std::size_t loop = 0; loop < choice.size(); ++loop) {
      if (choice[loop].empty()) continue;
      const std::optional<Split> split = split_of(rule, static_cast<int>(loop), choice[loop], sources);
      if (!split) return std::nullopt;
      splits[loop] = *split;
      option.split_axes += static_cast<int>(choice[loop].size());
      for (const int m : choice[loop])
        if (rule.loops[loop].reduces) option.output.partials[index(m)] = rule.loops[loop].reduces;
    }
    std::optional<Layout> output = layout_for(rule.output, splits, option.output);
    if (!output) return std::nullopt;
    option.output = std::move(*output);
    for (std::size_t i = 0; i < sources.size(); ++i) {
      std::optional<Layout> wanted =
          layout_for(rule.inputs[i], splits, Layout::replicated(graph_[node.inputs[i]].shape.rank(), mesh_));
      if (!wanted) return std::nullopt;
      option.inputs.push_back(std::move(*wanted));
    }
    keep_partials(node, sources, choice, option);
    for (std::size_t i = 0; i < sources.size(); ++i) option.cost += static_cast<double>(bytes_to(sources[i], option.inputs[i]));
    option.cost += future_cost(node, option.output);
    return option;
  }

  // Partial operands stay so where the node commutes with their reduction and does not make the value larger.
  void keep_partials(const Node& node, const std::vector<int>& sources, const Choice& choice, Option& option) const {
    for (std::size_t m = 0; m < mesh_.axes().size(); ++m) {
      const bool is_used = std::any_of(choice.begin(), choice.end(), [&](const std::vector<int>& over) {
        return std::find(over.begin(), over.end(), static_cast<int>(m)) != over.end();
      });
      std::optional<ReduceKind> kind;
      bool is_one_kind = true;
      std::int64_t elements = 0;
      std::vector<std::uint8_t> partial;
      for (std::size_t i = 0; i < sources.size(); ++i) {
        const std::optional<ReduceKind> own = layout_of(sources[i]).partials[m];
        partial.push_back(own.has_value());
        if (!own) continue;
        is_one_kind = is_one_kind && (!kind || *kind == *own);
        kind = own;
        elements += graph_[node.inputs[i]].shape.elements();
      }
      if (is_used || !kind || !is_one_kind || node.shape.elements() > elements) continue;
      const std::unique_ptr<bool[]> flags(new bool[partial.size()]);
      std::copy(partial.begin(), partial.end(), flags.get());
      if (!keeps_partial(graph_, node, std::span<const bool>(flags.get(), partial.size()), *kind)) continue;
      for (std::size_t i = 0; i < sources.size(); ++i)
        if (partial[i]) option.inputs[i].partials[m] = kind;
      option.output.partials[m] = kind;
    }
  }

  // Whoever leaves a sum split pays for adding it up.
  double future_cost(const Node& node, const Layout& output) const {
    Layout whole = output;
    for (auto& partial : whole.partials) partial.reset();
    const DType dtype = is_float(node.dtype) && node.dtype != DType::f64 ? DType::f32 : node.dtype;
    return static_cast<double>(moved_bytes(output, whole, node.shape, bytes_per_element(dtype), mesh_));
  }

  std::uint64_t bytes_to(int value, const Layout& to) const {
    const Value& from = result_.values[index(value)];
    const Node& node = graph_[from.origin];
    return moved_bytes(from.layout, to, node.shape, bytes_per_element(node.dtype), mesh_);
  }

  // --- Exchanges ---

  // |value| with the layout |to|: made once, however many nodes need it.
  int converted(int value, const Layout& to) {
    if (layout_of(value) == to) return value;
    const auto [first, last] = conversions_.equal_range(value);
    for (auto known = first; known != last; ++known)
      if (layout_of(known->second) == to) return known->second;
    const NodeId origin = result_.values[index(value)].origin;
    int current = value;
    if (layout_of(current).partials != to.partials)
      current = add({Value::Kind::reduce, origin, reduced(layout_of(current), to), {current}, 0});
    if (layout_of(current) != to) {
      const bool is_here = is_local(layout_of(current), to, graph_[origin].shape, mesh_);
      current = add({is_here ? Value::Kind::part : Value::Kind::move, origin, to, {current}, 0});
    }
    conversions_.emplace(value, current);
    return current;
  }

  const Graph& graph_;
  const Mesh& mesh_;
  const MeshOptions& options_;
  Partition result_;
  std::vector<int> value_of_;            // per node
  std::multimap<int, int> conversions_;  // value, the same in another layout
};

void check_sharding(const Node& input, const Sharding& sharding, const Mesh& mesh) {
  const std::string& name = input.as<InputAttr>().name;
  if (static_cast<int>(sharding.axes.size()) > input.shape.rank())
    throw Error(ErrorCode::invalid_argument, fmt::format("the sharding [{}] of {} has {} axes, but its shape is {}",
                                                         sharding.text(), name, sharding.axes.size(), to_string(input.shape)));
  std::vector<int> used;
  for (const auto& axes : sharding.axes)
    for (const std::string& axis : axes) {
      const int mesh_axis = mesh.axis(axis);
      if (std::find(used.begin(), used.end(), mesh_axis) != used.end())
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("the sharding [{}] of {} uses the mesh axis {} twice", sharding.text(), name, axis));
      used.push_back(mesh_axis);
    }
}

}  // namespace

void check_options(const Graph& graph, const Mesh& mesh, const MeshOptions& options) {
  for (const auto& [name, sharding] : options.inputs) {
    const auto& inputs = graph.inputs();
    const auto found =
        std::find_if(inputs.begin(), inputs.end(), [&](NodeId id) { return graph[id].as<InputAttr>().name == name; });
    if (found != inputs.end()) {
      check_sharding(graph[*found], sharding, mesh);
      continue;
    }
    std::vector<std::string> names;
    for (const NodeId input : inputs) names.push_back(graph[input].as<InputAttr>().name);
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a sharding is given for {}, but the program has no input of that name", name),
                fmt::format("its inputs are: {}", fmt::join(names, ", ")));
  }
  if (!options.speeds.empty() && options.speeds.size() != index(mesh.size()))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} speeds are given for {} devices", options.speeds.size(), mesh.size()));
  for (const double speed : options.speeds)
    if (!(speed > 0 && speed < 1e30))
      throw Error(ErrorCode::invalid_argument, fmt::format("a device's speed must be positive, not {}", speed));
}

Partition partition(const Graph& graph, const Mesh& mesh, const MeshOptions& options) {
  check_options(graph, mesh, options);
  Partition result = Partitioner(graph, mesh, options).take();
  overlap_exchanges(graph, mesh, result);
  return result;
}

DType exchanged_type(const Graph& graph, const Value& value) {
  const DType dtype = graph[value.origin].dtype;
  const bool is_narrow = is_block(dtype) || (value.kind == Value::Kind::reduce && (dtype == DType::f16 || dtype == DType::bf16));
  return is_narrow ? DType::f32 : dtype;
}

Collective describe(const Graph& graph, const Mesh& mesh, const Partition& partition, const Value& exchange) {
  const Layout& from = partition.values[index(exchange.inputs[0])].layout;
  const Node& node = graph[exchange.origin];
  Collective result;
  result.value = fmt::format("%{}", exchange.origin);
  result.dtype = exchanged_type(graph, exchange);
  result.shape = node.shape;
  result.from = text_of(from, mesh);
  result.to = text_of(exchange.layout, mesh);
  bool scatters = false, gathers = false;
  for (int m = 0; m < static_cast<int>(mesh.axes().size()); ++m) {
    const bool was = from.splits_over(m), is = exchange.layout.splits_over(m);
    if (from.partials[index(m)] != exchange.layout.partials[index(m)] || was != is)
      result.axes.push_back(mesh.axes()[index(m)].name);
    scatters = scatters || (is && !was);
    gathers = gathers || (was && !is);
  }
  using Kind = Collective::Kind;
  if (exchange.kind == Value::Kind::reduce)
    result.kind = scatters ? Kind::reduce_scatter : Kind::all_reduce;
  else if (gathers && !scatters)
    result.kind = Kind::all_gather;
  else if (!gathers && !scatters)
    result.kind = Kind::all_to_all;
  else
    result.kind = Kind::move;
  if (result.axes.empty())
    for (const Split& split : from.splits)
      for (const int m : split.over) result.axes.push_back(mesh.axes()[index(m)].name);
  result.bytes = moved_bytes(from, exchange.layout, node.shape, bytes_per_element(result.dtype), mesh);
  return result;
}

}  // namespace tenon::mesh

#include "backends/cpu/compile/compiler.h"

#include "array/block_format.h"
#include "backends/cpu/compile/round_moved.h"
#include "backends/cpu/products/integer/gemm_int8.h"
#include "backends/cpu/products/integer/integer_products.h"
#include "backends/cpu/products/integer/kept_floats.h"
#include "graph/optimize/simplify.h"

namespace tenon::cpu {
namespace {

class LoopStep final : public ExecutableStep {
 public:
  explicit LoopStep(Loop loop) : loop_(std::move(loop)) {}
  void run(const StepContext& context) const override { loop_.run(context.pool, context.locations, context.scratch); }

 private:
  Loop loop_;
};

// Scores that stay in the caches anyway are as fast as products of their own, in 16 bits faster (bench_survey, one core).
bool is_worth_one_step(const Graph& graph, const Region& region, const AttentionAttr& attr) {
  const Shape &q = graph[region.inputs[0]].shape, &k = graph[region.inputs[1]].shape;
  const std::int64_t enough = graph[region.output].dtype == DType::f32 ? 128 : 512;
  return attr.causal || q[1] != k[1] || k[2] >= enough;
}

// The ops that run as one step. Other regions run as the nodes they consist of.
bool takes_region(const Graph& graph, const Region& region) {
  if (std::holds_alternative<TopKAttr>(region.attr) || std::holds_alternative<QuantizedMatMulAttr>(region.attr)) return true;
  if (std::holds_alternative<ForestAttr>(region.attr)) {
    const Prim nodes = graph[region.inputs[1]].prim;
    return nodes == Prim::input || nodes == Prim::constant;
  }
  const DType dtype = graph[region.output].dtype;
  if (compute_dtype(dtype) != DType::f32 || is_block(dtype)) return false;
  if (std::holds_alternative<AdaptivePoolAttr>(region.attr)) return true;
  if (std::holds_alternative<ConvTransposeAttr>(region.attr)) return graph[region.inputs[1]].shape.elements() > 0;
  const auto* attention = std::get_if<AttentionAttr>(&region.attr);
  return attention && is_worth_one_step(graph, region, *attention);
}

BlockedGraph fused_graph(const Graph& graph, const FusionLimits& limits) {
  const Graph simple = simplify(graph, takes_region);
  if (limits.max_nodes <= 1) return {{simple, {}, {}}, {}};
  const Graph ops = simplify(round_moved(recognise_ops(simple)));
  if (!has_int8_gemm()) return block_channels(absorb_epilogues(keep_floats(ops), {}));
  const IntegerGraph integers = recognise_integer_products(ops);
  return block_channels(absorb_epilogues(keep_floats(integers.graph), integers.products));
}

}  // namespace

void convert_dense(ThreadPool& pool, DType from, const std::byte* in, DType to, std::byte* out, std::int64_t n) {
  constexpr std::int64_t kChunk = 32768;
  const ConvertKernel convert = kernels().convert[static_cast<int>(from)][static_cast<int>(to)];
  const auto part = [&](std::int64_t chunk) {
    const std::int64_t first = chunk * kChunk;
    convert(in + static_cast<std::size_t>(first) * element_bytes(from), out + static_cast<std::size_t>(first) * element_bytes(to),
            std::min(kChunk, n - first));
  };
  const std::int64_t chunks = (n + kChunk - 1) / kChunk;
  pool.for_each(chunks, [&](std::int64_t chunk, int) { part(chunk); });
}

ExecutableCompiler::ExecutableCompiler(CpuExecutable& program, const Graph& graph, const FusionLimits& limits)
    : program_(program),
      blocked_(fused_graph(graph, limits)),
      fused_(blocked_.fused),
      graph_(fused_.graph),
      plan_(fuse(graph_, limits)),
      inputs_(graph_.inputs().size()),
      outputs_(graph_.outputs().size()) {}

void ExecutableCompiler::run() {
  for (NodeId id : graph_.inputs()) program_.input_types_.push_back({graph_[id].dtype, graph_[id].shape});
  for (NodeId id : graph_.outputs()) program_.output_types_.push_back({graph_[id].dtype, graph_[id].shape});
  count_readers();
  find_moved();
  find_joined();
  place_leaves();
  place_outputs();
  for (const Step& step : plan_.steps) {
    if (step.group >= 0)
      add_group(step.group);
    else
      add_primitive(step.node);
  }
  finish_outputs();
  plan_workspace();
}

std::vector<Place> ExecutableCompiler::targets(NodeId output) const {
  std::vector<Place> places;
  if (const auto direct = direct_outputs_.find(output); direct != direct_outputs_.end())
    for (int index : direct->second) places.push_back({output_location(index), graph_[output].dtype});
  const auto own = sources_.find(output);
  if (own != sources_.end() &&
      std::none_of(places.begin(), places.end(), [&](const Place& p) { return p.location == own->second.location; }))
    places.push_back(own->second);
  return places;
}

int ExecutableCompiler::new_location(CpuExecutable::Fixed fixed) {
  program_.fixed_locations_.push_back(fixed);
  return static_cast<int>(inputs_ + outputs_ + program_.fixed_locations_.size()) - 1;
}

int ExecutableCompiler::new_temporary(DType dtype, const Shape& shape) {
  const int location = new_location({});
  temporaries_.add(location, storage_bytes(dtype, shape), current_step());
  return location;
}

void ExecutableCompiler::plan_workspace() {
  const std::size_t total = temporaries_.place(
      [&](int location, std::size_t offset) { program_.fixed_locations_[at(location) - inputs_ - outputs_].offset = offset; });
  program_.scratch_offset_ = total;
  program_.workspace_bytes_ = total + scratch_bytes_;
}

void ExecutableCompiler::count_readers() {
  const auto read = [&](NodeId operand, int group) {
    if (group >= 0 && member_behind(graph_, plan_, group, operand)) return;
    ++readers_[base_of(operand)];
  };
  for (const Step& step : plan_.steps) {
    if (step.group >= 0) {
      for (NodeId n : plan_.groups[at(step.group)].nodes)
        for (NodeId operand : graph_[n].inputs) read(operand, step.group);
    } else {
      for (NodeId operand : graph_[step.node].inputs) read(operand, -1);
    }
  }
  for (NodeId id : graph_.outputs())
    if (base_of(id) != id && !is_written_directly(id)) ++readers_[base_of(id)];
}

void ExecutableCompiler::find_moved() {
  moved_.assign(at(graph_.size()), false);
  moved_views_ = plan_.views;
  for (NodeId id = 0; id < graph_.size(); ++id) {
    const Node& node = graph_[id];
    if ((node.dtype != DType::f16 && node.dtype != DType::bf16) || plan_.group_of[at(id)] >= 0) continue;
    const auto is_moved = [&](NodeId operand) {
      const NodeId base = base_of(operand);
      return (moved_[at(base)] || is_stored_rounded(base)) && graph_[base].dtype == node.dtype;
    };
    switch (node.prim) {
      case Prim::input:
      case Prim::constant: moved_[at(id)] = true; break;
      case Prim::broadcast:
      case Prim::reshape:
      case Prim::transpose:
      case Prim::slice:
      case Prim::pad:
      case Prim::take:
      case Prim::gather: moved_[at(id)] = base_of(id) == id && is_moved(node.inputs[0]); break;
      case Prim::scatter: {
        // Sums are rounded, so nobody else in the program may read them.
        const auto& attr = node.as<ScatterAttr>();
        const bool adds16 = attr.add && !readers_.count(id) &&
                            has_scatter_add16(program_.pool_, node.dtype, graph_[node.inputs[1]].shape, node.shape, attr.axis);
        moved_[at(id)] = (!attr.add || adds16) && is_moved(node.inputs[0]) && is_moved(node.inputs[2]);
        break;
      }
      case Prim::concat: moved_[at(id)] = std::ranges::all_of(node.inputs, is_moved); break;
      default: break;
    }
  }
}

bool ExecutableCompiler::is_stored_rounded(NodeId id) const {
  const DType dtype = graph_[id].dtype;
  return (dtype == DType::f16 || dtype == DType::bf16) && memory_dtype(graph_, plan_, id) == dtype;
}

void ExecutableCompiler::place_leaves() {
  for (std::size_t i = 0; i < inputs_; ++i) {
    const NodeId id = graph_.inputs()[i];
    sources_[id] = {static_cast<int>(i), graph_[id].dtype};
    if (moved_[at(id)]) narrow_[id] = sources_[id];
    if (is_block(graph_[id].dtype) && readers_.count(id)) decode_input(id);
  }
  for (NodeId id = 0; id < graph_.size(); ++id) {
    if (graph_[id].prim != Prim::constant) continue;
    HostArray value = graph_[id].as<ConstantAttr>().value;
    if (is_block(value.dtype())) value = value.cast(DType::f32);
    program_.constants_.push_back(value);
    sources_[id] = {new_location({0, value.data()}), value.dtype()};
    if (moved_[at(id)]) narrow_[id] = sources_[id];
  }
}

void ExecutableCompiler::decode_input(NodeId id) {
  const DType block = graph_[id].dtype;
  const Shape shape = graph_[id].shape;
  const int from = sources_[id].location, to = new_temporary(DType::f32, shape);
  add_step(
      [=](const StepContext& c) { decode_block(block, shape, c.locations[from], reinterpret_cast<float*>(c.locations[to])); });
  sources_[id] = {to, DType::f32};
}

bool ExecutableCompiler::is_written_directly(NodeId output) const {
  const ValueView& view = plan_.views[at(output)];
  const Node &node = graph_[output], &base = graph_[view.base];
  if (base.prim == Prim::input || base.prim == Prim::constant || is_block(base.dtype)) return false;
  if (view.base == output) return true;
  return base.dtype == node.dtype && view.offset == 0 && base.shape.elements() == node.shape.elements() && is_dense(view);
}

void ExecutableCompiler::place_outputs() {
  for (std::size_t i = 0; i < outputs_; ++i) {
    const NodeId id = graph_.outputs()[i];
    written_directly_.push_back(is_written_directly(id));
    if (written_directly_[i]) direct_outputs_[base_of(id)].push_back(static_cast<int>(i));
  }
  for (const auto& [id, indices] : direct_outputs_)
    if (is_stored_as_declared(id)) sources_[id] = {output_location(indices[0]), graph_[id].dtype};
}

bool ExecutableCompiler::is_stored_as_declared(NodeId id) const {
  if (moved_[at(id)]) return true;
  const bool by_loop = plan_.group_of[at(id)] >= 0;
  return (by_loop ? memory_dtype(graph_, plan_, id) : compute_dtype(graph_[id].dtype)) == graph_[id].dtype;
}

void ExecutableCompiler::place_value(NodeId id) {
  if (sources_.count(id)) return;
  const bool only_output = direct_outputs_.count(id) && !readers_.count(id);
  if (only_output && plan_.group_of[at(id)] >= 0) return;  // the loop converts into the output itself
  const DType dtype = is_stored_as_declared(id) ? graph_[id].dtype : compute_dtype(graph_[id].dtype);
  sources_[id] = {new_temporary(dtype, graph_[id].shape), dtype};
}

Operand ExecutableCompiler::operand_of(const ValueView& view, const Place& place) {
  Operand operand;
  operand.location = place.location;
  operand.offset_bytes = at(view.offset) * element_bytes(place.stored);
  operand.view = {nullptr, place.stored, view.shape, view.strides};
  touch(place.location);
  return operand;
}

Operand ExecutableCompiler::value(NodeId id) {
  const ValueView view = plan_.views[at(id)];
  const Place place = sources_.at(view.base);
  const DType wanted = compute_dtype(graph_[id].dtype);
  if (place.stored == wanted) return operand_of(view, place);
  const Shape shape = graph_[view.base].shape;
  const std::int64_t n = shape.elements();
  touch(place.location);
  const int to = new_temporary(wanted, shape);
  add_step([=](const StepContext& c) {
    convert_dense(c.pool, place.stored, c.locations[place.location], wanted, c.locations[to], n);
  });
  sources_[view.base] = {to, wanted};
  return operand_of(view, sources_[view.base]);
}

Operand ExecutableCompiler::dense_value(NodeId id) {
  const Operand operand = value(id);
  if (is_dense(plan_.views[at(id)])) {
    Operand dense = operand;
    dense.view.strides = contiguous_strides(operand.view.shape);
    return dense;
  }
  return copied(id, operand);
}

Operand ExecutableCompiler::stored_dense(NodeId id) {
  const Operand operand = stored_value(id);
  return is_dense(plan_.views[at(id)]) ? operand : copied(id, operand);
}

Operand ExecutableCompiler::source_of(NodeId id, NodeId operand) {
  if (!moved_[at(id)]) return value(operand);
  const ValueView& view = moved_views_[at(operand)];
  return operand_of(view, narrow_.at(view.base));
}

Operand ExecutableCompiler::dense_source_of(NodeId id, NodeId operand) {
  if (!moved_[at(id)]) return dense_value(operand);
  Operand x = source_of(id, operand);
  if (is_dense(moved_views_[at(operand)])) {
    x.view.strides = contiguous_strides(x.view.shape);
    return x;
  }
  touch(x.location);
  const Result result{new_temporary(x.view.dtype, x.view.shape), x.view.dtype, x.view.shape};
  add_step([=](const StepContext& c) { copy(c.pool, x.bind(c), result.bind(c)); });
  return operand_of(whole_view(operand, x.view.shape), {result.location, result.dtype});
}

Operand ExecutableCompiler::copied(NodeId id, const Operand& operand) {
  touch(operand.location);
  const Result result{new_temporary(operand.view.dtype, operand.view.shape), operand.view.dtype, operand.view.shape};
  add_step([=](const StepContext& c) { copy(c.pool, operand.bind(c), result.bind(c)); });
  plan_.views[at(id)] = whole_view(id, graph_[id].shape);
  sources_[id] = {result.location, result.dtype};
  return operand_of(plan_.views[at(id)], sources_[id]);
}

void ExecutableCompiler::expand(NodeId id, AxisSet axes) {
  Operand operand = stored_value(id);
  Shape shape = operand.view.shape;
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (operand.view.strides[at(axis)] == 0 && !(axes >> axis & 1)) shape = shape.with(axis, 1);
  operand.view.shape = shape;
  const Result result{new_temporary(operand.view.dtype, shape), operand.view.dtype, shape};
  touch(operand.location);
  add_step([=](const StepContext& c) { copy(c.pool, operand.bind(c), result.bind(c)); });
  plan_.views[at(id)] = whole_view(id, graph_[id].shape);
  const Strides dense = contiguous_strides(shape);
  for (int axis = 0; axis < shape.rank(); ++axis) plan_.views[at(id)].strides[at(axis)] = shape[axis] == 1 ? 0 : dense[at(axis)];
  sources_[id] = {result.location, result.dtype};
}

void ExecutableCompiler::add_group(int index) {
  const Group& group = plan_.groups[at(index)];
  std::vector<NodeId> operands;
  for (NodeId n : group.nodes)
    for (NodeId operand : graph_[n].inputs)
      if (!member_behind(graph_, plan_, index, operand)) operands.push_back(operand);
  for (NodeId operand : operands)
    if (!loop_can_read(graph_, plan_, group, operand)) copied(operand, stored_value(operand));
  const std::set<NodeId> all(operands.begin(), operands.end());
  std::map<NodeId, AxisSet> expanded;
  for (NodeId operand : all)
    if (graph_[operand].shape == group.domain)
      if (const AxisSet axes = axes_to_expand(graph_, plan_, group, all, operand)) expanded[operand] = axes;
  for (const auto& [operand, axes] : expanded) expand(operand, axes);
  for (NodeId operand : operands) touch(sources_.at(base_of(operand)).location);
  for (NodeId id : group.outputs) {
    place_value(id);
    if (const auto place = sources_.find(id); place != sources_.end() && is_stored_rounded(id)) narrow_[id] = place->second;
    for (const Place& place : targets(id)) touch(place.location);
  }
  Loop loop(graph_, plan_, index, *this, program_.pool_.threads());
  reserve_scratch(loop.scratch_bytes());
  program_.steps_.push_back(std::make_unique<LoopStep>(std::move(loop)));
}

Result ExecutableCompiler::result_of(NodeId id) {
  place_value(id);
  if (moved_[at(id)] || is_stored_rounded(id)) narrow_[id] = sources_[id];
  touch(sources_[id].location);
  return {sources_[id].location, sources_[id].stored, graph_[id].shape};
}

std::optional<Result> ExecutableCompiler::narrow_result_of(NodeId id) {
  const DType dtype = graph_[id].dtype;
  const auto direct = direct_outputs_.find(id);
  if (direct != direct_outputs_.end() && !readers_.count(id))
    sources_[id] = {output_location(direct->second[0]), dtype};
  else if (plan_.rounded[at(id)])
    sources_[id] = {new_temporary(dtype, graph_[id].shape), dtype};
  else
    return std::nullopt;
  narrow_[id] = sources_[id];
  touch(sources_[id].location);
  return Result{sources_[id].location, dtype, graph_[id].shape};
}

void ExecutableCompiler::deliver_converted(NodeId id) {
  const auto direct = direct_outputs_.find(id);
  if (direct == direct_outputs_.end()) return;
  const Place from = sources_.at(id);
  const std::int64_t n = graph_[id].shape.elements();
  const DType to = graph_[id].dtype;
  for (int index : direct->second) {
    const int location = output_location(index);
    if (location == from.location) continue;
    touch(from.location);
    add_step([=](const StepContext& c) {
      convert_dense(c.pool, from.stored, c.locations[from.location], to, c.locations[location], n);
    });
  }
}

void ExecutableCompiler::finish_outputs() {
  for (std::size_t i = 0; i < outputs_; ++i) {
    const NodeId id = graph_.outputs()[i];
    if (written_directly_[i]) continue;
    const DType dtype = graph_[id].dtype;
    const Shape shape = graph_[id].shape;
    const int to = output_location(static_cast<int>(i));
    if (graph_[id].prim == Prim::input && is_block(dtype)) {
      const int from = static_cast<int>(std::find(graph_.inputs().begin(), graph_.inputs().end(), id) - graph_.inputs().begin());
      const std::size_t bytes = storage_bytes(dtype, shape);
      add_step([=](const StepContext& c) { std::copy_n(c.locations[from], bytes, c.locations[to]); });
    } else if (is_block(dtype)) {
      const Operand x = dense_value(id);
      touch(x.location);
      add_step(
          [=](const StepContext& c) { encode_block(dtype, shape, static_cast<const float*>(x.bind(c).data), c.locations[to]); });
    } else if (stored_value(id).view.dtype == dtype) {
      const Operand x = stored_value(id);
      add_step([=](const StepContext& c) { copy(c.pool, x.bind(c), dense_target(c.locations[to], dtype, shape)); });
    } else {
      const Operand x = dense_value(id);
      touch(x.location);
      add_step([=, n = shape.elements()](const StepContext& c) {
        convert_dense(c.pool, x.view.dtype, static_cast<const std::byte*>(x.bind(c).data), dtype, c.locations[to], n);
      });
    }
  }
}

CpuExecutable::CpuExecutable(const Graph& graph, ThreadPool& pool, const FusionLimits& limits) : pool_(pool) {
  ExecutableCompiler(*this, graph, limits).run();
}

}  // namespace tenon::cpu

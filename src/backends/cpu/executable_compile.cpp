#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "array/block_format.h"
#include "backends/cpu/executable.h"
#include "backends/cpu/primitives/attention.h"
#include "backends/cpu/primitives/conv_transpose.h"
#include "backends/cpu/primitives/primitives.h"
#include "backends/cpu/primitives/quantized_matmul.h"
#include "backends/cpu/primitives/selection.h"
#include "backends/cpu/products/absorb_epilogues.h"
#include "backends/cpu/products/conv_packed.h"
#include "backends/cpu/products/matmul_int8.h"
#include "backends/cpu/products/matmul_packed.h"
#include "graph/simplify.h"
#include "hal/temporary_plan.h"
#include "tenon/error.h"

namespace tenon::cpu {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

enum PackedKind : std::int64_t { kPackedRight, kPackedConv, kPackedInt8 };

template <class Call>
class CallStep final : public ExecutableStep {
 public:
  explicit CallStep(Call call) : call_(std::move(call)) {}
  void run(const StepContext& context) const override { call_(context); }

 private:
  Call call_;
};

class LoopStep final : public ExecutableStep {
 public:
  explicit LoopStep(Loop loop) : loop_(std::move(loop)) {}
  void run(const StepContext& context) const override { loop_.run(context.pool, context.locations, context.scratch); }

 private:
  Loop loop_;
};

// A value by location, which a step uses to find it when it runs.
struct Operand {
  int location = -1;
  std::size_t offset_bytes = 0;
  View view;  // without its data

  View bind(const StepContext& context) const {
    View bound = view;
    bound.data = context.locations[location] + offset_bytes;
    return bound;
  }
};

struct Result {
  int location = -1;
  DType dtype = DType::f32;
  Shape shape;

  Target bind(const StepContext& context) const { return dense_target(context.locations[location], dtype, shape); }
};

// The ops that run as one step. Other regions run as the nodes they consist of.
bool takes_region(const Graph& graph, const Region& region) {
  if (std::holds_alternative<TopKAttr>(region.attr) || std::holds_alternative<QuantizedMatMulAttr>(region.attr)) return true;
  const DType dtype = graph[region.output].dtype;
  if (compute_dtype(dtype) != DType::f32 || is_block(dtype)) return false;
  if (std::holds_alternative<ConvTransposeAttr>(region.attr)) return graph[region.inputs[1]].shape.elements() > 0;
  return std::holds_alternative<AttentionAttr>(region.attr);
}

FusedGraph fused_graph(const Graph& graph, const FusionLimits& limits) {
  const Graph simple = simplify(graph, takes_region);
  if (limits.max_nodes <= 1) return {simple, {}, {}};
  const Graph ops = simplify(recognise_ops(simple));
  if (!has_int8_gemm()) return absorb_epilogues(ops, {});
  const IntegerGraph integers = recognise_integer_products(ops);
  return absorb_epilogues(integers.graph, integers.products);
}

void convert_dense(ThreadPool& pool, DType from, const std::byte* in, DType to, std::byte* out, std::int64_t n) {
  constexpr std::int64_t kChunk = 32768;
  const ConvertKernel convert = kernels().convert[static_cast<int>(from)][static_cast<int>(to)];
  const auto part = [&](std::int64_t chunk) {
    const std::int64_t first = chunk * kChunk;
    convert(in + at(first) * element_bytes(from), out + at(first) * element_bytes(to), std::min(kChunk, n - first));
  };
  const std::int64_t chunks = (n + kChunk - 1) / kChunk;
  pool.for_each(chunks, [&](std::int64_t chunk, int) { part(chunk); });
}

}  // namespace

class ExecutableCompiler final : public ValuePlacement {
 public:
  ExecutableCompiler(CpuExecutable& program, const Graph& graph, const FusionLimits& limits)
      : program_(program),
        fused_(fused_graph(graph, limits)),
        graph_(fused_.graph),
        plan_(fuse(graph_, limits)),
        inputs_(graph_.inputs().size()),
        outputs_(graph_.outputs().size()) {}

  void run() {
    for (NodeId id : graph_.inputs()) program_.input_types_.push_back({graph_[id].dtype, graph_[id].shape});
    for (NodeId id : graph_.outputs()) program_.output_types_.push_back({graph_[id].dtype, graph_[id].shape});
    count_readers();
    find_moved();
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

  Place source(NodeId base) const override { return sources_.at(base); }

  std::vector<Place> targets(NodeId output) const override {
    std::vector<Place> places;
    if (const auto direct = direct_outputs_.find(output); direct != direct_outputs_.end())
      for (int index : direct->second) places.push_back({output_location(index), graph_[output].dtype});
    const auto own = sources_.find(output);
    if (own != sources_.end() &&
        std::none_of(places.begin(), places.end(), [&](const Place& p) { return p.location == own->second.location; }))
      places.push_back(own->second);
    return places;
  }

 private:
  int output_location(int index) const { return static_cast<int>(inputs_) + index; }
  NodeId base_of(NodeId id) const { return plan_.views[at(id)].base; }

  // --- Memory ---

  int new_location(CpuExecutable::Fixed fixed) {
    program_.fixed_locations_.push_back(fixed);
    return static_cast<int>(inputs_ + outputs_ + program_.fixed_locations_.size()) - 1;
  }
  int current_step() const { return static_cast<int>(program_.steps_.size()); }

  int new_temporary(DType dtype, const Shape& shape) {
    const int location = new_location({});
    temporaries_.add(location, storage_bytes(dtype, shape), current_step());
    return location;
  }
  // The step about to be added reads or writes |location|.
  void touch(int location) { temporaries_.touch(location, current_step()); }

  void reserve_scratch(std::size_t bytes) { scratch_bytes_ = std::max(scratch_bytes_, bytes); }

  void plan_workspace() {
    const std::size_t total = temporaries_.place(
        [&](int location, std::size_t offset) { program_.fixed_locations_[at(location) - inputs_ - outputs_].offset = offset; });
    program_.scratch_offset_ = total;
    program_.workspace_bytes_ = total + scratch_bytes_;
  }

  // --- Values ---

  void count_readers() {
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
      if (base_of(id) != id) ++readers_[base_of(id)];
  }

  // 16-bit values that ops only move stay as they are; others are computed in f32.
  void find_moved() {
    moved_.assign(at(graph_.size()), false);
    moved_views_ = plan_.views;
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_[id];
      if ((node.dtype != DType::f16 && node.dtype != DType::bf16) || plan_.group_of[at(id)] >= 0) continue;
      const auto is_moved = [&](NodeId operand) {
        return moved_[at(base_of(operand))] && graph_[base_of(operand)].dtype == node.dtype;
      };
      switch (node.prim) {
        case Prim::input:
        case Prim::constant: moved_[at(id)] = true; break;
        case Prim::broadcast:
        case Prim::reshape:
        case Prim::transpose:
        case Prim::slice:
        case Prim::take:
        case Prim::gather: moved_[at(id)] = base_of(id) == id && is_moved(node.inputs[0]); break;
        case Prim::concat: moved_[at(id)] = std::ranges::all_of(node.inputs, is_moved); break;
        default: break;
      }
    }
  }

  void place_leaves() {
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

  void decode_input(NodeId id) {
    const DType block = graph_[id].dtype;
    const Shape shape = graph_[id].shape;
    const int from = sources_[id].location, to = new_temporary(DType::f32, shape);
    add_step(
        [=](const StepContext& c) { decode_block(block, shape, c.locations[from], reinterpret_cast<float*>(c.locations[to])); });
    sources_[id] = {to, DType::f32};
  }

  // Results that are computed in the output's own dtype, and not read in another dtype, are written directly to the output.
  void place_outputs() {
    for (std::size_t i = 0; i < outputs_; ++i) {
      const NodeId id = graph_.outputs()[i];
      const Node& node = graph_[id];
      const bool computed = base_of(id) == id && node.prim != Prim::input && node.prim != Prim::constant && !is_block(node.dtype);
      if (computed) direct_outputs_[id].push_back(static_cast<int>(i));
    }
    for (const auto& [id, indices] : direct_outputs_)
      if (is_stored_as_declared(id)) sources_[id] = {output_location(indices[0]), graph_[id].dtype};
  }

  // A loop converts while it stores; primitives write their compute type, or move values as they are.
  bool is_stored_as_declared(NodeId id) const {
    if (moved_[at(id)]) return true;
    const bool by_loop = plan_.group_of[at(id)] >= 0;
    return (by_loop ? memory_dtype(graph_, plan_, id) : compute_dtype(graph_[id].dtype)) == graph_[id].dtype;
  }

  // Memory for a computed value that is read inside the program.
  void place_value(NodeId id) {
    if (sources_.count(id)) return;
    const bool only_output = direct_outputs_.count(id) && !readers_.count(id);
    if (only_output && plan_.group_of[at(id)] >= 0) return;  // the loop converts into the output itself
    const DType dtype = is_stored_as_declared(id) ? graph_[id].dtype : compute_dtype(graph_[id].dtype);
    sources_[id] = {new_temporary(dtype, graph_[id].shape), dtype};
  }

  template <class Call>
  void add_step(Call call) {
    program_.steps_.push_back(std::make_unique<CallStep<Call>>(std::move(call)));
  }

  Operand operand_of(const ValueView& view, const Place& place) {
    Operand operand;
    operand.location = place.location;
    operand.offset_bytes = at(view.offset) * element_bytes(place.stored);
    operand.view = {nullptr, place.stored, view.shape, view.strides};
    touch(place.location);
    return operand;
  }

  // The value of |id| in its compute type, addressed in any way.
  Operand value(NodeId id) {
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

  // The value of |id| in its compute type, in dense memory.
  Operand dense_value(NodeId id) {
    const Operand operand = value(id);
    if (is_dense(plan_.views[at(id)])) {
      Operand dense = operand;
      dense.view.strides = contiguous_strides(operand.view.shape);
      return dense;
    }
    return copied(id, operand);
  }

  // Copies the value; later readers of |id| use the copy.
  Operand copied(NodeId id, const Operand& operand) {
    touch(operand.location);
    const Result result{new_temporary(operand.view.dtype, operand.view.shape), operand.view.dtype, operand.view.shape};
    add_step([=](const StepContext& c) { copy(c.pool, operand.bind(c), result.bind(c)); });
    plan_.views[at(id)] = whole_view(id, graph_[id].shape);
    sources_[id] = {result.location, result.dtype};
    return operand_of(plan_.views[at(id)], sources_[id]);
  }

  // --- Steps ---

  void add_group(int index) {
    const Group& group = plan_.groups[at(index)];
    std::vector<NodeId> operands;
    for (NodeId n : group.nodes)
      for (NodeId operand : graph_[n].inputs)
        if (!member_behind(graph_, plan_, index, operand)) operands.push_back(operand);
    for (NodeId operand : operands)
      if (!loop_can_read(graph_, plan_, group, operand)) copied(operand, stored_value(operand));
    for (NodeId operand : operands) touch(sources_.at(base_of(operand)).location);
    for (NodeId id : group.outputs) {
      place_value(id);
      for (const Place& place : targets(id)) touch(place.location);
    }
    Loop loop(graph_, plan_, index, *this, program_.pool_.threads());
    reserve_scratch(loop.scratch_bytes());
    program_.steps_.push_back(std::make_unique<LoopStep>(std::move(loop)));
  }

  // As it is stored: a loop converts while it reads.
  Operand stored_value(NodeId id) { return operand_of(plan_.views[at(id)], sources_.at(base_of(id))); }

  // What an op that only moves elements reads: as it is stored where the result is, else in the compute type.
  Operand source_of(NodeId id, NodeId operand) {
    if (!moved_[at(id)]) return value(operand);
    const ValueView& view = moved_views_[at(operand)];
    return operand_of(view, narrow_.at(view.base));
  }
  Operand dense_source_of(NodeId id, NodeId operand) {
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

  Result result_of(NodeId id) {
    place_value(id);
    if (moved_[at(id)]) narrow_[id] = sources_[id];
    touch(sources_[id].location);
    return {sources_[id].location, sources_[id].stored, graph_[id].shape};
  }

  void add_primitive(NodeId id) {
    const Node& node = graph_[id];
    switch (node.prim) {
      case Prim::broadcast:
      case Prim::reshape:
      case Prim::transpose:
      case Prim::slice: add_copy(id); break;
      case Prim::cast: add_block_cast(id); break;
      case Prim::pad: add_pad(id); break;
      case Prim::concat: add_concat(id); break;
      case Prim::matmul: add_matmul(id); break;
      case Prim::conv: add_conv(id); break;
      case Prim::scatter: add_scatter(id); break;
      case Prim::arg_sort: add_arg_sort(id); break;
      case Prim::window:
        add_unary(id, [attr = node.as<WindowAttr>()](const StepContext& c, const View& x, const Target& out) {
          window(c.pool, x, attr, out);
        });
        break;
      case Prim::arg_reduce:
        add_unary(id, [attr = node.as<ArgReduceAttr>()](const StepContext& c, const View& x, const Target& out) {
          arg_reduce(c.pool, x, attr, out);
        });
        break;
      case Prim::cumulative:
        add_unary(id, [attr = node.as<CumulativeAttr>()](const StepContext& c, const View& x, const Target& out) {
          cumulative(c.pool, x, attr, out);
        });
        break;
      case Prim::take:
        add_binary(id, [axis = node.as<AxisAttr>().axis](const StepContext& c, const View& x, const View& i, const Target& out) {
          take(c.pool, x, i, axis, out);
        });
        break;
      case Prim::gather:
        add_binary(id, [axis = node.as<AxisAttr>().axis](const StepContext& c, const View& x, const View& i, const Target& out) {
          gather(c.pool, x, i, axis, out);
        });
        break;
      case Prim::iota: {
        const Result result = result_of(id);
        add_step([=, attr = node.as<AxisAttr>()](const StepContext& c) { iota(c.pool, attr, result.bind(c)); });
        break;
      }
      case Prim::random: {
        const Result result = result_of(id);
        add_step([=, attr = node.as<RandomAttr>()](const StepContext& c) { random(c.pool, attr, result.bind(c)); });
        break;
      }
      case Prim::region:
        if (std::holds_alternative<TopKAttr>(node.as<RegionAttr>()))
          add_selection(id);
        else if (std::holds_alternative<ConvTransposeAttr>(node.as<RegionAttr>()))
          add_conv_transpose(id);
        else if (std::holds_alternative<QuantizedMatMulAttr>(node.as<RegionAttr>()))
          add_quantized_matmul(id);
        else
          add_attention(id);
        break;
      default: throw Error(ErrorCode::internal, std::string("the CPU has no step for ") + std::string(name(node.prim)));
    }
    if (plan_.rounded[at(id)]) round_value(id);
    deliver_converted(id);
  }

  // A product that others read in its own dtype, 16 bits.
  void round_value(NodeId id) {
    const Place from = sources_.at(id);
    const DType to = graph_[id].dtype;
    const std::int64_t n = graph_[id].shape.elements();
    touch(from.location);
    const int location = new_temporary(to, graph_[id].shape);
    add_step([=](const StepContext& c) {
      convert_dense(c.pool, from.stored, c.locations[from.location], to, c.locations[location], n);
    });
    sources_[id] = {location, to};
  }

  template <class Call>
  void add_unary(NodeId id, Call call) {
    const Operand x = dense_value(graph_[id].inputs[0]);
    const Result out = result_of(id);
    touch(x.location);
    add_step([=](const StepContext& c) { call(c, x.bind(c), out.bind(c)); });
  }

  template <class Call>
  void add_binary(NodeId id, Call call) {
    const Operand x = dense_source_of(id, graph_[id].inputs[0]), y = dense_value(graph_[id].inputs[1]);
    const Result out = result_of(id);
    touch(x.location);
    touch(y.location);
    add_step([=](const StepContext& c) { call(c, x.bind(c), y.bind(c), out.bind(c)); });
  }

  void add_copy(NodeId id) {
    const NodeId source = graph_[id].inputs[0];
    const Operand x = source_of(id, source);
    // The copy is of the input in its own shape; the new shape only renames the dense result.
    const Result out = result_of(id);
    touch(x.location);
    const Result renamed{out.location, out.dtype, x.view.shape};
    add_step([=](const StepContext& c) { copy(c.pool, x.bind(c), renamed.bind(c)); });
  }

  // Rounds to the values a block format can hold.
  void add_block_cast(NodeId id) {
    const Node& node = graph_[id];
    Operand x = dense_value(node.inputs[0]);
    const std::int64_t n = node.shape.elements();
    const std::int64_t cols = node.shape.rank() > 0 ? node.shape[node.shape.rank() - 1] : 1;
    const std::int64_t rows = cols > 0 ? n / cols : 0;
    if (x.view.dtype != DType::f32) {
      const DType from = x.view.dtype;
      touch(x.location);
      const int to = new_temporary(DType::f32, node.shape);
      add_step([=](const StepContext& c) {
        convert_dense(c.pool, from, static_cast<const std::byte*>(x.bind(c).data), DType::f32, c.locations[to], n);
      });
      x = operand_of(whole_view(id, node.shape), {to, DType::f32});
    }
    const Result out = result_of(id);
    touch(x.location);
    add_step([=, block = node.dtype](const StepContext& c) {
      round_trip_block(block, static_cast<const float*>(x.bind(c).data), static_cast<float*>(out.bind(c).data), rows, cols);
    });
  }

  void add_pad(NodeId id) {
    const Node& node = graph_[id];
    const Operand x = value(node.inputs[0]);
    const Result out = result_of(id);
    touch(x.location);
    std::int64_t offset = 0;
    const Strides strides = contiguous_strides(node.shape);
    for (int i = 0; i < node.shape.rank(); ++i) offset += node.as<PadAttr>().low[at(i)] * strides[at(i)];
    add_step([=, border = node.as<PadAttr>().value](const StepContext& c) {
      Target whole = out.bind(c);
      fill(c.pool, whole, border);
      Target middle{static_cast<std::byte*>(whole.data) + at(offset) * element_bytes(out.dtype), out.dtype, x.view.shape,
                    strides};
      copy(c.pool, x.bind(c), middle);
    });
  }

  void add_concat(NodeId id) {
    const Node& node = graph_[id];
    const int axis = node.as<AxisAttr>().axis;
    const Strides strides = contiguous_strides(node.shape);
    std::vector<Operand> parts;
    for (NodeId part : node.inputs) parts.push_back(source_of(id, part));
    const Result out = result_of(id);
    for (const Operand& part : parts) touch(part.location);
    add_step([=, parts = std::move(parts)](const StepContext& c) {
      std::int64_t position = 0;
      for (const Operand& part : parts) {
        Target target{static_cast<std::byte*>(out.bind(c).data) + at(position * strides[at(axis)]) * element_bytes(out.dtype),
                      out.dtype, part.view.shape, strides};
        copy(c.pool, part.bind(c), target);
        position += part.view.shape[axis];
      }
    });
  }

  Operand matrix(NodeId id) {
    Operand operand = value(id);
    return is_blas_layout(operand.view) ? operand : copied(id, operand);
  }

  // 16-bit operands, as they are stored.
  bool add_matmul16(NodeId id) {
    const Node& node = graph_[id];
    const Operand a = stored_value(node.inputs[0]), b = stored_value(node.inputs[1]);
    const MatMulAttr attr = node.as<MatMulAttr>();
    if (!has_matmul16(node.dtype, a.view, b.view, attr, node.shape) || !is_blas_layout(a.view) || !is_blas_layout(b.view))
      return false;
    const Result out = result_of(id);
    touch(a.location);
    touch(b.location);
    add_step([=](const StepContext& c) { matmul16(c.pool, a.bind(c), b.bind(c), attr, out.bind(c)); });
    return true;
  }

  void add_matmul(NodeId id) {
    if (fused_.integer_products.contains(id)) return add_integer_matmul(id);
    if (add_matmul16(id) || add_weight_matmul(id)) return;
    const Node& node = graph_[id];
    const Operand a = matrix(node.inputs[0]), b = matrix(node.inputs[1]);
    const BoundEpilogue epilogue = epilogue_of(id);
    const Result out = result_of(id);
    touch(a.location);
    touch(b.location);
    epilogue.touch_all(*this);
    add_step([=, attr = node.as<MatMulAttr>()](const StepContext& c) {
      matmul(c.pool, a.bind(c), b.bind(c), attr, out.bind(c));
      epilogue.run_alone(c, out);
    });
  }

  // --- Products with weights: an input of the program, packed once for all runs ---

  // What follows a product, with its operands.
  struct BoundEpilogue {
    Epilogue epilogue;
    std::vector<Operand> operands;
    std::int64_t channels = 1, cols = 1;

    void touch_all(ExecutableCompiler& compiler) const {
      for (const Operand& operand : operands) compiler.touch(operand.location);
    }
    // Calls |body| with the epilogue and the addresses of its operands.
    template <class Body>
    void with(const StepContext& c, Body body) const {
      std::array<const float*, 8> addresses{};
      for (std::size_t i = 0; i < operands.size(); ++i) addresses[i] = static_cast<const float*>(operands[i].bind(c).data);
      body(Finish{&epilogue, addresses.data(), channels, cols});
    }
    void run_alone(const StepContext& c, const Result& out) const {
      if (epilogue.empty()) return;
      with(c, [&](const Finish& finish) {
        finish_rows(c.pool, finish, out.shape.elements() / cols, static_cast<float*>(out.bind(c).data));
      });
    }
  };

  BoundEpilogue epilogue_of(NodeId id) {
    BoundEpilogue out;
    const Node& node = graph_[id];
    const Shape& shape = node.shape;
    const bool is_conv = node.prim == Prim::conv;
    out.channels = is_conv ? shape[1] : 1;
    out.cols = is_conv ? (shape.elements() == 0 ? 1 : shape.elements() / (shape[0] * shape[1])) : shape[shape.rank() - 1];
    if (const auto found = fused_.epilogues.find(id); found != fused_.epilogues.end()) {
      out.epilogue = found->second;
      for (std::size_t i = 2; i < node.inputs.size(); ++i) out.operands.push_back(dense_value(node.inputs[i]));
    }
    return out;
  }

  // The number of the input that |id| is a view of, if it is stored as f32; else -1.
  int weight_input(NodeId id) const {
    const NodeId base = base_of(id);
    const auto place = sources_.find(base);
    if (graph_[base].prim != Prim::input || place == sources_.end() || place->second.stored != DType::f32) return -1;
    return place->second.location < static_cast<int>(inputs_) ? place->second.location : -1;
  }

  bool add_weight_matmul(NodeId id) {
    const Node& node = graph_[id];
    const MatMulAttr attr = node.as<MatMulAttr>();
    const int rank = node.shape.rank(), input = weight_input(node.inputs[1]);
    const std::int64_t cols = node.shape.elements() == 0 ? 0 : node.shape[rank - 1];
    if (input < 0 || node.dtype != DType::f32 || cols < 8 || !has_packed_gemm()) return false;
    const ValueView& right = plan_.views[at(node.inputs[1])];
    for (int axis = 0; axis < rank - 2; ++axis)
      if (right.shape[axis] != 1 && right.strides[at(axis)] != 0) return false;
    const std::int64_t depth = right.shape[attr.transpose_b ? rank - 1 : rank - 2], rows = node.shape.elements() / cols;
    // A product with a vector reads a matrix once, in any order.
    if (rows < 2 || depth < 1 || attr.transpose_a) return false;
    Operand a = value(node.inputs[0]);
    const std::optional<std::int64_t> row_stride = merged_rows(a.view);
    if (!row_stride) a = copied(node.inputs[0], a);
    const BoundEpilogue epilogue = epilogue_of(id);
    const Operand b = matrix(node.inputs[1]);
    const Result out = result_of(id);
    touch(a.location);
    touch(b.location);
    epilogue.touch_all(*this);
    const std::int64_t k_stride = right.strides[at(attr.transpose_b ? rank - 1 : rank - 2)];
    const std::int64_t n_stride = right.strides[at(attr.transpose_b ? rank - 2 : rank - 1)];
    const std::int64_t a_stride = row_stride.value_or(depth);
    const PackedWeights::Key key{kPackedRight, depth, cols, k_stride, n_stride, right.offset, 0, 0};
    add_step([=, offset = right.offset](const StepContext& c) {
      const auto& buffer = static_cast<const CpuBuffer&>(*c.inputs[at(input)]);
      const auto pack = [&](float* to) {
        pack_right({reinterpret_cast<const float*>(buffer.data()) + offset, depth, cols, k_stride, n_stride}, to);
        return true;
      };
      // Packing pays from the second product on.
      const std::shared_ptr<const float> packed = buffer.packed().get(key, 2, packed_right_elements(depth, cols), pack);
      if (!packed) {
        matmul(c.pool, a.bind(c), b.bind(c), attr, out.bind(c));
        return epilogue.run_alone(c, out);
      }
      const Matrix<float> left{static_cast<const float*>(a.bind(c).data), rows, depth, a_stride, 1};
      epilogue.with(c, [&](const Finish& finish) {
        packed_matmul(c.pool, left, packed.get(), cols, static_cast<float*>(out.bind(c).data), finish);
      });
    });
    return true;
  }

  // 8-bit operands as they are stored. Weights are packed once, other right operands in every run.
  void add_integer_matmul(NodeId id) {
    const Node& node = graph_[id];
    const IntegerProduct& product = fused_.integer_products.at(id);
    const int rank = node.shape.rank();
    const Operand a = dense_value(node.inputs[0]), b = value(node.inputs[1]);
    const auto zero_points = [&](int place) { return place < 0 ? Operand{} : dense_value(node.inputs[at(place)]); };
    const Operand a_zero = zero_points(product.a_zero), b_zero = zero_points(product.b_zero);
    const Result out = result_of(id);
    for (const Operand* operand : {&a, &b, &a_zero, &b_zero})
      if (operand->location >= 0) touch(operand->location);
    Int8Product shape;
    shape.rows = node.shape[rank - 2];
    shape.cols = node.shape[rank - 1];
    shape.depth = a.view.shape[a.view.shape.rank() - 1];
    shape.batches = node.shape.elements() / std::max<std::int64_t>(1, shape.rows * shape.cols);
    const NodeId base = base_of(node.inputs[1]);
    const bool is_weight = graph_[base].prim == Prim::input && b.location < static_cast<int>(inputs_);
    shape.is_shared = b.view.shape.elements() == shape.depth * shape.cols;
    if (shape.is_shared && !(product.a_zero >= 0 && a_zero.view.shape.elements() > 1)) {
      shape.rows *= shape.batches;
      shape.batches = 1;
    }
    const std::size_t bytes = int8_product_scratch_bytes(program_.pool_, shape);
    reserve_scratch(bytes);
    const int b_rank = b.view.shape.rank();
    const PackedWeights::Key key{kPackedInt8,
                                 shape.depth,
                                 shape.cols,
                                 b.view.strides[at(b_rank - 2)],
                                 b.view.strides[at(b_rank - 1)],
                                 static_cast<std::int64_t>(b.offset_bytes),
                                 0,
                                 0};
    add_step([=](const StepContext& c) {
      Int8Operands operands{a.bind(c), b.bind(c), {}, {}, nullptr};
      if (a_zero.location >= 0) operands.a_zero = a_zero.bind(c);
      if (b_zero.location >= 0) operands.b_zero = b_zero.bind(c);
      std::shared_ptr<const float> packed;
      if (is_weight && shape.is_shared) {
        const std::size_t size = packed_int8_bytes(shape.depth, shape.cols);
        packed = static_cast<const CpuBuffer&>(*c.inputs[at(b.location)])
                     .packed()
                     .get(key, 1, static_cast<std::int64_t>((size + 3) / 4), [&](float* to) {
                       pack_int8(int8_matrix(operands.b), reinterpret_cast<std::byte*>(to));
                       return true;
                     });
        operands.packed = reinterpret_cast<const std::byte*>(packed.get());
      }
      int8_product(c.pool, shape, operands, out.bind(c), {c.scratch, bytes});
    });
  }

  // The distance of rows if all axes but the last are one, and the last has unit stride.
  static std::optional<std::int64_t> merged_rows(const View& view) {
    const int rank = view.shape.rank();
    if (view.shape[rank - 1] != 1 && view.strides[at(rank - 1)] != 1) return std::nullopt;
    std::int64_t stride = 0, extent = 1;  // of the axes after this one that have more than one element
    for (int axis = rank - 2; axis >= 0; --axis) {
      if (view.shape[axis] == 1) continue;
      if (extent > 1 && view.strides[at(axis)] != stride * extent) return std::nullopt;
      if (extent == 1) stride = view.strides[at(axis)];
      extent *= view.shape[axis];
    }
    if (extent > 1 && stride < view.shape[rank - 1]) return std::nullopt;
    return stride;
  }

  // As it is stored, with a last axis of unit stride.
  Operand rows_of(NodeId id) {
    const Operand operand = stored_value(id);
    const std::size_t last = at(operand.view.shape.rank() - 1);
    return operand.view.strides[last] == 1 || operand.view.shape[static_cast<int>(last)] == 1 ? operand : copied(id, operand);
  }

  void add_attention(NodeId id) {
    const Node& node = graph_[id];
    const Operand q = rows_of(node.inputs[0]), k = rows_of(node.inputs[1]), v = rows_of(node.inputs[2]);
    const bool has_mask = node.inputs.size() > 3;
    const Operand mask = has_mask ? value(node.inputs[3]) : Operand{};
    const Result out = result_of(id);
    for (const Operand* operand : {&q, &k, &v}) touch(operand->location);
    if (has_mask) touch(mask.location);
    const std::size_t bytes = attention_scratch_bytes(program_.pool_, q.view.shape, k.view.shape, v.view.shape);
    reserve_scratch(bytes);
    add_step([=, attr = std::get<AttentionAttr>(node.as<RegionAttr>()), dtype = node.dtype](const StepContext& c) {
      AttentionOperands operands{q.bind(c), k.bind(c), v.bind(c), {}, has_mask, dtype};
      if (has_mask) operands.mask = mask.bind(c);
      attention(c.pool, operands, attr, out.bind(c), {c.scratch, bytes});
    });
  }

  void add_conv(NodeId id) {
    const Node& node = graph_[id];
    const int input = weight_input(node.inputs[1]);
    const Operand x = dense_value(node.inputs[0]), w = dense_value(node.inputs[1]);
    const BoundEpilogue epilogue = epilogue_of(id);
    const Result out = result_of(id);
    touch(x.location);
    touch(w.location);
    epilogue.touch_all(*this);
    const ConvAttr attr = node.as<ConvAttr>();
    const std::size_t bytes = conv_scratch_bytes(program_.pool_, x.view, w.view, attr, node.shape);
    reserve_scratch(bytes);
    const auto general = [=](const StepContext& c) {
      conv(c.pool, x.bind(c), w.bind(c), attr, out.bind(c), {c.scratch, bytes});
      epilogue.run_alone(c, out);
    };
    const Shape weight = w.view.shape;
    const bool is_packed = input >= 0 && w.location == input && node.dtype == DType::f32 && has_packed_conv(weight, attr);
    if (!is_packed) return add_step(general);
    const std::size_t packed_bytes = packed_conv_scratch_bytes(program_.pool_, x.view, weight, attr, node.shape);
    reserve_scratch(packed_bytes);
    const PackedWeights::Key key{
        kPackedConv, weight[0], weight[1], weight.elements(), attr.groups, static_cast<std::int64_t>(w.offset_bytes), 0, 0};
    add_step([=](const StepContext& c) {
      const auto& buffer = static_cast<const CpuBuffer&>(*c.inputs[at(input)]);
      const auto* const weights = static_cast<const float*>(w.bind(c).data);
      const bool by_channel = is_depthwise(weight, attr);
      const auto pack = [&](float* to) {
        if (!is_finite(weights, weight.elements())) return false;
        if (!by_channel) pack_conv(weights, weight, attr, to);
        return true;
      };
      const std::int64_t elements = by_channel ? 0 : packed_conv_elements(weight, attr);
      const std::shared_ptr<const float> packed = buffer.packed().get(key, 1, elements, pack);
      if (!packed) return general(c);
      epilogue.with(c, [&](const Finish& finish) {
        packed_conv(c.pool, x.bind(c), by_channel ? weights : packed.get(), weight, attr, out.bind(c), finish,
                    {c.scratch, packed_bytes});
      });
    });
  }

  void add_conv_transpose(NodeId id) {
    const Node& node = graph_[id];
    const Operand x = dense_value(node.inputs[0]), w = dense_value(node.inputs[1]);
    const Result out = result_of(id);
    touch(x.location);
    touch(w.location);
    const ConvTransposeAttr attr = std::get<ConvTransposeAttr>(node.as<RegionAttr>());
    const std::size_t bytes = conv_transpose_scratch_bytes(program_.pool_, x.view.shape, w.view.shape, attr);
    reserve_scratch(bytes);
    add_step([=](const StepContext& c) { conv_transpose(c.pool, x.bind(c), w.bind(c), attr, out.bind(c), {c.scratch, bytes}); });
  }

  // As it is stored, in dense memory.
  Operand stored_dense(NodeId id) {
    const Operand operand = stored_value(id);
    return is_dense(plan_.views[at(id)]) ? operand : copied(id, operand);
  }

  void add_quantized_matmul(NodeId id) {
    const Node& node = graph_[id];
    const bool has_minima = node.inputs.size() > 3;
    const Operand x = dense_value(node.inputs[0]), codes = stored_dense(node.inputs[1]), scales = stored_dense(node.inputs[2]);
    const Operand minima = has_minima ? stored_dense(node.inputs[3]) : Operand{};
    if (has_minima && minima.view.dtype != scales.view.dtype)
      throw Error(ErrorCode::internal, "the scales and the minima of a product are stored differently");
    const Result out = result_of(id);
    for (const Operand* operand : {&x, &codes, &scales}) touch(operand->location);
    if (has_minima) touch(minima.location);
    const QuantizedMatMulAttr attr = std::get<QuantizedMatMulAttr>(node.as<RegionAttr>());
    const std::size_t bytes = quantized_matmul_scratch_bytes(x.view.shape, attr);
    reserve_scratch(bytes);
    add_step([=](const StepContext& c) {
      const QuantizedMatrix matrix{static_cast<const std::uint8_t*>(codes.bind(c).data), scales.bind(c).data,
                                   has_minima ? minima.bind(c).data : nullptr, scales.view.dtype == DType::f16};
      quantized_matmul(c.pool, x.bind(c), matrix, attr, out.bind(c), {c.scratch, bytes});
    });
  }

  void add_scatter(NodeId id) {
    const Node& node = graph_[id];
    const Operand x = value(node.inputs[0]), indices = dense_value(node.inputs[1]), updates = dense_value(node.inputs[2]);
    const Result out = result_of(id);
    for (const Operand* o : {&x, &indices, &updates}) touch(o->location);
    add_step([=, attr = node.as<ScatterAttr>()](const StepContext& c) {
      copy(c.pool, x.bind(c), out.bind(c));
      scatter(c.pool, indices.bind(c), updates.bind(c), attr, out.bind(c));
    });
  }

  void add_arg_sort(NodeId id) {
    const Node& node = graph_[id];
    const Operand x = dense_value(node.inputs[0]);
    const Result out = result_of(id);
    touch(x.location);
    const ArgSortAttr attr = node.as<ArgSortAttr>();
    const std::size_t bytes = arg_sort_scratch_bytes(program_.pool_, x.view, attr.axis);
    reserve_scratch(bytes);
    add_step([=](const StepContext& c) { arg_sort(c.pool, x.bind(c), attr, out.bind(c), {c.scratch, bytes}); });
  }

  void add_selection(NodeId id) {
    const Node& node = graph_[id];
    const Operand x = dense_value(node.inputs[0]);
    const Result out = result_of(id);
    touch(x.location);
    const TopKAttr attr = std::get<TopKAttr>(node.as<RegionAttr>());
    const std::size_t bytes = select_scratch_bytes(program_.pool_, x.view, attr);
    reserve_scratch(bytes);
    add_step([=](const StepContext& c) { select(c.pool, x.bind(c), attr, out.bind(c), {c.scratch, bytes}); });
  }

  // A primitive writes one place, in the compute type; further outputs of the graph get copies.
  void deliver_converted(NodeId id) {
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

  // Outputs that are inputs, constants, views of something, or in a block format.
  void finish_outputs() {
    for (std::size_t i = 0; i < outputs_; ++i) {
      const NodeId id = graph_.outputs()[i];
      const auto direct = direct_outputs_.find(id);
      if (direct != direct_outputs_.end()) continue;
      const DType dtype = graph_[id].dtype;
      const Shape shape = graph_[id].shape;
      const int to = output_location(static_cast<int>(i));
      if (graph_[id].prim == Prim::input && is_block(dtype)) {
        const int from =
            static_cast<int>(std::find(graph_.inputs().begin(), graph_.inputs().end(), id) - graph_.inputs().begin());
        const std::size_t bytes = storage_bytes(dtype, shape);
        add_step([=](const StepContext& c) { std::copy_n(c.locations[from], bytes, c.locations[to]); });
      } else if (is_block(dtype)) {
        const Operand x = dense_value(id);
        touch(x.location);
        add_step([=](const StepContext& c) {
          encode_block(dtype, shape, static_cast<const float*>(x.bind(c).data), c.locations[to]);
        });
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

  CpuExecutable& program_;
  const FusedGraph fused_;
  const Graph& graph_;
  Plan plan_;
  const std::size_t inputs_, outputs_;
  std::map<NodeId, int> readers_;                      // how often a base is read inside the program
  std::map<NodeId, Place> sources_;                    // where a base's memory is
  std::vector<bool> moved_;                            // by node: 16-bit values that were only moved since they were given
  std::vector<ValueView> moved_views_;                 // plan_.views before copies were made
  std::map<NodeId, Place> narrow_;                     // where a moved base is in 16 bits; sources_ may have a converted copy
  std::map<NodeId, std::vector<int>> direct_outputs_;  // computed node -> outputs it is
  TemporaryPlan temporaries_;
  std::size_t scratch_bytes_ = 0;
};

CpuExecutable::CpuExecutable(const Graph& graph, ThreadPool& pool, const FusionLimits& limits) : pool_(pool) {
  ExecutableCompiler(*this, graph, limits).run();
}

}  // namespace tenon::cpu

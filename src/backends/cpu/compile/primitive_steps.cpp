#include "array/block_format.h"
#include "backends/cpu/compile/compiler.h"
#include "backends/cpu/primitives/sorting/selection.h"
#include "backends/cpu/primitives/spatial/adaptive_pooling.h"
#include "tenon/error.h"

namespace tenon::cpu {

void ExecutableCompiler::add_primitive(NodeId id) {
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
    case Prim::region: add_region(id); break;
    default: throw Error(ErrorCode::internal, std::string("the CPU has no step for ") + std::string(name(node.prim)));
  }
  if (plan_.rounded[at(id)]) round_value(id);
  deliver_converted(id);
}

void ExecutableCompiler::add_region(NodeId id) {
  const RegionAttr& region = graph_[id].as<RegionAttr>();
  if (std::holds_alternative<TopKAttr>(region))
    add_selection(id);
  else if (std::holds_alternative<AdaptivePoolAttr>(region))
    add_adaptive_pool(id);
  else if (std::holds_alternative<ConvTransposeAttr>(region))
    add_conv_transpose(id);
  else if (std::holds_alternative<QuantizedMatMulAttr>(region))
    add_quantized_matmul(id);
  else if (std::holds_alternative<ForestAttr>(region))
    add_forest(id);
  else
    add_attention(id);
}

void ExecutableCompiler::round_value(NodeId id) {
  const Place from = sources_.at(id);
  const DType to = graph_[id].dtype;
  const std::int64_t n = graph_[id].shape.elements();
  touch(from.location);
  const int location = new_temporary(to, graph_[id].shape);
  add_step([=](const StepContext& c) {
    convert_dense(c.pool, from.stored, c.locations[from.location], to, c.locations[location], n);
  });
  sources_[id] = narrow_[id] = {location, to};
}

void ExecutableCompiler::add_copy(NodeId id) {
  const NodeId source = graph_[id].inputs[0];
  const Operand x = source_of(id, source);
  // The copy is of the input in its own shape; the new shape only renames the dense result.
  const Result out = result_of(id);
  touch(x.location);
  const Result renamed{out.location, out.dtype, x.view.shape};
  add_step([=](const StepContext& c) { copy(c.pool, x.bind(c), renamed.bind(c)); });
}

void ExecutableCompiler::add_block_cast(NodeId id) {
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

void ExecutableCompiler::add_pad(NodeId id) {
  const Node& node = graph_[id];
  const Operand x = source_of(id, node.inputs[0]);
  const Result out = result_of(id);
  touch(x.location);
  std::int64_t offset = 0;
  const Strides strides = contiguous_strides(node.shape);
  for (int i = 0; i < node.shape.rank(); ++i) offset += node.as<PadAttr>().low[at(i)] * strides[at(i)];
  add_step([=, border = node.as<PadAttr>().value](const StepContext& c) {
    Target whole = out.bind(c);
    fill(c.pool, whole, border);
    Target middle{static_cast<std::byte*>(whole.data) + at(offset) * element_bytes(out.dtype), out.dtype, x.view.shape, strides};
    copy(c.pool, x.bind(c), middle);
  });
}

void ExecutableCompiler::add_concat(NodeId id) {
  const Node& node = graph_[id];
  const int axis = node.as<AxisAttr>().axis;
  std::vector<Operand> parts;
  for (NodeId part : node.inputs) parts.push_back(source_of(id, part));
  const Result out = result_of(id);
  for (const Operand& part : parts) touch(part.location);
  const std::size_t bytes = parts.size() * sizeof(View);
  reserve_scratch(bytes);
  add_step([=, parts = std::move(parts)](const StepContext& c) {
    auto* const views = reinterpret_cast<View*>(c.scratch);
    for (std::size_t i = 0; i < parts.size(); ++i) std::construct_at(views + i, parts[i].bind(c));
    concat(c.pool, {views, parts.size()}, axis, out.bind(c));
  });
}

void ExecutableCompiler::add_scatter(NodeId id) {
  const Node& node = graph_[id];
  const Operand x = value(node.inputs[0]), indices = value(node.inputs[1]), updates = dense_value(node.inputs[2]);
  const Result out = result_of(id);
  for (const Operand* o : {&x, &indices, &updates}) touch(o->location);
  add_step([=, attr = node.as<ScatterAttr>()](const StepContext& c) {
    copy(c.pool, x.bind(c), out.bind(c));
    scatter(c.pool, indices.bind(c), updates.bind(c), attr, out.bind(c));
  });
}

void ExecutableCompiler::add_arg_sort(NodeId id) {
  const Node& node = graph_[id];
  const Operand x = dense_value(node.inputs[0]);
  const Result out = result_of(id);
  touch(x.location);
  const ArgSortAttr attr = node.as<ArgSortAttr>();
  const std::size_t bytes = arg_sort_scratch_bytes(program_.pool_, x.view, attr.axis);
  reserve_scratch(bytes);
  add_step([=](const StepContext& c) { arg_sort(c.pool, x.bind(c), attr, out.bind(c), {c.scratch, bytes}); });
}

void ExecutableCompiler::add_selection(NodeId id) {
  const Node& node = graph_[id];
  const Operand x = dense_value(node.inputs[0]);
  const Result out = result_of(id);
  touch(x.location);
  const TopKAttr attr = std::get<TopKAttr>(node.as<RegionAttr>());
  const std::size_t bytes = select_scratch_bytes(program_.pool_, x.view, attr);
  reserve_scratch(bytes);
  add_step([=](const StepContext& c) { select(c.pool, x.bind(c), attr, out.bind(c), {c.scratch, bytes}); });
}

void ExecutableCompiler::add_adaptive_pool(NodeId id) {
  const Node& node = graph_[id];
  const Operand x = stored_dense(node.inputs[0]);
  const Result out = result_of(id);
  touch(x.location);
  const AdaptivePoolAttr attr = std::get<AdaptivePoolAttr>(node.as<RegionAttr>());
  const std::size_t bytes = adaptive_pool_scratch_bytes(program_.pool_, x.view.shape);
  reserve_scratch(bytes);
  add_step([=](const StepContext& c) { adaptive_pool(c.pool, x.bind(c), attr, out.bind(c), {c.scratch, bytes}); });
}

}  // namespace tenon::cpu

#include "array/block_format.h"
#include "backends/cpu/compile/compiler.h"
#include "backends/cpu/primitives/sorting/selection.h"
#include "backends/cpu/primitives/spatial/adaptive_pooling.h"
#include "tenon/error.h"

namespace tenon::cpu {

void ExecutableCompiler::add_primitive(NodeId id) {
  if (joined_.contains(id)) return;
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
  if (plan_.rounded[at(id)] && sources_.at(id).stored != graph_[id].dtype) round_value(id);
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
  add_step([=, attr = node.as<PadAttr>()](const StepContext& c) {
    // Where the whole does not stay in the L2 cache, only the borders are filled: axis by axis, in the middle of those before.
    constexpr std::size_t kFew = std::size_t{256} << 10;
    Target whole = out.bind(c), rest = whole;
    const std::size_t bytes = element_bytes(out.dtype);
    const auto shift = [&](Target& target, int axis, std::int64_t by) {
      target.data = static_cast<std::byte*>(target.data) + at(by * strides[at(axis)]) * bytes;
    };
    if (at(whole.shape.elements()) * bytes <= kFew) {
      fill(c.pool, whole, attr.value);
    } else {
      for (int axis = 0; axis < whole.shape.rank(); ++axis) {
        const std::int64_t low = attr.low[at(axis)], extent = x.view.shape[axis], high = rest.shape[axis] - low - extent;
        Target border = rest;
        border.shape = rest.shape.with(axis, low);
        fill(c.pool, border, attr.value);
        shift(border, axis, low + extent);
        border.shape = rest.shape.with(axis, high);
        fill(c.pool, border, attr.value);
        shift(rest, axis, low);
        rest.shape = rest.shape.with(axis, extent);
      }
    }
    Target middle{static_cast<std::byte*>(whole.data) + at(offset) * bytes, out.dtype, x.view.shape, strides};
    copy(c.pool, x.bind(c), middle);
  });
}

// The elements of a view of |shape|'s dense tensor as they lie in a tensor with |strides|: nullopt if its axes are not those of
// the tensor, from some place on in steps.
std::optional<ValueView> ExecutableCompiler::placed_view(const ValueView& view, const Shape& shape, const Strides& strides) {
  if (view.shape.rank() != shape.rank()) return std::nullopt;
  const Strides dense = contiguous_strides(shape);
  ValueView placed = view;
  placed.offset = 0;
  std::int64_t left = view.offset;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const auto i = at(axis);
    const std::int64_t first = left / dense[i];
    left %= dense[i];
    placed.offset += first * strides[i];
    placed.strides[i] = 0;
    if (view.shape[axis] <= 1) continue;
    const std::int64_t step = view.strides[i] / dense[i], last = first + step * (view.shape[axis] - 1);
    if (view.strides[i] % dense[i] != 0 || last < 0 || last >= shape[axis]) return std::nullopt;
    placed.strides[i] = step * strides[i];
  }
  return placed;
}

void ExecutableCompiler::find_joined() {
  constexpr NodeId kOther = -1;      // a group, an output, or several nodes
  std::map<NodeId, NodeId> readers;  // of bases
  const auto read = [&](NodeId operand, NodeId by) {
    const auto [found, is_new] = readers.emplace(base_of(operand), by);
    if (!is_new && found->second != by) found->second = kOther;
  };
  for (const Step& step : plan_.steps) {
    if (step.group >= 0) {
      for (NodeId n : plan_.groups[at(step.group)].nodes)
        for (NodeId operand : graph_[n].inputs) read(operand, kOther);
    } else {
      for (NodeId operand : graph_[step.node].inputs) read(operand, step.node);
    }
  }
  for (NodeId id : graph_.outputs()) read(id, kOther);
  for (const auto& [id, by] : readers) {
    const Node& node = graph_[id];
    if (node.prim != Prim::concat || by == kOther || node.shape.elements() == 0) continue;
    const Node& reader = graph_[by];
    if (reader.prim != Prim::concat || reader.dtype != node.dtype || is_block(node.dtype)) continue;
    const Strides strides = contiguous_strides(reader.shape);
    const auto fits = [&](NodeId part) { return base_of(part) != id || placed_view(plan_.views[at(part)], node.shape, strides); };
    if (std::ranges::find(reader.inputs, id) != reader.inputs.end() && std::ranges::all_of(reader.inputs, fits)) joined_[id] = by;
  }
}

void ExecutableCompiler::collect_moves(NodeId root, NodeId id, std::int64_t offset, std::vector<Move>& moves) {
  const Node& node = graph_[id];
  const int axis = node.as<AxisAttr>().axis;
  const Strides strides = contiguous_strides(graph_[root].shape);
  std::map<NodeId, std::int64_t> homes;  // of concatenations that are parts of this one
  const auto each_part = [&](auto&& body) {
    std::int64_t place = offset;
    for (NodeId part : node.inputs) {
      body(part, joined_.contains(base_of(part)), place);
      place += graph_[part].shape[axis] * strides[at(axis)];
    }
  };
  each_part([&](NodeId part, bool is_joined, std::int64_t place) {
    if (!is_joined) {
      moves.push_back({source_of(root, part), {}, graph_[part].shape, place});
    } else if (base_of(part) == part && homes.emplace(part, place).second) {
      collect_moves(root, part, place, moves);
    }
  });
  each_part([&](NodeId part, bool is_joined, std::int64_t place) {
    const NodeId base = base_of(part);
    if (!is_joined || (base == part && homes.at(base) == place)) return;
    ValueView view = *placed_view(plan_.views[at(part)], graph_[base].shape, strides);
    view.offset += homes.at(base);
    moves.push_back({std::nullopt, view, graph_[part].shape, place});
  });
}

void ExecutableCompiler::add_concat(NodeId id) {
  const std::vector<NodeId>& inputs = graph_[id].inputs;
  if (std::ranges::none_of(inputs, [&](NodeId part) { return joined_.contains(base_of(part)); })) return add_plain_concat(id);
  const Strides strides = contiguous_strides(graph_[id].shape);
  std::vector<Move> moves;
  collect_moves(id, id, 0, moves);
  const Result out = result_of(id);
  for (const Move& move : moves)
    if (move.source) touch(move.source->location);
  add_step([=, moves = std::move(moves)](const StepContext& c) {
    auto* const whole = static_cast<std::byte*>(out.bind(c).data);
    const std::size_t bytes = element_bytes(out.dtype);
    for (const Move& move : moves) {
      const View inside{whole + at(move.inside.offset) * bytes, out.dtype, move.shape, move.inside.strides};
      copy(c.pool, move.source ? move.source->bind(c) : inside,
           Target{whole + at(move.place) * bytes, out.dtype, move.shape, strides});
    }
  });
}

// One none of whose parts is a concatenation itself.
void ExecutableCompiler::add_plain_concat(NodeId id) {
  const int axis = graph_[id].as<AxisAttr>().axis;
  std::vector<Operand> parts;
  for (NodeId part : graph_[id].inputs) parts.push_back(source_of(id, part));
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
  const int axis = node.as<ScatterAttr>().axis;
  if (node.as<ScatterAttr>().add && moved_[at(id)]) {
    const Operand x = dense_source_of(id, node.inputs[0]), indices = value(node.inputs[1]),
                  updates = dense_source_of(id, node.inputs[2]);
    const Result out = result_of(id);
    for (const Operand* o : {&x, &indices, &updates}) touch(o->location);
    const std::size_t bytes = scatter_add16_scratch_bytes(program_.pool_, out.shape, axis);
    reserve_scratch(bytes);
    return add_step([=](const StepContext& c) {
      scatter_add16(c.pool, x.bind(c), indices.bind(c), updates.bind(c), axis, out.bind(c), {c.scratch, bytes});
    });
  }
  const Operand x = source_of(id, node.inputs[0]), indices = value(node.inputs[1]), updates = dense_source_of(id, node.inputs[2]);
  const Result out = result_of(id);
  for (const Operand* o : {&x, &indices, &updates}) touch(o->location);
  add_step([=, attr = node.as<ScatterAttr>()](const StepContext& c) {
    scatter(c.pool, x.bind(c), indices.bind(c), updates.bind(c), attr, out.bind(c));
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
  const std::size_t bytes = adaptive_pool_scratch_bytes(program_.pool_, x.view.shape, node.shape);
  reserve_scratch(bytes);
  add_step([=](const StepContext& c) { adaptive_pool(c.pool, x.bind(c), attr, out.bind(c), {c.scratch, bytes}); });
}

}  // namespace tenon::cpu

#include "backends/cpu/compile/compiler.h"
#include "backends/cpu/primitives/attention.h"
#include "backends/cpu/primitives/forest.h"
#include "backends/cpu/primitives/matmul/quantized_matmul.h"
#include "backends/cpu/primitives/spatial/conv_transpose.h"
#include "backends/cpu/products/convolution/conv_packed.h"
#include "backends/cpu/products/convolution/transposed_phases.h"
#include "backends/cpu/products/integer/matmul_int8.h"
#include "backends/cpu/products/matmul_packed.h"
#include "tenon/error.h"

namespace tenon::cpu {
namespace {

enum PackedKind : std::int64_t { kPackedRight, kPackedConv, kPackedInt8, kBlockedConv, kPackedForest, kTransposedPhases };

// What the packed weights of a convolution depend on besides their shape. Which elements are a phase of a transposed one follows
// from its steps, which can_block limits, and from its dilations modulo those.
std::int64_t weight_order(const BlockedConv& conv) {
  if (!conv.is_transposed) return conv.is_plain ? 1 : 0;
  std::int64_t order = 1;
  for (std::size_t axis = 0; axis < 2; ++axis)
    order = (order << 11 | conv.attr.stride[axis]) << 11 | conv.attr.dilation[axis] % conv.attr.stride[axis];
  return order;
}

Spatial spatial_extents(const Shape& weight) {
  Spatial extents{1, 1, 1};
  for (int i = 2; i < weight.rank(); ++i) extents[static_cast<std::size_t>(i - 2)] = weight[i];
  return extents;
}
std::int64_t packed_extents(const Spatial& extents) { return (extents[0] << 21 | extents[1]) << 21 | extents[2]; }

// The distance of rows if all axes but the last are one, and the last has unit stride.
std::optional<std::int64_t> merged_rows(const View& view) {
  const int rank = view.shape.rank();
  if (view.shape[rank - 1] != 1 && view.strides[static_cast<std::size_t>(rank - 1)] != 1) return std::nullopt;
  std::int64_t stride = 0, extent = 1;  // of the axes after this one that have more than one element
  for (int axis = rank - 2; axis >= 0; --axis) {
    if (view.shape[axis] == 1) continue;
    if (extent > 1 && view.strides[static_cast<std::size_t>(axis)] != stride * extent) return std::nullopt;
    if (extent == 1) stride = view.strides[static_cast<std::size_t>(axis)];
    extent *= view.shape[axis];
  }
  if (extent > 1 && stride < view.shape[rank - 1]) return std::nullopt;
  return stride;
}

}  // namespace

void ExecutableCompiler::BoundEpilogue::run_alone(const StepContext& c, const Result& out) const {
  if (epilogue.empty()) return;
  with(c, [&](const Finish& finish) {
    finish_rows(c.pool, finish, out.shape.elements() / cols, static_cast<float*>(out.bind(c).data));
  });
}

Operand ExecutableCompiler::matrix(NodeId id) {
  Operand operand = value(id);
  return is_blas_layout(operand.view) ? operand : copied(id, operand);
}

bool ExecutableCompiler::add_matmul16(NodeId id) {
  const Node& node = graph_[id];
  const Operand a = stored_value(node.inputs[0]), b = stored_value(node.inputs[1]);
  const MatMulAttr attr = node.as<MatMulAttr>();
  if (!has_matmul16(node.dtype, a.view, b.view, attr, node.shape) || !is_blas_layout(a.view) || !is_blas_layout(b.view))
    return false;
  const bool can_narrow = stores_matmul16(program_.pool_, a.view, b.view, attr, node.shape);
  const std::optional<Result> narrow = can_narrow ? narrow_result_of(id) : std::nullopt;
  const Result out = narrow ? *narrow : result_of(id);
  touch(a.location);
  touch(b.location);
  add_step([=](const StepContext& c) { matmul16(c.pool, a.bind(c), b.bind(c), attr, out.bind(c)); });
  return true;
}

void ExecutableCompiler::add_matmul(NodeId id) {
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

ExecutableCompiler::BoundEpilogue ExecutableCompiler::epilogue_of(NodeId id) {
  BoundEpilogue out;
  const Node& node = graph_[id];
  const Shape& shape = node.shape;
  const bool by_channel = is_conv(node);
  out.channels = by_channel ? shape[1] : 1;
  out.cols = by_channel ? (shape.elements() == 0 ? 1 : shape.elements() / (shape[0] * shape[1])) : shape[shape.rank() - 1];
  if (const auto found = fused_.epilogues.find(id); found != fused_.epilogues.end()) {
    out.epilogue = found->second;
    for (std::size_t i = 2; i < node.inputs.size(); ++i) out.operands.push_back(dense_value(node.inputs[i]));
  }
  return out;
}

int ExecutableCompiler::weight_input(NodeId id) const {
  const NodeId base = base_of(id);
  const auto place = sources_.find(base);
  if (graph_[base].prim != Prim::input || place == sources_.end() || place->second.stored != DType::f32) return -1;
  return place->second.location < static_cast<int>(inputs_) ? place->second.location : -1;
}

bool ExecutableCompiler::add_weight_matmul(NodeId id) {
  const Node& node = graph_[id];
  const MatMulAttr attr = node.as<MatMulAttr>();
  const int rank = node.shape.rank(), input = weight_input(node.inputs[1]);
  const std::int64_t cols = node.shape.elements() == 0 ? 0 : node.shape[rank - 1];
  if (input < 0 || node.dtype != DType::f32 || cols < 8 || !has_packed_gemm()) return false;
  const ValueView right = plan_.views[at(node.inputs[1])];  // as it is in the input: copied() replaces it
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

void ExecutableCompiler::add_integer_matmul(NodeId id) {
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

Operand ExecutableCompiler::rows_of(NodeId id) {
  const Operand operand = stored_value(id);
  const std::size_t last = at(operand.view.shape.rank() - 1);
  return operand.view.strides[last] == 1 || operand.view.shape[static_cast<int>(last)] == 1 ? operand : copied(id, operand);
}

void ExecutableCompiler::add_attention(NodeId id) {
  const Node& node = graph_[id];
  const Operand q = rows_of(node.inputs[0]), k = rows_of(node.inputs[1]), v = rows_of(node.inputs[2]);
  const bool has_mask = node.inputs.size() > 3;
  const Operand mask = has_mask ? value(node.inputs[3]) : Operand{};
  const std::optional<Result> narrow =
      node.dtype == DType::bf16 || node.dtype == DType::f16 ? narrow_result_of(id) : std::nullopt;
  const Result out = narrow ? *narrow : result_of(id);
  for (const Operand* operand : {&q, &k, &v}) touch(operand->location);
  if (has_mask) touch(mask.location);
  const std::size_t bytes = attention_scratch_bytes(program_.pool_, q.view.shape, k.view.shape, v.view.shape, node.dtype);
  reserve_scratch(bytes);
  add_step([=, attr = std::get<AttentionAttr>(node.as<RegionAttr>()), dtype = node.dtype](const StepContext& c) {
    AttentionOperands operands{q.bind(c), k.bind(c), v.bind(c), {}, has_mask, dtype};
    if (has_mask) operands.mask = mask.bind(c);
    attention(c.pool, operands, attr, out.bind(c), {c.scratch, bytes});
  });
}

void ExecutableCompiler::add_blocked_conv(NodeId id, const BlockedConv& conv) {
  const Node& node = graph_[id];
  const Operand x = dense_value(node.inputs[0]), w = dense_value(node.inputs[1]);
  const BoundEpilogue epilogue = epilogue_of(id);
  const Result out = result_of(id);
  touch(x.location);
  touch(w.location);
  epilogue.touch_all(*this);
  const std::size_t bytes = blocked_conv_scratch_bytes(program_.pool_, conv, x.view.shape, node.shape);
  reserve_scratch(bytes);
  const PackedWeights::Key key{kBlockedConv,   conv.weight[0],   conv.weight[1],     conv.weight[2],
                               conv.weight[3], conv.attr.groups, weight_order(conv), static_cast<std::int64_t>(w.offset_bytes)};
  add_step([=](const StepContext& c) {
    const auto& buffer = static_cast<const CpuBuffer&>(*c.inputs[at(w.location)]);
    const auto pack = [&](float* to) {
      pack_blocked_weights(static_cast<const float*>(w.bind(c).data), conv, to);
      return true;
    };
    const std::shared_ptr<const float> packed = buffer.packed().get(key, 1, blocked_weight_elements(conv), pack);
    epilogue.with(c, [&](const Finish& finish) {
      blocked_conv(c.pool, conv, x.bind(c), packed.get(), out.bind(c), finish, {c.scratch, bytes});
    });
  });
}

bool ExecutableCompiler::add_conv16(NodeId id) {
  const Node& node = graph_[id];
  const auto dense = [&](NodeId operand) {
    Operand x = stored_value(operand);
    x.view.strides = contiguous_strides(x.view.shape);
    return x.view;
  };
  const ConvAttr attr = node.as<ConvAttr>();
  if (!has_conv16(node.dtype, dense(node.inputs[0]), dense(node.inputs[1]), attr, node.shape)) return false;
  const Operand x = stored_dense(node.inputs[0]), w = stored_dense(node.inputs[1]);
  const Result out = result_of(id);
  touch(x.location);
  touch(w.location);
  const std::size_t bytes = conv16_scratch_bytes(program_.pool_, x.view, w.view, attr, node.shape);
  reserve_scratch(bytes);
  add_step([=](const StepContext& c) { conv16(c.pool, x.bind(c), w.bind(c), attr, out.bind(c), {c.scratch, bytes}); });
  return true;
}

void ExecutableCompiler::add_conv(NodeId id) {
  if (const auto blocked = blocked_.convs.find(id); blocked != blocked_.convs.end()) return add_blocked_conv(id, blocked->second);
  if (add_conv16(id)) return;
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
  const bool by_channel = is_depthwise(weight, attr);
  if (!is_packed && by_channel && node.dtype != DType::f64 && has_packed_conv(weight, attr)) {
    // Such weights need no packing.
    const std::size_t own_bytes = packed_conv_scratch_bytes(program_.pool_, x.view, weight, attr, node.shape);
    reserve_scratch(own_bytes);
    return add_step([=](const StepContext& c) {
      const auto* const weights = static_cast<const float*>(w.bind(c).data);
      if (!is_finite(weights, weight.elements())) return general(c);
      epilogue.with(c, [&](const Finish& finish) {
        packed_conv(c.pool, x.bind(c), weights, weight, attr, out.bind(c), finish, {c.scratch, own_bytes});
      });
    });
  }
  if (!is_packed) return add_step(general);
  const std::size_t packed_bytes = packed_conv_scratch_bytes(program_.pool_, x.view, weight, attr, node.shape);
  reserve_scratch(packed_bytes);
  const PackedWeights::Key key{
      kPackedConv, weight[0], weight[1], weight.elements(), attr.groups, static_cast<std::int64_t>(w.offset_bytes), 0, 0};
  add_step([=](const StepContext& c) {
    const auto& buffer = static_cast<const CpuBuffer&>(*c.inputs[at(input)]);
    const auto* const weights = static_cast<const float*>(w.bind(c).data);
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

void ExecutableCompiler::add_conv_transpose(NodeId id) {
  if (const auto blocked = blocked_.convs.find(id); blocked != blocked_.convs.end()) return add_blocked_conv(id, blocked->second);
  const Node& node = graph_[id];
  const auto is_narrow = [&](NodeId operand) { return stored_value(operand).view.dtype == node.dtype; };
  const bool narrow = has_conv_transpose16(node.dtype) && is_narrow(node.inputs[0]) && is_narrow(node.inputs[1]);
  const Operand x = narrow ? stored_dense(node.inputs[0]) : dense_value(node.inputs[0]);
  const Operand w = narrow ? stored_dense(node.inputs[1]) : dense_value(node.inputs[1]);
  const BoundEpilogue epilogue = epilogue_of(id);
  const Result out = result_of(id);
  touch(x.location);
  touch(w.location);
  epilogue.touch_all(*this);
  const ConvTransposeAttr attr = std::get<ConvTransposeAttr>(node.as<RegionAttr>());
  const std::size_t bytes = conv_transpose_scratch_bytes(program_.pool_, x.view.shape, w.view.shape, attr);
  reserve_scratch(bytes);
  const auto general = [=](const StepContext& c) {
    conv_transpose(c.pool, x.bind(c), w.bind(c), attr, out.bind(c), {c.scratch, bytes});
    epilogue.run_alone(c, out);
  };
  const Shape weight = w.view.shape;
  const TransposedPhases phases(x.view.shape, weight, attr, node.shape, x.view.dtype);
  if (!phases.is_better()) return add_step(general);
  const std::size_t own_bytes = phases.scratch_bytes(program_.pool_);
  reserve_scratch(own_bytes);
  const bool is_weight = w.location < static_cast<int>(inputs_);
  const PackedWeights::Key key{kTransposedPhases,
                               weight[0],
                               weight[1],
                               packed_extents(spatial_extents(weight)),
                               packed_extents(attr.stride),
                               packed_extents(attr.dilation),
                               attr.groups,
                               static_cast<std::int64_t>(w.offset_bytes)};
  add_step([=](const StepContext& c) {
    const auto order = [&](float* to) { return phases.order_weights(w.bind(c).data, to); };
    PackedWeights own;  // of weights that were computed
    PackedWeights& place = is_weight ? static_cast<const CpuBuffer&>(*c.inputs[at(w.location)]).packed() : own;
    const std::shared_ptr<const float> ordered = place.get(key, 1, phases.weight_elements(), order);
    if (!ordered) return general(c);
    phases.run(c.pool, x.bind(c), ordered.get(), out.bind(c), {c.scratch, own_bytes});
    epilogue.run_alone(c, out);
  });
}

void ExecutableCompiler::add_quantized_matmul(NodeId id) {
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

void ExecutableCompiler::add_forest(NodeId id) {
  const Node& node = graph_[id];
  const Operand x = dense_value(node.inputs[0]), nodes = dense_value(node.inputs[1]), roots = dense_value(node.inputs[2]),
                weights = dense_value(node.inputs[3]);
  const Result out = result_of(id);
  for (const Operand* operand : {&x, &nodes, &roots, &weights}) touch(operand->location);
  const ForestAttr attr = std::get<ForestAttr>(node.as<RegionAttr>());
  const std::int64_t count = nodes.view.shape[0], features = x.view.shape[1];
  const std::int64_t floats = count * static_cast<std::int64_t>(sizeof(ForestNode) / sizeof(float));
  const PackedWeights::Key key{kPackedForest, count, features, static_cast<std::int64_t>(nodes.offset_bytes), 0, 0, 0, 0};
  const auto kept = graph_[base_of(node.inputs[1])].prim == Prim::input ? nullptr : std::make_shared<PackedWeights>();
  add_step([=](const StepContext& c) {
    const auto pack = [&](float* to) {
      pack_forest(static_cast<const std::int32_t*>(nodes.bind(c).data), count, features, reinterpret_cast<ForestNode*>(to));
      return true;
    };
    PackedWeights& place = kept ? *kept : static_cast<const CpuBuffer&>(*c.inputs[at(nodes.location)]).packed();
    const std::shared_ptr<const float> packed = place.get(key, 1, floats, pack);
    const ForestOperands operands{x.bind(c), reinterpret_cast<const ForestNode*>(packed.get()), count, roots.bind(c),
                                  weights.bind(c)};
    forest(c.pool, operands, attr, out.bind(c));
  });
}

}  // namespace tenon::cpu

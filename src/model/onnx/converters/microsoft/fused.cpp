#include "model/onnx/converters/microsoft/fused.h"

#include <fmt/format.h>

#include <cmath>

#include "model/onnx/import/importer.h"

namespace tenon::onnx {

using namespace build;

Results as_op(const NodeContext& node, std::string_view op, std::vector<ValuePtr> inputs, std::int64_t version) {
  return find_converter("", op)(NodeContext(node.importer(), node.node(), node.scope(), std::move(inputs), version));
}

Expr first(const NodeContext& node, const Results& results) { return node.in(results.at(0).value()); }

Expr layer_norm(const NodeContext& node, Expr x, Expr scale, std::optional<Expr> bias, double epsilon) {
  const AxisSet last = one_axis(x.rank() - 1);
  const DType wide = x.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Expr value = cast(x, wide), centred = value - mean_keep(value, last);
  Expr y = centred * node.apply("rsqrt", {mean_keep(square(centred), last) + epsilon}) * cast(scale, wide);
  if (bias) y = y + cast(*bias, wide);
  return cast(y, x.dtype());
}

Expr rms_norm(const NodeContext& node, Expr x, Expr scale, double epsilon) {
  const DType wide = x.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Expr value = cast(x, wide);
  const Expr y = value * node.apply("rsqrt", {mean_keep(square(value), one_axis(x.rank() - 1)) + epsilon}) * cast(scale, wide);
  return cast(y, x.dtype());
}

namespace {

Expr activated(const NodeContext& node, Expr x) {
  const std::string name = node.text("activation", "");
  const std::vector<float> parameters = node.numbers("activation_params");
  const auto parameter = [&](std::size_t i, std::string_view attribute, double fallback) {
    return i < parameters.size() ? static_cast<double>(parameters[i]) : node.number(attribute, fallback);
  };
  if (name.empty()) return x;
  if (name == "Relu") return maximum(x, 0.0);
  if (name == "Sigmoid") return sigmoid(x);
  if (name == "Tanh") return node.apply("tanh", {x});
  if (name == "LeakyRelu") return where(x < same(x, 0), x * parameter(0, "activation_alpha", 0.01), x);
  if (name == "Clip") return minimum(maximum(x, parameter(0, "activation_alpha", 0)), parameter(1, "activation_beta", 0));
  if (name == "HardSigmoid")
    return minimum(maximum(x * parameter(0, "activation_alpha", 0.2) + parameter(1, "activation_beta", 0.5), 0.0), 1.0);
  node.refuse(fmt::format("the activation '{}'", name));
}

Results fused_matmul(const NodeContext& node) {
  const DType dtype = node.dtype(0);
  // transBatch: the first axis is that of the rows (or columns), and the batch follows it.
  const auto operand = [&](std::size_t i, std::string_view batch) {
    Expr x = node.operand(i);
    if (node.integer(batch, 0) == 0) return x;
    if (x.rank() < 3) node.fail(fmt::format("{} for {}", batch, to_string(x.shape())));
    std::vector<int> order;
    for (int axis = 1; axis < x.rank() - 1; ++axis) order.push_back(axis);
    order.insert(order.end(), {0, x.rank() - 1});
    return transpose(x, order);
  };
  Expr a = operand(0, "transBatchA"), b = operand(1, "transBatchB");
  if (a.rank() < 2 || b.rank() < 2) return {like(first(node, as_op(node, "MatMul", {computed(a), computed(b)})), dtype)};
  Expr y = like(matmul(a, b, {node.integer("transA", 0) != 0, node.integer("transB", 0) != 0}), dtype);
  if (const double alpha = node.number("alpha", 1); alpha != 1) y = y * alpha;
  return {y};
}

Results fused_conv(const NodeContext& node) {
  Expr y = first(node, as_op(node, "Conv", {node.value(0), node.value(1), node.has(2) ? node.value(2) : nullptr}));
  if (node.has(3)) y = y + node.in(3);
  return {activated(node, y)};
}

Results fused_gemm(const NodeContext& node) {
  return {
      activated(node, first(node, as_op(node, "Gemm", {node.value(0), node.value(1), node.has(2) ? node.value(2) : nullptr})))};
}

Results gelu_op(const NodeContext& node) {
  const Expr x = node.has(1) ? node.in(0) + node.in(1) : node.in(0);
  return {node.apply("gelu", {x}, {{"approximate", node.op() == "FastGelu" ? "tanh" : "none"}})};
}

Results scaled_sigmoid(const NodeContext& node) {
  const Expr x = node.in(0);
  return {x * sigmoid(x * node.number("alpha", 1.702))};
}

// Outputs: the norm, its mean and inverse deviation (which nothing but training reads), and the sum that was normalised.
Results skip_layer_norm(const NodeContext& node) {
  const bool simplified = node.op() == "SkipSimplifiedLayerNormalization";
  const double epsilon = node.number("epsilon", simplified ? 1e-6 : 1e-12);
  Expr sum = node.in(0) + node.in(1);
  const std::size_t bias = simplified ? 3 : 4;
  if (node.has(bias)) sum = sum + node.in(bias);
  const Expr y = simplified ? rms_norm(node, sum, node.in(2), epsilon)
                            : layer_norm(node, sum, node.in(2), node.has(3) ? std::optional(node.in(3)) : std::nullopt, epsilon);
  return {y, {}, {}, sum};
}

Results simplified_layer_norm(const NodeContext& node) {
  const Expr x = node.in(0);
  if (node.axis("axis", -1, x.rank()) != x.rank() - 1) node.refuse("an axis other than the last");
  return {rms_norm(node, x, node.in(1), node.number("epsilon", 1e-5))};
}

Results embed_layer_norm(const NodeContext& node) {
  const Expr ids = node.in(0);
  if (ids.rank() != 2) node.fail("expected ids [batch, length]");
  const std::int64_t length = ids.extent(1);
  const Expr words = take(node.in(2), wrapped_indices(ids, node.shape(2)[0]), 0);
  const Expr table = node.in(3);
  if (!node.has(8) && table.extent(0) < length) node.fail(fmt::format("{} positions for {} ids", table.extent(0), length));
  Expr sum = words + (node.has(8) ? take(table, wrapped_indices(node.in(8), table.extent(0)), 0) : narrow(table, 0, 0, length));
  if (node.has(4))
    sum = sum + (node.has(1) ? take(node.in(4), wrapped_indices(node.in(1), node.shape(4)[0]), 0) : narrow(node.in(4), 0, 0, 1));
  const Expr y = layer_norm(node, sum, node.in(5), node.in(6), node.number("epsilon", 1e-12));
  // The second output counts the tokens that the mask keeps.
  const Expr counted = node.has(7) ? reshape(sum_keep(cast(node.in(7), DType::i64), one_axis(1)), Shape{ids.extent(0)})
                                   : expand_to(node.constant(HostArray::zeros(DType::i64, {})), Shape{ids.extent(0)});
  return {y, cast(counted, DType::i32), sum};
}

Results rotary_embedding(const NodeContext& node) {
  const Expr x = node.in(0), positions = node.in(1);
  const Shape shape = x.shape();
  if ((shape.rank() != 3 && shape.rank() != 4) || node.rank(2) != 2 || node.rank(3) != 2)
    node.fail("expected an input of three or four axes and tables of two");
  const std::int64_t half = node.shape(2)[1], given = node.integer("num_heads", 0), length = shape[shape.rank() - 2];
  if (node.integer("is_packed_batching", 0) != 0) node.refuse("packed batches");
  if (half < 1) node.fail("the tables are empty");
  if (shape.elements() == 0) return {x};  // as before the first token; the positions cannot be divided into rows
  const bool packed = shape.rank() == 3;
  const std::int64_t heads = !packed ? shape[1] : given > 0 ? given : shape[2] / (2 * half);
  if (packed && (heads < 1 || shape[2] % heads != 0)) node.fail(fmt::format("{} elements and {} heads", shape[2], heads));
  const Expr apart = packed ? reshape(x, Shape{shape[0], shape[1], heads, shape[2] / heads}) : swap_axes(x, 1, 2);
  // One position is that of the first token.
  const Expr index = positions.shape().elements() == 1 && length != 1
                         ? build::iota(node.graph(), Shape{1, length}, 1) + reshape(cast(positions, DType::i64), Shape{1, 1})
                         : reshape(cast(positions, DType::i64), Shape{positions.shape().elements() / length, length});
  const Expr y =
      rotated(node, apart, take(node.in(2), index, 0), take(node.in(3), index, 0), node.integer("interleaved", 0) != 0);
  return {packed ? reshape(y, shape) : swap_axes(y, 1, 2)};
}

}  // namespace

void add_microsoft_fused(ConverterTable& table) {
  const auto add = [&](std::string_view op, Converter converter) { table.add("com.microsoft." + std::string(op), converter); };
  add("FusedMatMul", fused_matmul);
  add("FusedConv", fused_conv);
  add("FusedGemm", fused_gemm);
  for (const std::string_view op : {"Gelu", "BiasGelu", "FastGelu"}) add(op, gelu_op);
  add("QuickGelu", scaled_sigmoid);
  add("SkipLayerNormalization", skip_layer_norm);
  add("SkipSimplifiedLayerNormalization", skip_layer_norm);
  add("EmbedLayerNormalization", embed_layer_norm);
  add("RotaryEmbedding", rotary_embedding);
  table.add("SimplifiedLayerNormalization", simplified_layer_norm);  // in ONNX's domain, although ONNX has no such op
}

}  // namespace tenon::onnx

#include <fmt/format.h>

#include "model/onnx/converters/families.h"

namespace tenon::onnx {
namespace {

using namespace build;

AxisSet axes_from(int first, int rank) {
  AxisSet set = 0;
  for (int i = first; i < rank; ++i) set = static_cast<AxisSet>(set | one_axis(i));
  return set;
}

Expr scaled(Expr x, Expr mean, Expr variance, double epsilon) { return (x - mean) / sqrt(variance + epsilon); }

Results batch_normalization(const NodeContext& node) {
  const Expr x = node.in(0);
  const int rank = x.rank();
  const double epsilon = node.number("epsilon", 1e-5);
  const auto channel = [&](std::size_t i) { return along(node.in(i), 1, rank); };
  const bool training = node.version() >= 14 ? node.integer("training_mode", 0) != 0
                                             : node.version() < 7 && node.integer("is_test", 0) == 0 && node.wants(1);
  if (!training) {
    // One factor and one addend per channel, worked out before the image is touched.
    const DType wide = compute_dtype(node.in(4).dtype());
    const Expr factor = cast(channel(1), wide) / sqrt(cast(channel(4), wide) + epsilon);
    const Expr addend = cast(channel(2), wide) - cast(channel(3), wide) * factor;
    const Expr y = cast(x * cast(factor, x.dtype()) + cast(addend, x.dtype()), x.dtype());
    // Before opset 14 exporters name outputs that only training has; where something reads them they are what went in.
    return {y, node.in(3), node.in(4), node.in(3), node.in(4)};
  }
  if (node.version() < 14) node.refuse("training before opset 14");
  const AxisSet axes = static_cast<AxisSet>(all_axes(rank) & ~one_axis(1));
  const Expr mean = mean_keep(x, axes), variance = mean_keep(square(x - mean), axes);
  const double momentum = node.number("momentum", 0.9);
  const Shape vector{x.extent(1)};
  const Expr running_mean = node.in(3) * momentum + reshape(mean, vector) * (1 - momentum);
  const Expr running_variance = node.in(4) * momentum + reshape(variance, vector) * (1 - momentum);
  return {cast(scaled(x, mean, variance, epsilon) * channel(1) + channel(2), x.dtype()), cast(running_mean, node.dtype(3)),
          cast(running_variance, node.dtype(4))};
}

Results instance_normalization(const NodeContext& node) {
  const Expr x = node.in(0);
  const AxisSet axes = axes_from(2, x.rank());
  const Expr mean = mean_keep(x, axes), variance = mean_keep(square(x - mean), axes);
  return {scaled(x, mean, variance, node.number("epsilon", 1e-5)) * along(node.in(1), 1, x.rank()) +
          along(node.in(2), 1, x.rank())};
}

Results layer_normalization(const NodeContext& node) {
  const Expr x = node.in(0);
  const DType dtype = x.dtype(), wide = dtype == DType::f64 ? DType::f64 : DType::f32;
  const AxisSet axes = axes_from(node.axis("axis", -1, x.rank()), x.rank());
  const Expr value = cast(x, wide), mean = mean_keep(value, axes), centred = value - mean;
  const Expr inverse = node.apply("rsqrt", {mean_keep(square(centred), axes) + node.number("epsilon", 1e-5)});
  Expr y = centred * inverse * cast(node.in(1), wide);
  if (node.has(2)) y = y + cast(node.in(2), wide);
  const DType stash = held_as(static_cast<ElementType>(node.integer("stash_type", 1)));
  return {cast(y, dtype), cast(mean, stash), cast(inverse, stash)};
}

Results rms_normalization(const NodeContext& node) {
  const Expr x = node.in(0);
  const DType dtype = x.dtype(), wide = dtype == DType::f64 ? DType::f64 : DType::f32;
  const AxisSet axes = axes_from(node.axis("axis", -1, x.rank()), x.rank());
  const Expr value = cast(x, wide);
  const Expr y = value * node.apply("rsqrt", {mean_keep(square(value), axes) + node.number("epsilon", 1e-5)});
  return {cast(cast(y, dtype) * node.in(1), promote(dtype, node.dtype(1)))};
}

Results group_normalization(const NodeContext& node) {
  const Expr x = node.in(0);
  const std::int64_t groups = node.integer("num_groups"), n = x.extent(0), c = x.extent(1);
  if (groups < 1 || c % groups != 0) node.fail(fmt::format("{} channels cannot be divided into {} groups", c, groups));
  const DType dtype = x.dtype(), wide = dtype == DType::f64 ? DType::f64 : DType::f32;
  const Expr grouped = reshape(cast(x, wide), Shape{n, groups, n * groups == 0 ? 0 : x.shape().elements() / (n * groups)});
  const Expr mean = mean_keep(grouped, one_axis(2)), variance = mean_keep(square(grouped - mean), one_axis(2));
  Expr y = scaled(grouped, mean, variance, node.number("epsilon", 1e-5));
  const auto per = [&](std::size_t i) { return cast(node.in(i), wide); };
  if (node.version() < 21) {  // scale and bias are per group
    y = y * along(per(1), 1, 3) + along(per(2), 1, 3);
    return {cast(reshape(y, x.shape()), dtype)};
  }
  y = reshape(y, x.shape());
  return {cast(y * along(per(1), 1, x.rank()) + along(per(2), 1, x.rank()), dtype)};
}

Results lp_normalization(const NodeContext& node) {
  const Expr x = node.in(0);
  const AxisSet axes = one_axis(node.axis("axis", -1, x.rank()));
  const Expr norm = norm_keep(x, axes, static_cast<double>(node.integer("p", 2)));
  return {x / where(norm == 0.0, 1.0, norm)};
}

Results mean_variance_normalization(const NodeContext& node) {
  const Expr x = node.in(0);
  const AxisSet axes = axis_set(node.axes_of(node.integers("axes", {0, 2, 3}), x.rank()));
  const Expr mean = mean_keep(x, axes), variance = mean_keep(square(x), axes) - square(mean);
  return {(x - mean) / (sqrt(variance) + 1e-9)};
}

// Each element is divided by the squares of its neighbours along the channels.
Results lrn(const NodeContext& node) {
  const Expr x = node.in(0);
  const std::int64_t size = node.integer("size"), c = x.extent(1), before = (size - 1) / 2, after = size - 1 - before;
  const Expr squares = pad_axis(square(x), 1, before, after);
  Expr sum = narrow(squares, 1, 0, c);
  for (std::int64_t i = 1; i < size; ++i) sum = sum + narrow(squares, 1, i, c);
  const Expr base = sum * (node.number("alpha", 1e-4) / static_cast<double>(size)) + node.number("bias", 1);
  return {x / build::pow(base, node.number("beta", 0.75))};
}

// Before opset 13 the axes from |axis| on count as one.
Results softmax(const NodeContext& node) {
  Expr x = node.in(0);
  const Shape shape = x.shape();
  int axis = node.axis("axis", node.version() < 13 ? 1 : -1, std::max(shape.rank(), 1));
  if (node.version() < 13 || shape.rank() == 0) {
    std::int64_t rows = 1;
    for (int i = 0; i < axis; ++i) rows *= shape[i];
    x = reshape(x, Shape{rows, rows == 0 ? 0 : shape.elements() / rows});
    axis = 1;
  }
  if (node.op() == "Hardmax") {
    const Expr best(node.graph(), node.graph().arg_reduce(x.id(), axis, true));
    return {reshape(cast(build::iota(node.graph(), x.shape(), axis) == best, x.dtype()), shape)};
  }
  const Expr y = node.apply(node.op() == "Softmax" ? "softmax" : "log_softmax", {x}, {{"axis", std::int64_t{axis}}});
  return {reshape(y, shape)};
}

Results dropout(const NodeContext& node) {
  const bool training = node.version() >= 12 ? node.has(2) && node.host_number(2) != 0
                                             : node.version() < 7 && node.given("is_test") && node.integer("is_test", 0) == 0;
  const double ratio = node.version() >= 12 ? (node.has(1) ? node.host_number(1) : 0.5) : node.number("ratio", 0.5);
  if (training && ratio > 0) node.refuse("training with a ratio above 0");
  Results results{node.value(0)};
  if (node.wants(1)) {
    const DType mask = node.version() >= 10 ? DType::boolean : node.dtype(0);
    results.emplace_back(expand_to(node.constant(HostArray::full(mask, {}, 1)), node.shape(0)));
  }
  return results;
}

}  // namespace

void add_normalization(ConverterTable& table) {
  table.add("BatchNormalization", batch_normalization);
  table.add("InstanceNormalization", instance_normalization);
  table.add("LayerNormalization", layer_normalization);
  table.add("RMSNormalization", rms_normalization);
  table.add("GroupNormalization", group_normalization);
  table.add("LpNormalization", lp_normalization);
  table.add("MeanVarianceNormalization", mean_variance_normalization);
  table.add("LRN", lrn);
  table.add({"Softmax", "LogSoftmax", "Hardmax"}, softmax);
  table.add("Dropout", dropout);
}

}  // namespace tenon::onnx

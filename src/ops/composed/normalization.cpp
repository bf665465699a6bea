#include <fmt/format.h>

#include "ops/build.h"
#include "ops/composed/composed.h"
#include "ops/parameters.h"

namespace tenon {
namespace {

using namespace build;
using Results = std::vector<NodeId>;

struct AxisInput {
  Expr x;
  AxisSet axes;
};

// The first input as float, and the one axis of the op. A scalar is a row of one.
AxisInput softmax_input(const OpCall& call) {
  const Expr x = floating(input(call, 0));
  if (x.rank() == 0) return {x, 0};
  return {x, one_axis(call.axis("axis", x.rank()))};
}

Expr softmax_of(Expr x, AxisSet axes) {
  if (x.shape().elements() == 0) return x;
  const Expr e = exp(x - max_keep(x, axes));
  return e / sum_keep(e, axes);
}

Results softmax(const OpCall& call) {
  const auto [x, axes] = softmax_input(call);
  return {softmax_of(x, axes).id()};
}

Results softmin(const OpCall& call) {
  const auto [x, axes] = softmax_input(call);
  return {softmax_of(-x, axes).id()};
}

Results log_softmax(const OpCall& call) {
  const auto [x, axes] = softmax_input(call);
  if (x.shape().elements() == 0) return {x.id()};
  const Expr shifted = x - max_keep(x, axes);
  return {(shifted - log(sum_keep(exp(shifted), axes))).id()};
}

// (x - mean) / sqrt(var + eps) over |axes|, with the population variance.
Expr standardize(Expr x, AxisSet axes, double eps) {
  const Expr deviation = x - mean_keep(x, axes);
  return deviation / sqrt(mean_keep(square(deviation), axes) + eps);
}

// x * weight + bias for those of inputs |first|, |first| + 1 that are given, placed by |place|.
template <class Place>
Expr scale_and_shift(const OpCall& call, Expr x, std::size_t first, Place&& place) {
  const auto given = [&](std::size_t i) {
    const Expr w = place(input(call, i));
    if (!broadcastable(w.shape(), x.shape()))
      call.fail(
          fmt::format("{} of shape {} does not fit {}", call.op().input_names[i], to_string(w.shape()), to_string(x.shape())));
    return w;
  };
  if (call.has_input(first)) x = x * given(first);
  if (call.has_input(first + 1)) x = x + given(first + 1);
  return x;
}

Results layer_norm(const OpCall& call) {
  const Expr x = floating(input(call, 0));
  const Expr y = standardize(x, call.axes("axis", x.rank()), call.number("eps"));
  return {scale_and_shift(call, y, 1, [](Expr w) { return w; }).id()};
}

Results rms_norm(const OpCall& call) {
  const Expr x = floating(input(call, 0));
  const Expr y = x / sqrt(mean_keep(square(x), call.axes("axis", x.rank())) + call.number("eps"));
  return {scale_and_shift(call, y, 1, [](Expr w) { return w; }).id()};
}

Expr per_channel(const OpCall& call, Expr vector, Expr x, int axis, std::string_view what) {
  if (vector.shape().elements() != x.extent(axis))
    call.fail(fmt::format("{} has {} elements for {} channels", what, vector.shape().elements(), x.extent(axis)));
  return along(vector, axis, x.rank());
}

Results batch_norm(const OpCall& call) {
  const Expr x = floating(input(call, 0));
  const int axis = call.axis("axis", x.rank());
  const Expr mean = per_channel(call, input(call, 1), x, axis, "mean");
  const Expr var = per_channel(call, input(call, 2), x, axis, "var");
  const Expr y = (x - mean) / sqrt(floating(var) + call.number("eps"));
  return {scale_and_shift(call, y, 3, [&](Expr w) { return per_channel(call, w, x, axis, "weight or bias"); }).id()};
}

void check_channels(const OpCall& call, Expr x) {
  if (x.rank() < 2) call.fail("expected a tensor [n, channels, ...]", "reshape it, e.g. unsqueeze(x, axis=0)");
}

Results group_norm(const OpCall& call) {
  const Expr x = floating(input(call, 0));
  check_channels(call, x);
  const std::int64_t groups = call.integer("groups"), channels = x.extent(1);
  if (groups < 1 || channels % groups != 0) call.fail(fmt::format("{} groups do not divide {} channels", groups, channels));
  const std::int64_t rows = x.extent(0) * groups;
  const Expr grouped = reshape(x, Shape{x.extent(0), groups, rows == 0 ? 0 : x.shape().elements() / rows});
  const Expr y = reshape(standardize(grouped, one_axis(2), call.number("eps")), x.shape());
  return {scale_and_shift(call, y, 1, [&](Expr w) { return per_channel(call, w, x, 1, "weight or bias"); }).id()};
}

Results instance_norm(const OpCall& call) {
  const Expr x = floating(input(call, 0));
  check_channels(call, x);
  const AxisSet spatial = static_cast<AxisSet>(all_axes(x.rank()) & ~3u);
  const Expr y = standardize(x, spatial, call.number("eps"));
  return {scale_and_shift(call, y, 1, [&](Expr w) { return per_channel(call, w, x, 1, "weight or bias"); }).id()};
}

Results normalize(const OpCall& call) {
  const Expr x = floating(input(call, 0));
  const Expr length = norm_keep(x, call.axes("axis", x.rank()), call.number("p"));
  return {(x / maximum(length, call.number("eps"))).id()};
}

OpInfo softmax_op(std::string name, std::string formula, std::string doc, Results (*build)(const OpCall&)) {
  return {.name = name,
          .category = "normalization",
          .input_names = {"x"},
          .parameters = {axis_parameter(-1, "the axis that sums to 1")},
          .dtypes = number_dtypes(),
          .formula = std::move(formula),
          .doc = std::move(doc),
          .example = name + "([[1, 2], [3, 4]], axis=-1)",
          .build = build};
}

OpInfo norm_op(std::string name, int min_inputs, std::vector<std::string> inputs, std::vector<Parameter> parameters,
               std::string formula, std::string doc, std::string example, Results (*build)(const OpCall&)) {
  return {.name = std::move(name),
          .category = "normalization",
          .min_inputs = min_inputs,
          .max_inputs = static_cast<int>(inputs.size()),
          .input_names = std::move(inputs),
          .parameters = std::move(parameters),
          .dtypes = number_dtypes(),
          .formula = std::move(formula),
          .doc = std::move(doc),
          .example = std::move(example),
          .build = build};
}

Parameter last_axes() { return integers_parameter("axis", {-1}, "axes to normalize over"); }

}  // namespace

void register_normalization_ops(OpList& ops) {
  ops.push_back(softmax_op("softmax", "exp(x) / sum(exp(x))", "Exponentials that sum to 1 along an axis.", softmax));
  ops.push_back(
      softmax_op("log_softmax", "x - log(sum(exp(x)))", "Logarithm of softmax, accurate where softmax underflows.", log_softmax));
  ops.push_back(softmax_op("softmin", "exp(-x) / sum(exp(-x))", "Softmax of -x.", softmin));
  ops.push_back(norm_op("layer_norm", 1, {"x", "weight", "bias"}, {last_axes(), eps_parameter(1e-5)},
                        "(x - mean(x)) / sqrt(var(x) + eps) * weight + bias",
                        "Each row with mean 0 and variance 1, then scaled and shifted if weight and bias are given.",
                        "layer_norm([[1.0, 2.0, 3.0], [4.0, 6.0, 8.0]])", layer_norm));
  ops.push_back(norm_op("rms_norm", 1, {"x", "weight", "bias"}, {last_axes(), eps_parameter(1e-6)},
                        "x / sqrt(mean(x^2) + eps) * weight + bias", "Each row with root mean square 1.",
                        "rms_norm([[1.0, 2.0, 3.0]], [1.0, 1.0, 2.0])", rms_norm));
  ops.push_back(norm_op("batch_norm", 3, {"x", "mean", "var", "weight", "bias"},
                        {axis_parameter(1, "the channel axis"), eps_parameter(1e-5)},
                        "(x - mean) / sqrt(var + eps) * weight + bias",
                        "Inference form of batch normalization: given mean and variance per channel.",
                        "batch_norm([[1.0, 2.0], [3.0, 4.0]], [2.0, 3.0], [1.0, 1.0])", batch_norm));
  ops.push_back(
      norm_op("group_norm", 1, {"x", "weight", "bias"},
              {{.name = "groups", .type = ParameterType::integer, .required = true, .min = 1.0, .doc = "groups of channels"},
               eps_parameter(1e-5)},
              "(x - mean(group)) / sqrt(var(group) + eps) * weight + bias",
              "Normalizes each group of channels of [n, channels, ...]; weight and bias are per channel.",
              "group_norm([[1.0, 2.0, 3.0, 5.0]], groups=2)", group_norm));
  ops.push_back(norm_op("instance_norm", 1, {"x", "weight", "bias"}, {eps_parameter(1e-5)},
                        "(x - mean(channel)) / sqrt(var(channel) + eps) * weight + bias",
                        "Normalizes each channel of each sample of [n, channels, ...].", "instance_norm([[[1.0, 2.0, 4.0]]])",
                        instance_norm));
  ops.push_back(norm_op("normalize", 1, {"x"}, {last_axes(), number_parameter("p", 2, "order of the norm"), eps_parameter(1e-12)},
                        "x / max(norm(x, p), eps)", "Rows of length 1.", "normalize([[3.0, 4.0]])", normalize));
  ops.back().aliases = {"l2_normalize"};
}

}  // namespace tenon

#include <fmt/format.h>

#include "ops/build.h"
#include "ops/parameters.h"
#include "ops/register.h"

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

void mark_softmax(const OpCall& call, Expr x, Expr y, bool log) {
  if (x.rank() > 0 && x.shape().elements() > 0)
    call.graph().mark({{x.id()}, y.id(), SoftmaxAttr{call.axis("axis", x.rank()), log}});
}

Results softmax(const OpCall& call) {
  const auto [x, axes] = softmax_input(call);
  const Expr y = softmax_of(x, axes);
  mark_softmax(call, x, y, false);
  return {y.id()};
}

Results softmin(const OpCall& call) {
  const auto [x, axes] = softmax_input(call);
  return {softmax_of(-x, axes).id()};
}

Results log_softmax(const OpCall& call) {
  const auto [x, axes] = softmax_input(call);
  if (x.shape().elements() == 0) return {x.id()};
  const Expr shifted = x - max_keep(x, axes);
  const Expr y = shifted - log(sum_keep(exp(shifted), axes));
  mark_softmax(call, x, y, true);
  return {y.id()};
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
      call.fail(fmt::format("{} has shape {}, which does not match {}", call.op().input_names[i], to_string(w.shape()),
                            to_string(x.shape())));
    return w;
  };
  if (call.has_input(first)) x = x * given(first);
  if (call.has_input(first + 1)) x = x + given(first + 1);
  return x;
}

// Scales and shifts the normalised |y|, and records the whole if the types are those of x.
Results finish_norm(const OpCall& call, Expr x, Expr y, const NormAttr& attr) {
  const Expr result = scale_and_shift(call, y, 1, [](Expr w) { return w; });
  Region region{{x.id()}, result.id(), attr};
  bool fits = result.dtype() == x.dtype() && result.id() != x.id() && x.shape().elements() > 0;
  for (std::size_t i = 1; i < call.inputs().size(); ++i) {
    const Expr w = input(call, i);
    region.inputs.push_back(w.id());
    fits = fits && w.dtype() == x.dtype() && w.id() < result.id();
  }
  if (fits) call.graph().mark(std::move(region));
  return {result.id()};
}

Results layer_norm(const OpCall& call) {
  const Expr x = floating(input(call, 0));
  const NormAttr attr{call.axes("axis", x.rank()), call.number("eps"), true};
  return finish_norm(call, x, standardize(x, attr.axes, attr.eps), attr);
}

Results rms_norm(const OpCall& call) {
  const Expr x = floating(input(call, 0));
  const NormAttr attr{call.axes("axis", x.rank()), call.number("eps"), false};
  return finish_norm(call, x, x / sqrt(mean_keep(square(x), attr.axes) + attr.eps), attr);
}

Expr per_channel(const OpCall& call, Expr vector, Expr x, int axis, std::string_view what) {
  if (vector.shape().elements() != x.extent(axis))
    call.fail(fmt::format("{} has {} elements, but there are {} channels", what, vector.shape().elements(), x.extent(axis)));
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
  if (groups < 1 || channels % groups != 0)
    call.fail(fmt::format("{} channels cannot be divided into {} groups", groups, channels));
  const std::int64_t rows = x.extent(0) * groups;
  const Expr grouped = reshape(x, Shape{x.extent(0), groups, rows == 0 ? 0 : x.shape().elements() / rows});
  // Mean and deviation of every channel first: what is left is one pass over x.
  const Expr mean = mean_keep(grouped, one_axis(2));
  const Expr deviation = sqrt(mean_keep(square(grouped - mean), one_axis(2)) + call.number("eps"));
  Dims each(static_cast<std::size_t>(x.rank()), 1);
  each[0] = x.extent(0);
  each[1] = channels;
  const auto of_channels = [&](Expr of_groups) {
    return reshape(broadcast(of_groups, Shape{x.extent(0), groups, channels / groups}), Shape(each));
  };
  const Expr y = (x - of_channels(mean)) / of_channels(deviation);
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

Family softmax_family() {
  return {.category = "normalization",
          .dtypes = number_dtypes(),
          .parameters = {axis_parameter(-1, "axis along which the result sums to 1")}};
}
Family normalization_family() { return {.category = "normalization", .dtypes = number_dtypes()}; }

Parameter last_axes() { return integers_parameter("axis", {-1}, "axes to normalize over"); }

}  // namespace

void register_normalization_ops(OpList& ops) {
  Entry(ops, softmax_family(), "softmax", softmax)
      .formula("exp(x) / sum(exp(x))")
      .doc("Exponentials that sum to 1 along an axis.")
      .example("softmax([[1, 2], [3, 4]], axis=-1)");
  Entry(ops, softmax_family(), "log_softmax", log_softmax)
      .formula("x - log(sum(exp(x)))")
      .doc("Logarithm of softmax, accurate where softmax underflows.")
      .example("log_softmax([[1, 2], [3, 4]], axis=-1)");
  Entry(ops, softmax_family(), "softmin", softmin)
      .formula("exp(-x) / sum(exp(-x))")
      .doc("Softmax of -x.")
      .example("softmin([[1, 2], [3, 4]], axis=-1)");
  Entry(ops, normalization_family(), "layer_norm", layer_norm)
      .inputs({"x", "weight", "bias"}, 1)
      .parameters({last_axes(), eps_parameter(1e-5)})
      .formula("(x - mean(x)) / sqrt(var(x) + eps) * weight + bias")
      .doc("Normalizes each row to mean 0 and variance 1, then applies weight and bias if given.")
      .example("layer_norm([[1.0, 2.0, 3.0], [4.0, 6.0, 8.0]])");
  Entry(ops, normalization_family(), "rms_norm", rms_norm)
      .inputs({"x", "weight", "bias"}, 1)
      .parameters({last_axes(), eps_parameter(1e-6)})
      .formula("x / sqrt(mean(x^2) + eps) * weight + bias")
      .doc("Normalizes each row to root mean square 1.")
      .example("rms_norm([[1.0, 2.0, 3.0]], [1.0, 1.0, 2.0])");
  Entry(ops, normalization_family(), "batch_norm", batch_norm)
      .inputs({"x", "mean", "var", "weight", "bias"}, 3)
      .parameters({axis_parameter(1, "channel axis"), eps_parameter(1e-5)})
      .formula("(x - mean) / sqrt(var + eps) * weight + bias")
      .doc("Batch normalization for inference, with a given mean and variance per channel.")
      .example("batch_norm([[1.0, 2.0], [3.0, 4.0]], [2.0, 3.0], [1.0, 1.0])");
  Entry(ops, normalization_family(), "group_norm", group_norm)
      .inputs({"x", "weight", "bias"}, 1)
      .parameters({{.name = "groups",
                    .type = ParameterType::integer,
                    .required = true,
                    .min = 1.0,
                    .doc = "number of groups of channels"},
                   eps_parameter(1e-5)})
      .formula("(x - mean(group)) / sqrt(var(group) + eps) * weight + bias")
      .doc("Normalizes each group of channels of [n, channels, ...]; weight and bias are per channel.")
      .example("group_norm([[1.0, 2.0, 3.0, 5.0]], groups=2)");
  Entry(ops, normalization_family(), "instance_norm", instance_norm)
      .inputs({"x", "weight", "bias"}, 1)
      .parameters({eps_parameter(1e-5)})
      .formula("(x - mean(channel)) / sqrt(var(channel) + eps) * weight + bias")
      .doc("Normalizes each channel of each sample of [n, channels, ...].")
      .example("instance_norm([[[1.0, 2.0, 4.0]]])");
  Entry(ops, normalization_family(), "normalize", normalize)
      .parameters({last_axes(), number_parameter("p", 2, "order of the norm"), eps_parameter(1e-12)})
      .aliases({"l2_normalize"})
      .formula("x / max(norm(x, p), eps)")
      .doc("Normalizes rows to length 1.")
      .example("normalize([[3.0, 4.0]])");
}

}  // namespace tenon

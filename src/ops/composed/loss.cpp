#include <fmt/format.h>

#include "ops/build.h"
#include "ops/composed/composed.h"
#include "ops/parameters.h"

namespace tenon {
namespace {

using namespace build;
using Results = std::vector<NodeId>;

Results reduced(const OpCall& call, Expr losses) {
  const std::string& reduction = call.text("reduction");
  if (reduction == "none") return {losses.id()};
  const AxisSet all = all_axes(losses.rank());
  return {squeeze(reduction == "mean" ? mean_keep(losses, all) : sum_keep(losses, all), all).id()};
}

struct Pair {
  Expr x, target;
};

Pair pair(const OpCall& call) {
  const Expr x = floating(input(call, 0)), target = floating(input(call, 1));
  if (!(x.shape() == target.shape())) call.fail("x and target must have the same shape");
  return {x, target};
}

Results mse_loss(const OpCall& call) {
  const auto [x, target] = pair(call);
  return reduced(call, square(x - target));
}

Results l1_loss(const OpCall& call) {
  const auto [x, target] = pair(call);
  return reduced(call, abs(x - target));
}

Results huber_loss(const OpCall& call) {
  const auto [x, target] = pair(call);
  const double delta = call.number("delta");
  const Expr error = abs(x - target);
  return reduced(call, where(error <= delta, square(error) * 0.5, (error - 0.5 * delta) * delta));
}

Results smooth_l1_loss(const OpCall& call) {
  const auto [x, target] = pair(call);
  const double beta = call.number("beta");
  const Expr error = abs(x - target);
  if (beta == 0) return reduced(call, error);
  return reduced(call, where(error <= beta, square(error) * 0.5 / beta, error - 0.5 * beta));
}

Results binary_cross_entropy(const OpCall& call) {
  const auto [x, target] = pair(call);
  // Logarithms no lower than -100, as is usual, so that a confident mistake costs a finite amount.
  const Expr yes = maximum(log(x), -100.0), no = maximum(log1p(-x), -100.0);
  return reduced(call, -(target * yes + (1.0 - target) * no));
}

Results binary_cross_entropy_with_logits(const OpCall& call) {
  const auto [x, target] = pair(call);
  return reduced(call, maximum(x, 0.0) - x * target + log1p(exp(-abs(x))));
}

Results kl_div(const OpCall& call) {
  const auto [x, target] = pair(call);
  return reduced(call, xlogy(target, target) - target * x);
}

// -log_probability of the target class; classes are on axis 1, or the only axis.
Results negative_likelihood(const OpCall& call, Expr log_probability, int axis) {
  const Expr target = input(call, 1);
  if (!is_integer(target.dtype())) call.fail("target must be class indices", "cast them, e.g. cast(t, int64)");
  const Expr expected = squeeze(narrow(log_probability, axis, 0, 1), one_axis(axis));
  if (!(expected.shape() == target.shape()))
    call.fail(fmt::format("target must have the shape {}", to_string(expected.shape())), "one class index for each row");
  return reduced(call, -squeeze(gather(log_probability, unsqueeze(target, axis), axis), one_axis(axis)));
}

int class_axis(const OpCall& call, Expr x) {
  const int axis = x.rank() == 1 ? 0 : 1;
  if (x.rank() == 0 || x.extent(axis) == 0) call.fail("expected x [classes] or [n, classes, ...]");
  return axis;
}

Results nll_loss(const OpCall& call) {
  const Expr x = floating(input(call, 0));
  return negative_likelihood(call, x, class_axis(call, x));
}

Results cross_entropy(const OpCall& call) {
  const Expr x = floating(input(call, 0));
  const int axis = class_axis(call, x);
  if (x.shape().elements() == 0) return negative_likelihood(call, x, axis);
  const Expr shifted = x - max_keep(x, one_axis(axis));
  return negative_likelihood(call, shifted - log(sum_keep(exp(shifted), one_axis(axis))), axis);
}

OpInfo loss(std::string name, std::vector<Parameter> parameters, std::string formula, std::string doc, std::string example,
            Results (*build)(const OpCall&)) {
  parameters.insert(parameters.begin(),
                    choice_parameter("reduction", {"mean", "sum", "none"}, "what becomes of the single losses"));
  return {.name = std::move(name),
          .category = "loss",
          .min_inputs = 2,
          .max_inputs = 2,
          .input_names = {"x", "target"},
          .parameters = std::move(parameters),
          .dtypes = float_dtypes(),
          .formula = std::move(formula),
          .doc = std::move(doc),
          .example = std::move(example),
          .build = build};
}

Parameter threshold(std::string name, double min) {
  Parameter p = number_parameter(std::move(name), 1, "error up to which the loss is a square");
  p.min = min;
  return p;
}

}  // namespace

void register_loss_ops(OpList& ops) {
  ops.push_back(loss("mse_loss", {}, "mean((x - t)^2)", "Mean squared error.", "mse_loss([1.0, 2.0], [1.5, 4.0])", mse_loss));
  ops.push_back(loss("l1_loss", {}, "mean(|x - t|)", "Mean absolute error.", "l1_loss([1.0, 2.0], [1.5, 4.0])", l1_loss));
  ops.push_back(loss("huber_loss", {threshold("delta", 1e-30)}, "e^2 / 2 if e <= delta, else delta (e - delta / 2); e = |x - t|",
                     "Squared for small errors, linear for large ones.", "huber_loss([1.0, 2.0], [1.5, 4.0])", huber_loss));
  ops.push_back(loss("smooth_l1_loss", {threshold("beta", 0)}, "e^2 / (2 beta) if e <= beta, else e - beta / 2; e = |x - t|",
                     "Absolute error, rounded off near 0.", "smooth_l1_loss([1.0, 2.0], [1.5, 4.0])", smooth_l1_loss));
  ops.push_back(loss("binary_cross_entropy", {}, "-(t log x + (1 - t) log(1 - x))",
                     "Cross entropy of probabilities with targets from 0 to 1.", "binary_cross_entropy([0.9, 0.2], [1.0, 0.0])",
                     binary_cross_entropy));
  ops.push_back(loss("binary_cross_entropy_with_logits", {}, "max(x, 0) - x t + log(1 + exp(-|x|))",
                     "Cross entropy of sigmoid(x) with targets from 0 to 1, without overflow.",
                     "binary_cross_entropy_with_logits([2.0, -1.0], [1.0, 0.0])", binary_cross_entropy_with_logits));
  ops.push_back(loss("kl_div", {}, "t (log t - x)", "Divergence of log-probabilities x from probabilities t.",
                     "kl_div(log([0.5, 0.5]), [0.25, 0.75], reduction=\"sum\")", kl_div));
  ops.push_back(loss("nll_loss", {}, "-x[target]",
                     "Negative log-likelihood: x holds log-probabilities [n, classes, ...], target class indices.",
                     "nll_loss(log_softmax([[1.0, 2.0], [3.0, 1.0]]), [1, 0])", nll_loss));
  ops.push_back(loss("cross_entropy", {}, "log(sum(exp(x))) - x[target]",
                     "Cross entropy: x holds scores [n, classes, ...], target class indices.",
                     "cross_entropy([[1.0, 2.0], [3.0, 1.0]], [1, 0])", cross_entropy));
}

}  // namespace tenon

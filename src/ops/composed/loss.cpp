#include <fmt/format.h>

#include "ops/build.h"
#include "ops/parameters.h"
#include "ops/register.h"

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
  // With the error limited to delta, both of the formula's cases are limited * (error - limited / 2).
  const Expr error = abs(x - target), limited = minimum(error, delta);
  return reduced(call, limited * (error + limited * -0.5));
}

Results smooth_l1_loss(const OpCall& call) {
  const auto [x, target] = pair(call);
  const double beta = call.number("beta");
  const Expr error = abs(x - target);
  if (beta == 0) return reduced(call, error);
  const Expr limited = minimum(error, beta);  // as in huber_loss
  const Expr loss = limited * (error + limited * -0.5);
  return reduced(call, beta == 1 ? loss : loss / beta);
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

// What x has for the target class, with an axis of 1 for the classes, which are on axis 1, or on the only axis.
Expr at_target(const OpCall& call, Expr x, int axis) {
  const Expr target = input(call, 1);
  if (!is_integer(target.dtype())) call.fail("target must be class indices", "cast them, e.g. cast(t, int64)");
  const Expr expected = squeeze(narrow(x, axis, 0, 1), one_axis(axis));
  if (!(expected.shape() == target.shape()))
    call.fail(fmt::format("target must have the shape {}", to_string(expected.shape())), "pass one class index per row");
  return gather(x, unsqueeze(target, axis), axis);
}

int class_axis(const OpCall& call, Expr x) {
  const int axis = x.rank() == 1 ? 0 : 1;
  if (x.rank() == 0 || x.extent(axis) == 0) call.fail("expected x [classes] or [n, classes, ...]");
  return axis;
}

Results nll_loss(const OpCall& call) {
  const Expr x = floating(input(call, 0));
  const int axis = class_axis(call, x);
  return reduced(call, -squeeze(at_target(call, x, axis), one_axis(axis)));
}

// The target's element is taken from x itself, so that the logarithms of all other probabilities need not be stored.
Results cross_entropy(const OpCall& call) {
  const Expr x = floating(input(call, 0));
  const int axis = class_axis(call, x);
  const AxisSet classes = one_axis(axis);
  const Expr expected = at_target(call, x, axis);
  if (x.shape().elements() == 0) return reduced(call, -squeeze(expected, classes));
  const Expr largest = max_keep(x, classes);
  return reduced(call, squeeze(log(sum_keep(exp(x - largest), classes)) - (expected - largest), classes));
}

Family loss_family() {
  return {.category = "loss",
          .inputs = {"x", "target"},
          .dtypes = float_dtypes(),
          .parameters = {choice_parameter("reduction", {"mean", "sum", "none"}, "how the losses are combined")}};
}

Parameter threshold(std::string name, double min) {
  Parameter p = number_parameter(std::move(name), 1, "error up to which the loss is quadratic");
  p.min = min;
  return p;
}

}  // namespace

void register_loss_ops(OpList& ops) {
  Entry(ops, loss_family(), "mse_loss", mse_loss)
      .formula("mean((x - t)^2)")
      .doc("Mean squared error.")
      .example("mse_loss([1.0, 2.0], [1.5, 4.0])");
  Entry(ops, loss_family(), "l1_loss", l1_loss)
      .formula("mean(|x - t|)")
      .doc("Mean absolute error.")
      .example("l1_loss([1.0, 2.0], [1.5, 4.0])");
  Entry(ops, loss_family(), "huber_loss", huber_loss)
      .parameters({threshold("delta", 1e-30)})
      .formula("e^2 / 2 if e <= delta, else delta (e - delta / 2); e = |x - t|")
      .doc("Quadratic for small errors, linear for large ones.")
      .example("huber_loss([1.0, 2.0], [1.5, 4.0])");
  Entry(ops, loss_family(), "smooth_l1_loss", smooth_l1_loss)
      .parameters({threshold("beta", 0)})
      .formula("e^2 / (2 beta) if e <= beta, else e - beta / 2; e = |x - t|")
      .doc("Absolute error, smoothed near 0.")
      .example("smooth_l1_loss([1.0, 2.0], [1.5, 4.0])");
  Entry(ops, loss_family(), "binary_cross_entropy", binary_cross_entropy)
      .formula("-(t log x + (1 - t) log(1 - x))")
      .doc("Cross entropy of probabilities with targets from 0 to 1.")
      .example("binary_cross_entropy([0.9, 0.2], [1.0, 0.0])");
  Entry(ops, loss_family(), "binary_cross_entropy_with_logits", binary_cross_entropy_with_logits)
      .formula("max(x, 0) - x t + log(1 + exp(-|x|))")
      .doc("Cross entropy of sigmoid(x) with targets from 0 to 1, without overflow.")
      .example("binary_cross_entropy_with_logits([2.0, -1.0], [1.0, 0.0])");
  Entry(ops, loss_family(), "kl_div", kl_div)
      .formula("t (log t - x)")
      .doc("Divergence of log-probabilities x from probabilities t.")
      .example("kl_div(log([0.5, 0.5]), [0.25, 0.75], reduction=\"sum\")");
  Entry(ops, loss_family(), "nll_loss", nll_loss)
      .formula("-x[target]")
      .doc("Negative log-likelihood of log-probabilities x [n, classes, ...]; target has class indices.")
      .example("nll_loss(log_softmax([[1.0, 2.0], [3.0, 1.0]]), [1, 0])");
  Entry(ops, loss_family(), "cross_entropy", cross_entropy)
      .formula("log(sum(exp(x))) - x[target]")
      .doc("Cross entropy of scores x [n, classes, ...]; target has class indices.")
      .example("cross_entropy([[1.0, 2.0], [3.0, 1.0]], [1, 0])");
}

}  // namespace tenon

#include <algorithm>
#include <cmath>

#include "ops/build.h"
#include "ops/composed/composed.h"
#include "ops/parameters.h"

namespace tenon {
namespace {

using namespace build;
using Results = std::vector<NodeId>;

Results finish(const OpCall& call, Expr kept, AxisSet axes) {
  return {call.boolean("keepdims") ? kept.id() : squeeze(kept, axes).id()};
}

// An op that is f(x, axes), where f keeps the axes.
template <auto f>
Results reduce(const OpCall& call) {
  const Expr x = input(call, 0);
  const AxisSet axes = call.axes("axis", x.rank());
  return finish(call, f(x, axes), axes);
}

template <auto f>
Results reduce_nonempty(const OpCall& call) {
  const Expr x = input(call, 0);
  const AxisSet axes = call.axes("axis", x.rank());
  if (extent_of(x.shape(), axes) == 0) call.fail("an empty tensor has no largest or smallest element");
  return finish(call, f(x, axes), axes);
}

Expr variance(const OpCall& call, Expr x, AxisSet axes) {
  // Two passes: the sum of squares minus the square of the sum would cancel.
  const Expr deviation = x - mean_keep(x, axes);
  const double degrees = static_cast<double>(extent_of(x.shape(), axes)) - call.number("correction");
  return sum_keep(square(deviation), axes) / std::max(0.0, degrees);
}

Results var(const OpCall& call) {
  const Expr x = floating(input(call, 0));
  const AxisSet axes = call.axes("axis", x.rank());
  return finish(call, variance(call, x, axes), axes);
}

Results std_dev(const OpCall& call) {
  const Expr x = floating(input(call, 0));
  const AxisSet axes = call.axes("axis", x.rank());
  return finish(call, sqrt(variance(call, x, axes)), axes);
}

Results norm(const OpCall& call) {
  const Expr x = floating(input(call, 0));
  const AxisSet axes = call.axes("axis", x.rank());
  const double p = call.number("p");
  if (std::isnan(p)) call.fail("p must be a number");
  return finish(call, norm_keep(x, axes, p), axes);
}

Expr log_sum_exp(Expr input, AxisSet axes) {
  const Expr x = floating(input);
  if (extent_of(x.shape(), axes) == 0) return log(sum_keep(x, axes));
  const Expr largest = max_keep(x, axes);
  // An infinite maximum is its own result; subtracting it would give NaN.
  const Expr shift = where(is_inf(largest), 0.0, largest);
  return log(sum_keep(exp(x - shift), axes)) + shift;
}

Expr count_nonzero(Expr x, AxisSet axes) { return sum_keep(x != 0.0, axes); }

template <bool largest>
Results arg_reduce(const OpCall& call) {
  Expr x = input(call, 0);
  const int rank = x.rank();
  if (x.shape().elements() == 0) call.fail("an empty tensor has no largest or smallest element");
  if (call.given("axis")) {
    const int axis = call.axis("axis", rank);
    const Expr result{call.graph(), call.graph().arg_reduce(x.id(), axis, largest)};
    return finish(call, result, one_axis(axis));
  }
  x = reshape(x, Shape{x.shape().elements()});
  const Expr result{call.graph(), call.graph().arg_reduce(x.id(), 0, largest)};
  const Dims kept(static_cast<std::size_t>(call.boolean("keepdims") ? rank : 0), 1);
  return {reshape(result, Shape(kept)).id()};
}

OpInfo reduction(std::string name, std::vector<DType> dtypes, std::string formula, std::string doc, std::string example,
                 Results (*build)(const OpCall&)) {
  return {.name = std::move(name),
          .category = "reduction",
          .input_names = {"x"},
          .parameters = {axes_parameter(), keepdims_parameter()},
          .dtypes = std::move(dtypes),
          .formula = std::move(formula),
          .doc = std::move(doc),
          .example = std::move(example),
          .build = build};
}

OpInfo arg_reduction(std::string name, std::string formula, std::string doc, Results (*build)(const OpCall&)) {
  OpInfo op =
      reduction(name, every_dtype(), std::move(formula), std::move(doc), name + "([[1, 5, 2], [7, 3, 4]], axis=1)", build);
  op.parameters[0] = optional_axis_parameter("axis to search; none given: the tensor as one row");
  return op;
}

}  // namespace

void register_reduction_ops(OpList& ops) {
  ops.push_back(reduction("sum", every_dtype(), "sum(x)", "Sum of elements; of bool and integers in 64 bits.",
                          "sum([[1, 2], [3, 4]], axis=0)", reduce<sum_keep>));
  ops.push_back(
      reduction("mean", every_dtype(), "sum(x) / n", "Arithmetic mean.", "mean([[1, 2], [3, 4]], axis=-1)", reduce<mean_keep>));
  ops.push_back(reduction("prod", every_dtype(), "product(x)", "Product of elements; of bool and integers in 64 bits.",
                          "prod([[1, 2], [3, 4]])", reduce<prod_keep>));
  ops.push_back(reduction("max", every_dtype(), "max(x)", "Largest element; NaN if there is one.",
                          "max([[1, 5], [7, 3]], axis=1)", reduce_nonempty<max_keep>));
  ops.back().aliases = {"amax"};
  ops.push_back(reduction("min", every_dtype(), "min(x)", "Smallest element; NaN if there is one.",
                          "min([[1, 5], [7, 3]], axis=1)", reduce_nonempty<min_keep>));
  ops.back().aliases = {"amin"};
  ops.push_back(reduction("any", every_dtype(), "x1 or x2 or ...", "True where any element is not 0.",
                          "any([[0, 1], [0, 0]], axis=1)", reduce<any_keep>));
  ops.push_back(reduction("all", every_dtype(), "x1 and x2 and ...", "True where no element is 0.",
                          "all([[1, 1], [0, 1]], axis=1)", reduce<all_keep>));
  ops.push_back(reduction("count_nonzero", every_dtype(), "sum(x != 0)", "How many elements are not 0.",
                          "count_nonzero([[0, 1], [2, 3]], axis=0)", reduce<count_nonzero>));
  ops.push_back(reduction("logsumexp", number_dtypes(), "log(sum(exp(x)))",
                          "Logarithm of the sum of exponentials, without overflow.", "logsumexp([1000.0, 1000.0])",
                          reduce<log_sum_exp>));

  const Parameter correction{.name = "correction",
                             .type = ParameterType::number,
                             .fallback = 1.0,
                             .min = 0.0,
                             .doc = "what is taken from n in the divisor: 1 for a sample, 0 for a population"};
  ops.push_back(reduction("var", number_dtypes(), "sum((x - mean(x))^2) / (n - correction)", "Variance.",
                          "var([[1.0, 2.0, 4.0]], axis=1)", var));
  ops.back().parameters.push_back(correction);
  ops.push_back(
      reduction("std", number_dtypes(), "sqrt(var(x))", "Standard deviation.", "std([[1.0, 2.0, 4.0]], axis=1)", std_dev));
  ops.back().parameters.push_back(correction);
  ops.push_back(reduction("norm", number_dtypes(), "(sum |x|^p)^(1/p)",
                          "Vector norm of order p: 2 Euclidean, 1 sum of magnitudes, inf largest magnitude, 0 count.",
                          "norm([3.0, 4.0])", norm));
  ops.back().parameters.insert(ops.back().parameters.begin(), number_parameter("p", 2, "order of the norm"));

  ops.push_back(arg_reduction("argmax", "first i with x[i] = max(x)",
                              "Index of the first largest element; NaN counts as largest.", arg_reduce<true>));
  ops.push_back(arg_reduction("argmin", "first i with x[i] = min(x)",
                              "Index of the first smallest element; NaN counts as smallest.", arg_reduce<false>));

  register_normalization_ops(ops);
  register_order_ops(ops);
}

}  // namespace tenon

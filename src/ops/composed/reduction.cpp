#include <algorithm>
#include <cmath>

#include "ops/build.h"
#include "ops/parameters.h"
#include "ops/register.h"

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
  if (std::isnan(p)) call.fail("p must not be NaN");
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

Family reduction_family() { return {.category = "reduction", .parameters = {axes_parameter(), keepdims_parameter()}}; }
Family arg_reduction_family() {
  return {.category = "reduction",
          .parameters = {optional_axis_parameter("axis to search; default: the flattened tensor"), keepdims_parameter()}};
}

}  // namespace

void register_reduction_ops(OpList& ops) {
  Entry(ops, reduction_family(), "sum", reduce<sum_keep>)
      .formula("sum(x)")
      .doc("Sum of elements; bool and integers are summed in 64 bits.")
      .example("sum([[1, 2], [3, 4]], axis=0)");
  Entry(ops, reduction_family(), "mean", reduce<mean_keep>)
      .formula("sum(x) / n")
      .doc("Arithmetic mean.")
      .example("mean([[1, 2], [3, 4]], axis=-1)");
  Entry(ops, reduction_family(), "prod", reduce<prod_keep>)
      .formula("product(x)")
      .doc("Product of elements; bool and integers are multiplied in 64 bits.")
      .example("prod([[1, 2], [3, 4]])");
  Entry(ops, reduction_family(), "max", reduce_nonempty<max_keep>)
      .aliases({"amax"})
      .formula("max(x)")
      .doc("Largest element; NaN if any element is NaN.")
      .example("max([[1, 5], [7, 3]], axis=1)");
  Entry(ops, reduction_family(), "min", reduce_nonempty<min_keep>)
      .aliases({"amin"})
      .formula("min(x)")
      .doc("Smallest element; NaN if any element is NaN.")
      .example("min([[1, 5], [7, 3]], axis=1)");
  Entry(ops, reduction_family(), "any", reduce<any_keep>)
      .formula("x1 or x2 or ...")
      .doc("True where any element is not 0.")
      .example("any([[0, 1], [0, 0]], axis=1)");
  Entry(ops, reduction_family(), "all", reduce<all_keep>)
      .formula("x1 and x2 and ...")
      .doc("True where no element is 0.")
      .example("all([[1, 1], [0, 1]], axis=1)");
  Entry(ops, reduction_family(), "count_nonzero", reduce<count_nonzero>)
      .formula("sum(x != 0)")
      .doc("Number of elements that are not 0.")
      .example("count_nonzero([[0, 1], [2, 3]], axis=0)");
  Entry(ops, reduction_family(), "logsumexp", reduce<log_sum_exp>)
      .dtypes(number_dtypes())
      .formula("log(sum(exp(x)))")
      .doc("Logarithm of the sum of exponentials, without overflow.")
      .example("logsumexp([1000.0, 1000.0])");

  const Parameter correction{.name = "correction",
                             .type = ParameterType::number,
                             .fallback = 1.0,
                             .min = 0.0,
                             .doc = "number subtracted from n in the divisor: 1 for a sample, 0 for a population"};
  Entry(ops, reduction_family(), "var", var)
      .dtypes(number_dtypes())
      .parameters({correction})
      .formula("sum((x - mean(x))^2) / (n - correction)")
      .doc("Variance.")
      .example("var([[1.0, 2.0, 4.0]], axis=1)");
  Entry(ops, reduction_family(), "std", std_dev)
      .dtypes(number_dtypes())
      .parameters({correction})
      .formula("sqrt(var(x))")
      .doc("Standard deviation.")
      .example("std([[1.0, 2.0, 4.0]], axis=1)");
  Entry(ops, {.category = "reduction"}, "norm", norm)
      .dtypes(number_dtypes())
      .parameters({number_parameter("p", 2, "order of the norm"), axes_parameter(), keepdims_parameter()})
      .formula("(sum |x|^p)^(1/p)")
      .doc("Vector norm of order p: 2 Euclidean, 1 sum of magnitudes, inf largest magnitude, 0 count.")
      .example("norm([3.0, 4.0])");

  Entry(ops, arg_reduction_family(), "argmax", arg_reduce<true>)
      .formula("first i with x[i] = max(x)")
      .doc("Index of the first largest element; NaN counts as largest.")
      .example("argmax([[1, 5, 2], [7, 3, 4]], axis=1)");
  Entry(ops, arg_reduction_family(), "argmin", arg_reduce<false>)
      .formula("first i with x[i] = min(x)")
      .doc("Index of the first smallest element; NaN counts as smallest.")
      .example("argmin([[1, 5, 2], [7, 3, 4]], axis=1)");
}

}  // namespace tenon

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "ops/build.h"
#include "ops/parameters.h"
#include "ops/register.h"

namespace tenon {
namespace {

using namespace build;
using Results = std::vector<NodeId>;

Expr arg_sort(Expr x, int axis, bool descending) { return {x.graph(), x.graph().arg_sort(x.id(), axis, descending)}; }

Results argsort(const OpCall& call) {
  const Expr x = input(call, 0);
  return {arg_sort(x, call.axis("axis", x.rank()), call.boolean("descending")).id()};
}

Results sort(const OpCall& call) {
  const Expr x = input(call, 0);
  const int axis = call.axis("axis", x.rank());
  if (x.shape().elements() == 0) return {x.id()};
  return {gather(x, arg_sort(x, axis, call.boolean("descending")), axis).id()};
}

// The indices of |count| elements of the sorted order, from |first| on, as a region.
Expr part_of_order(Expr x, int axis, std::int64_t first, std::int64_t count, bool descending) {
  const Expr indices = narrow(arg_sort(x, axis, descending), axis, first, count);
  if (count < x.extent(axis) && indices.shape().elements() > 0)
    x.graph().mark({{x.id()}, indices.id(), TopKAttr{axis, first, count, descending}});
  return indices;
}

Results top_k(const OpCall& call) {
  const Expr x = input(call, 0);
  const int axis = call.axis("axis", x.rank());
  const std::int64_t k = call.integer("k");
  if (k > x.extent(axis)) call.fail(fmt::format("k is {}, but axis {} has {} elements", k, axis, x.extent(axis)));
  const bool largest = call.boolean("largest");
  const Expr indices = part_of_order(x, axis, 0, k, largest);
  if (indices.shape().elements() == 0) return {narrow(x, axis, 0, k).id(), indices.id()};
  return {gather(x, indices, axis).id(), indices.id()};
}

// The value a share |q| of the way through the sorted elements, neighbours interpolated.
Results quantile_at(const OpCall& call, double q) {
  Expr x = floating(input(call, 0));
  const int rank = x.rank();
  const bool whole = !call.given("axis");
  if (whole) x = reshape(x, Shape{x.shape().elements()});
  const int axis = whole ? 0 : call.axis("axis", rank);
  const std::int64_t n = x.extent(axis);
  if (n == 0) call.fail("an empty tensor has no quantiles");

  const double place = q * static_cast<double>(n - 1);
  const std::int64_t low = static_cast<std::int64_t>(std::floor(place)), high = std::min(low + 1, n - 1);
  const Expr neighbours = part_of_order(x, axis, low, high - low + 1, false);
  const auto pick = [&](std::int64_t i) { return gather(x, narrow(neighbours, axis, i - low, 1), axis); };
  const double share = place - static_cast<double>(low);
  Expr value = pick(low);
  if (share > 0) value = value * (1 - share) + pick(high) * share;
  const Expr result = where(any_keep(is_nan(x), one_axis(axis)), std::numeric_limits<double>::quiet_NaN(), value);
  if (!call.boolean("keepdims")) return {squeeze(result, one_axis(axis)).id()};
  return {whole ? reshape(result, Shape(Dims(static_cast<std::size_t>(rank), 1))).id() : result.id()};
}

Results quantile(const OpCall& call) { return quantile_at(call, call.number("q")); }
Results median(const OpCall& call) { return quantile_at(call, 0.5); }

template <bool product>
Results cumulative(const OpCall& call) {
  const Expr x = input(call, 0);
  return {call.graph().cumulative(x.id(), call.axis("axis", x.rank()), product)};
}

Family sorting_family() { return {.category = "sorting"}; }

}  // namespace

void register_order_ops(OpList& ops) {
  const Parameter descending = boolean_parameter("descending", false, "sort largest first; NaN stays last");
  Entry(ops, sorting_family(), "sort", sort)
      .parameters({axis_parameter(-1, "axis to sort along"), descending})
      .formula("x1 <= x2 <= ...")
      .doc("Sorts the elements along an axis; stable, NaN last.")
      .example("sort([3, 1, 2])");
  Entry(ops, sorting_family(), "argsort", argsort)
      .parameters({axis_parameter(-1, "axis to sort along"), descending})
      .formula("i with x[i1] <= x[i2] <= ...")
      .doc("Indices that sort an axis; stable, NaN last.")
      .example("argsort([3, 1, 2])");
  Entry(ops, sorting_family(), "top_k", top_k)
      .parameters({count_parameter("k", "how many"), axis_parameter(-1, "axis to search"),
                   boolean_parameter("largest", true, "select the largest elements; otherwise the smallest")})
      .aliases({"topk"})
      .formula("k largest x, and their indices")
      .doc("The k largest elements in order, and their indices. Two results.")
      .example("top_k([3, 1, 4, 1, 5], k=2)");
  const Parameter axis = optional_axis_parameter("axis to reduce; default: the whole tensor");
  Entry(ops, sorting_family(), "median", median)
      .category("reduction")
      .dtypes(number_dtypes())
      .parameters({axis, keepdims_parameter()})
      .formula("middle of sorted x")
      .doc("Median; the mean of the two middle elements if n is even.")
      .example("median([3.0, 1.0, 2.0, 10.0])");
  Entry(ops, sorting_family(), "quantile", quantile)
      .category("reduction")
      .dtypes(number_dtypes())
      .parameters(
          {{.name = "q", .type = ParameterType::number, .required = true, .min = 0.0, .max = 1.0, .doc = "quantile, 0 to 1"},
           axis,
           keepdims_parameter()})
      .formula("sorted x at q (n - 1)")
      .doc("Quantile q, with linear interpolation.")
      .example("quantile([3.0, 1.0, 2.0, 10.0], q=0.25)");
  Entry(ops, sorting_family(), "cumsum", cumulative<false>)
      .category("scan")
      .parameters({axis_parameter(-1, "axis to accumulate along")})
      .formula("y_i = x_1 + ... + x_i")
      .doc("Running sum along an axis; bool and integers are summed in 64 bits.")
      .example("cumsum([1, 2, 3])");
  Entry(ops, sorting_family(), "cumprod", cumulative<true>)
      .category("scan")
      .parameters({axis_parameter(-1, "axis to accumulate along")})
      .formula("y_i = x_1 ... x_i")
      .doc("Running product along an axis; bool and integers are multiplied in 64 bits.")
      .example("cumprod([1, 2, 3])");
}

}  // namespace tenon

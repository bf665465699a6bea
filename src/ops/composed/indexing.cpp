#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "ops/build.h"
#include "ops/parameters.h"
#include "ops/register.h"
#include "ops/whole_number.h"

namespace tenon {
namespace {

using namespace build;
using Results = std::vector<NodeId>;

Expr indices_at(const OpCall& call, std::size_t i) {
  const Expr indices = input(call, i);
  if (!is_integer(indices.dtype()))
    call.fail(fmt::format("indices must be integers, not {}", name(indices.dtype())), "cast them, e.g. cast(i, int64)");
  return indices;
}

void same_rank(const OpCall& call, Expr x, Expr indices) {
  if (x.rank() != indices.rank())
    call.fail(fmt::format("indices have {} axes, but x has {}", indices.rank(), x.rank()), "use take to select whole rows");
}

Results gather_op(const OpCall& call) {
  const Expr x = input(call, 0), indices = indices_at(call, 1);
  same_rank(call, x, indices);
  return {build::gather(x, indices, call.axis("axis", x.rank())).id()};
}

Results take_along_axis(const OpCall& call) {
  const Expr x = input(call, 0), indices = indices_at(call, 1);
  same_rank(call, x, indices);
  const int axis = call.axis("axis", x.rank());
  const Shape common = tenon::broadcast(x.shape().with(axis, 1), indices.shape().with(axis, 1));
  return {build::gather(build::broadcast(x, common.with(axis, x.extent(axis))),
                        build::broadcast(indices, common.with(axis, indices.extent(axis))), axis)
              .id()};
}

template <bool add>
Results scatter(const OpCall& call) {
  const Expr x = input(call, 0), indices = indices_at(call, 1), updates = input(call, 2);
  same_rank(call, x, indices);
  if (!broadcastable(updates.shape(), indices.shape()))
    call.fail(fmt::format("the shape of updates, {}, differs from that of indices, {}", to_string(updates.shape()),
                          to_string(indices.shape())));
  return {call.graph().scatter(x.id(), indices.id(), updates.id(), call.axis("axis", x.rank()), add)};
}

Results take_op(const OpCall& call) {
  const Expr x = input(call, 0), indices = indices_at(call, 1);
  if (!call.given("axis")) return {build::take(build::reshape(x, Shape{x.shape().elements()}), indices, 0).id()};
  return {build::take(x, indices, call.axis("axis", x.rank())).id()};
}

Results index_select(const OpCall& call) {
  const Expr x = input(call, 0), indices = indices_at(call, 1);
  if (indices.rank() != 1) call.fail("indices must be a vector");
  return {build::take(x, indices, call.axis("axis", x.rank())).id()};
}

Results select(const OpCall& call) {
  const Expr x = input(call, 0);
  const int axis = call.axis("axis", x.rank());
  const std::int64_t n = x.extent(axis), i = call.integer("index"), place = i < 0 ? i + n : i;
  if (place < 0 || place >= n) call.fail(fmt::format("index {} is out of range for axis {} with {} elements", i, axis, n));
  return {squeeze(narrow(x, axis, place, 1), one_axis(axis)).id()};
}

Results masked_fill(const OpCall& call) {
  const Expr x = input(call, 0), mask = input(call, 1);
  const std::optional<std::int64_t> whole = is_integer(x.dtype()) ? whole_number(call, "value") : std::nullopt;
  if (whole) return {where(mask, Expr(call.graph(), call.graph().literal(*whole)), x).id()};
  return {where(mask, call.number("value"), x).id()};
}

template <bool lower>
Results triangle(const OpCall& call) {
  const Expr x = input(call, 0);
  if (x.rank() < 2) call.fail("expected at least two axes", "reshape it to a matrix");
  const std::int64_t rows = x.extent(x.rank() - 2), cols = x.extent(x.rank() - 1);
  const std::int64_t diagonal = std::clamp<std::int64_t>(call.integer("diagonal"), -rows, cols);
  // Only one comparison per element, of short integers: what the rows have is computed once for each.
  const DType type = counting_dtype(std::max(rows, cols));
  const Expr column = counted(call.graph(), Shape{1, cols}, 1, 0, type);
  const Expr last = counted(call.graph(), Shape{rows, 1}, 0, diagonal, type);
  return {where(lower ? column <= last : column >= last, x, 0.0).id()};
}

// The last two axes swapped in for any two.
Expr with_axes_last(const OpCall& call, Expr x) {
  const int first = call.axis("axis1", x.rank()), second = call.axis("axis2", x.rank());
  if (first == second) call.fail("axis1 and axis2 are the same");
  std::vector<int> order;
  for (int i = 0; i < x.rank(); ++i)
    if (i != first && i != second) order.push_back(i);
  order.push_back(first);
  order.push_back(second);
  return build::transpose(x, order);
}

Results diagonal_op(const OpCall& call) {
  const Expr x = input(call, 0);
  if (x.rank() < 2) call.fail("expected at least two axes");
  return {build::diagonal(with_axes_last(call, x), call.integer("offset")).id()};
}

Results diag(const OpCall& call) {
  const Expr x = input(call, 0);
  const std::int64_t offset = call.integer("offset");
  if (x.rank() == 2) return {build::diagonal(x, offset).id()};
  if (x.rank() != 1) call.fail("expected a vector or a matrix", "use diagonal for more axes");
  const std::int64_t above = offset > 0 ? offset : 0, below = offset < 0 ? -offset : 0;
  const std::int64_t n = x.extent(0) + above + below;
  const Shape matrix{n, n};
  const DType type = counting_dtype(n);
  const Expr column = counted(call.graph(), Shape{1, n}, 1, 0, type), row = counted(call.graph(), Shape{n, 1}, 0, offset, type);
  const Expr padded = build::unsqueeze(pad_axis(x, 0, below, above), 1);
  return {where(column == row, build::broadcast(padded, matrix), 0.0).id()};
}

Family indexing_family() { return {.category = "indexing"}; }

Parameter offset_parameter(std::string name) {
  Parameter p = integer_parameter(std::move(name), 0, "above (positive) or below the main diagonal");
  p.min = -1e9;
  p.max = 1e9;
  return p;
}

Parameter diagonal_axis(std::string name, std::int64_t fallback) {
  Parameter p = axis_parameter(fallback, "one of the two axes");
  p.name = std::move(name);
  return p;
}

}  // namespace

void register_indexing_ops(OpList& ops) {
  const Parameter axis0 = axis_parameter(0, "axis that is indexed");
  Entry(ops, indexing_family(), "gather", gather_op)
      .inputs({"x", "indices"})
      .parameters({axis0})
      .formula("y[i, j] = x[indices[i, j], j]")
      .doc("One element of x for each index, along an axis; negative indices count from the end.")
      .example("gather([[1, 2], [3, 4]], [[0, 1]], axis=0)");
  Entry(ops, indexing_family(), "take_along_axis", take_along_axis)
      .inputs({"x", "indices"})
      .parameters({axis_parameter(-1, "axis that is indexed")})
      .formula("y[i, j] = x[i, indices[i, j]]")
      .doc("Like gather, with the other axes broadcast.")
      .example("take_along_axis([[1, 2], [3, 4]], [[1], [0]], axis=1)");
  Entry(ops, indexing_family(), "scatter", scatter<false>)
      .inputs({"x", "indices", "updates"})
      .parameters({axis0})
      .formula("y = x; y[indices[i, j], j] = updates[i, j]")
      .doc("A copy of x with elements replaced. If several updates have the same index, the last one wins.")
      .example("scatter([0, 0, 0], [2, 0], [5, 7], axis=0)");
  Entry(ops, indexing_family(), "scatter_add", scatter<true>)
      .inputs({"x", "indices", "updates"})
      .dtypes(number_dtypes())
      .parameters({axis0})
      .formula("y = x; y[indices[i, j], j] += updates[i, j]")
      .doc("A copy of x with updates added to its elements. Updates with the same index add up.")
      .example("scatter_add([0, 0, 0], [2, 2], [5, 7], axis=0)");
  Entry(ops, indexing_family(), "take", take_op)
      .inputs({"x", "indices"})
      .parameters({optional_axis_parameter("axis to take from; default: the flattened tensor")})
      .formula("y = x[indices]")
      .doc("Selects rows (or elements) by index; the result has the shape of the indices.")
      .example("take([10, 20, 30], [2, 0, -1])");
  Entry(ops, indexing_family(), "index_select", index_select)
      .inputs({"x", "indices"})
      .parameters({axis0})
      .formula("y[i] = x[indices[i]]")
      .doc("Selects rows by a vector of indices.")
      .example("index_select([[1, 2], [3, 4], [5, 6]], [2, 0])");
  Entry(ops, indexing_family(), "select", select)
      .parameters(
          {axis_parameter(0, "axis to take from"), integer_parameter("index", 0, "index; negative values count from the end")})
      .formula("y = x[index]")
      .doc("Selects one row and removes its axis.")
      .example("select([[1, 2], [3, 4]], axis=0, index=1)");
  Entry(ops, indexing_family(), "masked_fill", masked_fill)
      .inputs({"x", "mask"})
      .parameters({number_parameter("value", 0, "value where the mask is true")})
      .formula("value where mask, else x")
      .doc("Replaces elements under a mask by a number.")
      .example("masked_fill([1, 2, 3], [1, 0, 1], value=9)");
  Entry(ops, indexing_family(), "tril", triangle<true>)
      .category("unary")
      .parameters({offset_parameter("diagonal")})
      .formula("x_ij where j <= i + diagonal, else 0")
      .doc("Lower triangle of the last two axes.")
      .example("tril([[1, 2], [3, 4]])");
  Entry(ops, indexing_family(), "triu", triangle<false>)
      .category("unary")
      .parameters({offset_parameter("diagonal")})
      .formula("x_ij where j >= i + diagonal, else 0")
      .doc("Upper triangle of the last two axes.")
      .example("triu([[1, 2], [3, 4]])");
  Entry(ops, indexing_family(), "diag", diag)
      .parameters({offset_parameter("offset")})
      .formula("y_ii = x_i, or y_i = x_ii")
      .doc("The matrix with a vector as its diagonal, or the diagonal of a matrix.")
      .example("diag([1, 2, 3])");
  Entry(ops, indexing_family(), "diagonal", diagonal_op)
      .parameters({offset_parameter("offset"), diagonal_axis("axis1", -2), diagonal_axis("axis2", -1)})
      .formula("y_i = x_ii")
      .doc("The diagonals of two axes as a new last axis.")
      .example("diagonal([[1, 2], [3, 4]])");
}

}  // namespace tenon

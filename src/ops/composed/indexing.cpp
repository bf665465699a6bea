#include <fmt/format.h>

#include "ops/build.h"
#include "ops/composed/composed.h"
#include "ops/parameters.h"

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
    call.fail(fmt::format("indices have {} axes, x has {}", indices.rank(), x.rank()), "use take to select whole rows");
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
    call.fail(fmt::format("updates {} do not fit indices {}", to_string(updates.shape()), to_string(indices.shape())));
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
  if (place < 0 || place >= n) call.fail(fmt::format("index {} is outside axis {} of {} elements", i, axis, n));
  return {squeeze(narrow(x, axis, place, 1), one_axis(axis)).id()};
}

Results masked_fill(const OpCall& call) {
  const Expr x = input(call, 0), mask = input(call, 1);
  return {where(mask, call.number("value"), x).id()};
}

template <bool lower>
Results triangle(const OpCall& call) {
  const Expr x = input(call, 0);
  if (x.rank() < 2) call.fail("expected at least two axes", "reshape it to a matrix");
  const Shape matrix{x.extent(x.rank() - 2), x.extent(x.rank() - 1)};
  const Expr offset = iota(call.graph(), matrix, 1) - iota(call.graph(), matrix, 0);
  const Expr diagonal_at{call.graph(), call.graph().scalar(static_cast<double>(call.integer("diagonal")), DType::i64)};
  return {where(lower ? offset <= diagonal_at : offset >= diagonal_at, x, 0.0).id()};
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
  const Expr column = iota(call.graph(), matrix, 1), row = iota(call.graph(), matrix, 0);
  const Expr padded = build::unsqueeze(pad_axis(x, 0, below, above), 1);
  return {where(column - row == static_cast<double>(offset), build::broadcast(padded, matrix), 0.0).id()};
}

OpInfo indexing(std::string name, std::vector<std::string> inputs, std::vector<Parameter> parameters, std::string formula,
                std::string doc, std::string example, Results (*build)(const OpCall&)) {
  return {.name = std::move(name),
          .category = "indexing",
          .min_inputs = static_cast<int>(inputs.size()),
          .max_inputs = static_cast<int>(inputs.size()),
          .input_names = std::move(inputs),
          .parameters = std::move(parameters),
          .dtypes = every_dtype(),
          .formula = std::move(formula),
          .doc = std::move(doc),
          .example = std::move(example),
          .build = build};
}

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
  const Parameter axis0 = axis_parameter(0, "axis the indices point into");
  ops.push_back(indexing("gather", {"x", "indices"}, {axis0}, "y[i, j] = x[indices[i, j], j]",
                         "One element of x for each index, along an axis; negative indices count from the end.",
                         "gather([[1, 2], [3, 4]], [[0, 1]], axis=0)", gather_op));
  ops.push_back(indexing("take_along_axis", {"x", "indices"}, {axis_parameter(-1, "axis the indices point into")},
                         "y[i, j] = x[i, indices[i, j]]", "As gather, with the other axes broadcast.",
                         "take_along_axis([[1, 2], [3, 4]], [[1], [0]], axis=1)", take_along_axis));
  ops.push_back(indexing("scatter", {"x", "indices", "updates"}, {axis0}, "y = x; y[indices[i, j], j] = updates[i, j]",
                         "A copy of x with elements replaced; of several to one place the last one stays.",
                         "scatter([0, 0, 0], [2, 0], [5, 7], axis=0)", scatter<false>));
  ops.push_back(indexing("scatter_add", {"x", "indices", "updates"}, {axis0}, "y = x; y[indices[i, j], j] += updates[i, j]",
                         "A copy of x with elements added to; several to one place add up.",
                         "scatter_add([0, 0, 0], [2, 2], [5, 7], axis=0)", scatter<true>));
  ops.back().dtypes = number_dtypes();
  ops.push_back(indexing("take", {"x", "indices"},
                         {optional_axis_parameter("axis to take from; none given: the tensor as one row")}, "y = x[indices]",
                         "Rows (or elements) by index, in the shape of the indices.", "take([10, 20, 30], [2, 0, -1])", take_op));
  ops.push_back(indexing("index_select", {"x", "indices"}, {axis0}, "y[i] = x[indices[i]]", "Rows by a vector of indices.",
                         "index_select([[1, 2], [3, 4], [5, 6]], [2, 0])", index_select));
  ops.push_back(
      indexing("select", {"x"},
               {axis_parameter(0, "axis to take from"), integer_parameter("index", 0, "place; negative counts from the end")},
               "y = x[index]", "One row; its axis disappears.", "select([[1, 2], [3, 4]], axis=0, index=1)", select));
  ops.push_back(indexing("masked_fill", {"x", "mask"}, {number_parameter("value", 0, "what is put where the mask is true")},
                         "value where mask, else x", "Elements under a mask replaced by a number.",
                         "masked_fill([1, 2, 3], [1, 0, 1], value=9)", masked_fill));
  ops.push_back(indexing("tril", {"x"}, {offset_parameter("diagonal")}, "x_ij where j <= i + diagonal, else 0",
                         "Lower triangle of the last two axes.", "tril([[1, 2], [3, 4]])", triangle<true>));
  ops.back().category = "unary";
  ops.push_back(indexing("triu", {"x"}, {offset_parameter("diagonal")}, "x_ij where j >= i + diagonal, else 0",
                         "Upper triangle of the last two axes.", "triu([[1, 2], [3, 4]])", triangle<false>));
  ops.back().category = "unary";
  ops.push_back(indexing("diag", {"x"}, {offset_parameter("offset")}, "y_ii = x_i, or y_i = x_ii",
                         "A vector as the diagonal of a matrix, or a matrix's diagonal.", "diag([1, 2, 3])", diag));
  ops.push_back(indexing("diagonal", {"x"}, {offset_parameter("offset"), diagonal_axis("axis1", -2), diagonal_axis("axis2", -1)},
                         "y_i = x_ii", "Diagonals of two axes, as a new last axis.", "diagonal([[1, 2], [3, 4]])", diagonal_op));
}

}  // namespace tenon

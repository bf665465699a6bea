#include <fmt/format.h>

#include <algorithm>

#include "ops/build.h"
#include "ops/composed/composed.h"
#include "ops/parameters.h"

namespace tenon {
namespace {

using namespace build;
using Results = std::vector<NodeId>;

Results permuted(const OpCall& call, Expr x) {
  const std::vector<std::int64_t> axes = call.integers("axes");
  if (static_cast<int>(axes.size()) != x.rank())
    call.fail(fmt::format("{} axes were named, there are {}", axes.size(), x.rank()));
  call.axes("axes", x.rank());  // refuses an axis named twice
  std::vector<int> perm;
  for (std::int64_t axis : axes) perm.push_back(normalize_axis(axis, x.rank()));
  return {build::transpose(x, perm).id()};
}

Results permute(const OpCall& call) { return permuted(call, input(call, 0)); }

Results transpose_op(const OpCall& call) {
  const Expr x = input(call, 0);
  if (call.given("axes")) return permuted(call, x);
  std::vector<int> perm;
  for (int i = x.rank() - 1; i >= 0; --i) perm.push_back(i);
  return {build::transpose(x, perm).id()};
}

Results swapaxes(const OpCall& call) {
  const Expr x = input(call, 0);
  return {swap_axes(x, call.axis("axis1", x.rank()), call.axis("axis2", x.rank())).id()};
}

Results movedim(const OpCall& call) {
  const Expr x = input(call, 0);
  const int rank = x.rank(), source = call.axis("source", rank), destination = call.axis("destination", rank);
  std::vector<int> perm;
  for (int i = 0; i < rank; ++i)
    if (i != source) perm.push_back(i);
  perm.insert(perm.begin() + destination, source);
  return {build::transpose(x, perm).id()};
}

Results reshape_op(const OpCall& call) {
  const Expr x = input(call, 0);
  std::vector<std::int64_t> to = call.integers("shape");
  const auto open = std::find(to.begin(), to.end(), -1);
  if (open != to.end()) {
    if (std::count(to.begin(), to.end(), -1) > 1) call.fail("only one extent may be -1");
    *open = 1;
    const std::int64_t known = Shape(to).elements();
    if (known == 0 || x.shape().elements() % known != 0)
      call.fail(fmt::format("{} elements do not divide into rows of {}", x.shape().elements(), known));
    *open = x.shape().elements() / known;
  }
  const Shape shape(to);
  if (shape.elements() != x.shape().elements())
    call.fail(fmt::format("{} elements do not fill {}", x.shape().elements(), to_string(shape)),
              "one extent may be -1: it is worked out");
  return {build::reshape(x, shape).id()};
}

Results squeeze_op(const OpCall& call) {
  const Expr x = input(call, 0);
  AxisSet axes = call.axes("axis", x.rank());
  for (int i = 0; i < x.rank(); ++i) {
    if (!(axes & one_axis(i)) || x.extent(i) == 1) continue;
    if (call.given("axis")) call.fail(fmt::format("axis {} has {} elements, not 1", i, x.extent(i)));
    axes = static_cast<AxisSet>(axes & ~one_axis(i));
  }
  return {build::squeeze(x, axes).id()};
}

Results unsqueeze_op(const OpCall& call) {
  const Expr x = input(call, 0);
  if (x.rank() == kMaxRank) call.fail(fmt::format("a tensor has at most {} axes", kMaxRank));
  return {build::unsqueeze(x, call.axis("axis", x.rank() + 1)).id()};
}

Results flatten(const OpCall& call) {
  const Expr x = input(call, 0);
  if (x.rank() == 0) return {build::reshape(x, Shape{1}).id()};
  const int first = call.axis("start_axis", x.rank()), last = call.axis("end_axis", x.rank());
  if (first > last) call.fail("start_axis is behind end_axis");
  Dims to;
  std::int64_t joined = 1;
  for (int i = 0; i < x.rank(); ++i) {
    if (i < first || i > last)
      to.push_back(x.extent(i));
    else
      joined *= x.extent(i);
    if (i == last) to.push_back(joined);
  }
  return {build::reshape(x, Shape(to)).id()};
}

Results expand(const OpCall& call) {
  const Expr x = input(call, 0);
  std::vector<std::int64_t> to = call.integers("shape");
  const int added = static_cast<int>(to.size()) - x.rank();
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (to[i] != -1) continue;
    if (static_cast<int>(i) < added) call.fail("-1 keeps an extent; a new axis needs a number");
    to[i] = x.extent(static_cast<int>(i) - added);
  }
  const Shape shape(to);
  if (!broadcastable(x.shape(), shape))
    call.fail(fmt::format("{} does not broadcast to {}", to_string(x.shape()), to_string(shape)),
              "only extents of 1 can be stretched");
  return {build::broadcast(x, shape).id()};
}

Results cast_op(const OpCall& call) { return {call.graph().cast(call.input(0), call.dtype("dtype"))}; }

OpInfo shape_op(std::string name, std::vector<Parameter> parameters, std::string formula, std::string doc, std::string example,
                Results (*build)(const OpCall&)) {
  return {.name = std::move(name),
          .category = "shape",
          .input_names = {"x"},
          .parameters = std::move(parameters),
          .dtypes = every_dtype(),
          .formula = std::move(formula),
          .doc = std::move(doc),
          .example = std::move(example),
          .build = build};
}

Parameter named_axis(std::string name, std::int64_t fallback, std::string doc) {
  Parameter p = axis_parameter(fallback, std::move(doc));
  p.name = std::move(name);
  return p;
}

Parameter required(Parameter p) {
  p.fallback = std::monostate{};
  p.required = true;
  return p;
}

}  // namespace

void register_shape_ops(OpList& ops) {
  ops.push_back(shape_op("transpose", {optional_integers_parameter("axes", "new order of the axes; none given: reversed")},
                         "y[j, i] = x[i, j]", "Axes in another order; reversed if none is given.",
                         "transpose([[1, 2, 3], [4, 5, 6]])", transpose_op));
  ops.push_back(shape_op("permute", {required_integers_parameter("axes", "new order of the axes")},
                         "y's axis i is x's axis axes[i]", "Axes in the order given.",
                         "permute([[1, 2, 3], [4, 5, 6]], axes=[1, 0])", permute));
  ops.push_back(shape_op("swapaxes", {named_axis("axis1", 0, "one axis"), named_axis("axis2", 1, "the other")},
                         "y[.. j .. i ..] = x[.. i .. j ..]", "Two axes exchanged.",
                         "swapaxes([[1, 2, 3], [4, 5, 6]], axis1=0, axis2=1)", swapaxes));
  ops.push_back(shape_op(
      "movedim", {required(named_axis("source", 0, "axis to move")), required(named_axis("destination", 0, "where it goes"))},
      "an axis at another place", "One axis moved, the others keep their order.",
      "movedim([[1, 2, 3], [4, 5, 6]], source=0, destination=1)", movedim));
  ops.back().aliases = {"moveaxis"};
  ops.push_back(shape_op("reshape", {required_integers_parameter("shape", "new extents; one may be -1")},
                         "same elements in row-major order", "The same elements under another shape.",
                         "reshape([1, 2, 3, 4], shape=[2, -1])", reshape_op));
  ops.back().aliases = {"view"};
  ops.push_back(shape_op("squeeze", {axes_parameter("axes to remove; none given: all of extent 1")}, "[1, n, 1] -> [n]",
                         "Axes of extent 1 removed.", "squeeze([[[1, 2, 3]]])", squeeze_op));
  ops.push_back(shape_op("unsqueeze", {required(axis_parameter(0, "place of the new axis"))}, "[n] -> [1, n]",
                         "A new axis of extent 1.", "unsqueeze([1, 2, 3], axis=0)", unsqueeze_op));
  ops.back().aliases = {"expand_dims"};
  ops.push_back(shape_op("flatten",
                         {named_axis("start_axis", 0, "first axis to join"), named_axis("end_axis", -1, "last axis to join")},
                         "[a, b, c] -> [a b c]", "Neighbouring axes joined to one.", "flatten([[1, 2], [3, 4]])", flatten));
  ops.back().aliases = {"ravel"};
  ops.push_back(shape_op("expand", {required_integers_parameter("shape", "extents of the result; -1 keeps one")},
                         "[1, n] -> [m, n]", "Extents of 1 stretched and leading axes added, without copying.",
                         "expand([1, 2, 3], shape=[2, 3])", expand));
  ops.back().aliases = {"broadcast_to"};
  Parameter dtype = dtype_parameter("", "the type wanted");
  ops.push_back(shape_op("cast", {required(dtype)}, "x as dtype",
                         "Another element type: floats round to nearest even, to integers they truncate and saturate.",
                         "cast([1.5, -2.5, 300.0], dtype=int8)", cast_op));
  ops.back().aliases = {"astype", "typecast"};
  ops.back().category = "type";
  register_layout_ops(ops);
  register_indexing_ops(ops);
}

}  // namespace tenon

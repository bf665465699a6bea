#include <fmt/format.h>

#include <algorithm>

#include "ops/build.h"
#include "ops/parameters.h"
#include "ops/register.h"

namespace tenon {
namespace {

using namespace build;
using Results = std::vector<NodeId>;

Results permuted(const OpCall& call, Expr x) {
  const std::vector<std::int64_t> axes = call.integers("axes");
  if (static_cast<int>(axes.size()) != x.rank())
    call.fail(fmt::format("{} axes are given, but the tensor has {}", axes.size(), x.rank()));
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
      call.fail(fmt::format("{} elements cannot be divided into rows of {}", x.shape().elements(), known));
    *open = x.shape().elements() / known;
  }
  const Shape shape(to);
  if (shape.elements() != x.shape().elements())
    call.fail(fmt::format("{} elements cannot be reshaped to {}", x.shape().elements(), to_string(shape)),
              "one extent may be -1; it is then inferred");
  return {build::reshape(x, shape).id()};
}

Results squeeze_op(const OpCall& call) {
  const Expr x = input(call, 0);
  AxisSet axes = call.axes("axis", x.rank());
  for (int i = 0; i < x.rank(); ++i) {
    if (!(axes & one_axis(i)) || x.extent(i) == 1) continue;
    if (call.given("axis"))
      call.fail(fmt::format("axis {} has {} elements, but only axes of 1 element can be removed", i, x.extent(i)));
    axes = static_cast<AxisSet>(axes & ~one_axis(i));
  }
  return {build::squeeze(x, axes).id()};
}

Results unsqueeze_op(const OpCall& call) {
  const Expr x = input(call, 0);
  if (x.rank() == kMaxRank) call.fail(fmt::format("the result would have more than {} axes", kMaxRank));
  return {build::unsqueeze(x, call.axis("axis", x.rank() + 1)).id()};
}

Results flatten(const OpCall& call) {
  const Expr x = input(call, 0);
  if (x.rank() == 0) return {build::reshape(x, Shape{1}).id()};
  const int first = call.axis("start_axis", x.rank()), last = call.axis("end_axis", x.rank());
  if (first > last) call.fail("start_axis must not be greater than end_axis");
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
    if (static_cast<int>(i) < added) call.fail("-1 keeps an existing extent, but this axis is new; give its extent");
    to[i] = x.extent(static_cast<int>(i) - added);
  }
  const Shape shape(to);
  if (!broadcastable(x.shape(), shape))
    call.fail(fmt::format("{} does not broadcast to {}", to_string(x.shape()), to_string(shape)),
              "only axes with extent 1 can be broadcast");
  return {build::broadcast(x, shape).id()};
}

Results cast_op(const OpCall& call) { return {call.graph().cast(call.input(0), call.dtype("dtype"))}; }

Family shape_family() { return {.category = "shape"}; }

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
  Entry(ops, shape_family(), "transpose", transpose_op)
      .parameters({optional_integers_parameter("axes", "new order of the axes; default: reversed")})
      .formula("y[j, i] = x[i, j]")
      .doc("Permutes the axes; by default reverses them.")
      .example("transpose([[1, 2, 3], [4, 5, 6]])");
  Entry(ops, shape_family(), "permute", permute)
      .parameters({required_integers_parameter("axes", "new order of the axes")})
      .formula("y's axis i is x's axis axes[i]")
      .doc("Permutes the axes into the given order.")
      .example("permute([[1, 2, 3], [4, 5, 6]], axes=[1, 0])");
  Entry(ops, shape_family(), "swapaxes", swapaxes)
      .parameters({named_axis("axis1", 0, "one axis"), named_axis("axis2", 1, "the other")})
      .formula("y[.. j .. i ..] = x[.. i .. j ..]")
      .doc("Swaps two axes.")
      .example("swapaxes([[1, 2, 3], [4, 5, 6]], axis1=0, axis2=1)");
  Entry(ops, shape_family(), "movedim", movedim)
      .parameters(
          {required(named_axis("source", 0, "axis to move")), required(named_axis("destination", 0, "new position of the axis"))})
      .aliases({"moveaxis"})
      .formula("one axis moved to another position")
      .doc("Moves one axis; the others keep their order.")
      .example("movedim([[1, 2, 3], [4, 5, 6]], source=0, destination=1)");
  Entry(ops, shape_family(), "reshape", reshape_op)
      .parameters({required_integers_parameter("shape", "new extents; one may be -1")})
      .aliases({"view"})
      .formula("same elements in row-major order")
      .doc("The same elements with another shape.")
      .example("reshape([1, 2, 3, 4], shape=[2, -1])");
  Entry(ops, shape_family(), "squeeze", squeeze_op)
      .parameters({axes_parameter("axes to remove; default: all axes with extent 1")})
      .formula("[1, n, 1] -> [n]")
      .doc("Removes axes with extent 1.")
      .example("squeeze([[[1, 2, 3]]])");
  Entry(ops, shape_family(), "unsqueeze", unsqueeze_op)
      .parameters({required(axis_parameter(0, "position of the new axis"))})
      .aliases({"expand_dims"})
      .formula("[n] -> [1, n]")
      .doc("Inserts an axis with extent 1.")
      .example("unsqueeze([1, 2, 3], axis=0)");
  Entry(ops, shape_family(), "flatten", flatten)
      .parameters({named_axis("start_axis", 0, "first axis to merge"), named_axis("end_axis", -1, "last axis to merge")})
      .aliases({"ravel"})
      .formula("[a, b, c] -> [a b c]")
      .doc("Merges adjacent axes into one.")
      .example("flatten([[1, 2], [3, 4]])");
  Entry(ops, shape_family(), "expand", expand)
      .parameters({required_integers_parameter("shape", "extents of the result; -1 keeps an extent")})
      .aliases({"broadcast_to"})
      .formula("[1, n] -> [m, n]")
      .doc("Broadcasts axes with extent 1 and adds leading axes, without copying.")
      .example("expand([1, 2, 3], shape=[2, 3])");
  Parameter dtype = dtype_parameter("", "element type of the result");
  Entry(ops, shape_family(), "cast", cast_op)
      .category("type")
      .parameters({required(dtype)})
      .aliases({"astype", "typecast"})
      .formula("x as dtype")
      .doc("Converts to another element type. Floats round to nearest even; to integers they truncate and saturate.")
      .example("cast([1.5, -2.5, 300.0], dtype=int8)");
}

}  // namespace tenon

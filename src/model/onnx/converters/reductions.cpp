#include <cmath>

#include "model/onnx/converters/families.h"

namespace tenon::onnx {
namespace {

using namespace build;

std::vector<int> all(int rank) {
  std::vector<int> axes;
  for (int i = 0; i < rank; ++i) axes.push_back(i);
  return axes;
}

// Sums of integers are made in 64 bits; ONNX keeps the type and wraps around.
Expr narrowed(Expr y, DType to) { return y.dtype() == to ? y : convert(y, to); }

Expr reduce(const NodeContext& node, Expr x, AxisSet axes) {
  const std::string_view op = node.op();
  const DType dtype = x.dtype();
  const bool is_empty = extent_of(x.shape(), axes) == 0;
  const auto filled = [&](Expr value) {
    Shape shape = x.shape();
    for (int i = 0; i < x.rank(); ++i)
      if (axes >> i & 1) shape = shape.with(i, 1);
    return expand_to(value, shape);
  };
  if (op == "ReduceMax" || op == "ReduceMin") {
    if (is_empty) return filled(op == "ReduceMax" ? lowest(x) : highest(x));
    if (dtype == DType::boolean) return op == "ReduceMax" ? any_keep(x, axes) : all_keep(x, axes);
    return op == "ReduceMax" ? max_keep(x, axes) : min_keep(x, axes);
  }
  if (op == "ReduceProd") return narrowed(prod_keep(x, axes), dtype);
  if (op == "ReduceSum") return narrowed(sum_keep(x, axes), dtype);
  if (op == "ReduceSumSquare") return narrowed(sum_keep(square(x), axes), dtype);
  if (op == "ReduceL1") return narrowed(sum_keep(abs(x), axes), dtype);
  if (op == "ReduceMean") {
    if (is_float(dtype)) return mean_keep(x, axes);
    const Expr sum = sum_keep(x, axes);
    return narrowed(node.apply("trunc_div", {sum, same(sum, static_cast<double>(extent_of(x.shape(), axes)))}), dtype);
  }
  if (op == "ReduceL2") {
    if (is_float(dtype)) return norm_keep(x, axes, 2);
    return cast(sqrt(sum_keep(square(cast(x, DType::f64)), axes)), dtype);
  }
  const Expr wide = is_float(dtype) ? x : cast(x, DType::f64);
  if (op == "ReduceLogSum") return cast(log(sum_keep(wide, axes)), dtype);
  if (is_empty) return cast(filled(node.constant(HostArray::full(compute_dtype(wide.dtype()), {}, -INFINITY))), dtype);
  // An infinite maximum would turn every difference into NaN.
  const Expr largest = max_keep(wide, axes);
  const Expr shift = where(is_inf(largest), 0.0, largest);
  return cast(log(sum_keep(exp(wide - shift), axes)) + shift, dtype);
}

Results reduction(const NodeContext& node) {
  const Expr x = node.in(0);
  const bool axes_are_input = node.version() >= (node.op() == "ReduceSum" ? 13 : 18);
  Dims given;
  if (axes_are_input && node.has(1)) given = node.host_integers(1);
  if (!axes_are_input) given = node.integers("axes");
  if (given.empty() && node.integer("noop_with_empty_axes", 0) != 0) {
    // No axis to reduce: what the op does to each element remains.
    const Expr y = reduce(node, unsqueeze(reshape(x, Shape{x.shape().elements()}), 0), one_axis(0));
    return {reshape(y, x.shape())};
  }
  const std::vector<int> axes = given.empty() ? all(x.rank()) : node.axes_of(given, x.rank());
  const AxisSet set = axis_set(axes);
  Expr y = set == 0 && x.rank() == 0 ? reshape(reduce(node, reshape(x, Shape{1}), one_axis(0)), {}) : reduce(node, x, set);
  if (node.integer("keepdims", 1) == 0) y = squeeze(y, set);
  return {cast(y, x.dtype())};
}

Results arg_extreme(const NodeContext& node) {
  Expr x = node.in(0);
  const int axis = node.axis("axis", 0, x.rank());
  const bool last = node.integer("select_last_index", 0) != 0;
  if (last) x = reverse(x, axis);
  Expr index(node.graph(), node.graph().arg_reduce(x.id(), axis, node.op() == "ArgMax"));
  if (last) index = static_cast<double>(x.extent(axis) - 1) - index;
  if (node.integer("keepdims", 1) == 0) index = squeeze(index, one_axis(axis));
  return {index};
}

Results cumulative(const NodeContext& node) {
  Expr x = node.in(0);
  const DType dtype = x.dtype();
  const int axis = normalize_axis(node.host_integers(1).at(0), x.rank());
  const bool product = node.op() == "CumProd", backwards = node.integer("reverse", 0) != 0;
  if (backwards) x = reverse(x, axis);
  Expr y = narrowed(Expr(node.graph(), node.graph().cumulative(x.id(), axis, product)), dtype);
  if (node.integer("exclusive", 0) != 0 && x.extent(axis) > 0)
    y = pad_axis(narrow(y, axis, 0, x.extent(axis) - 1), axis, 1, 0, product ? 1 : 0);
  return {cast(backwards ? reverse(y, axis) : y, dtype)};
}

}  // namespace

void add_reductions(ConverterTable& table) {
  table.add({"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum",
             "ReduceLogSumExp", "ReduceSumSquare"},
            reduction);
  table.add({"ArgMax", "ArgMin"}, arg_extreme);
  table.add({"CumSum", "CumProd"}, cumulative);
}

}  // namespace tenon::onnx

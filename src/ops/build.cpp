#include "ops/build.h"

#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "ops/elementwise/elementwise.h"
#include "tenon/error.h"

namespace tenon::build {
namespace {

Expr unary(ElementwiseOp op, Expr x, std::initializer_list<double> params = {}) {
  const NodeId operands[] = {x.id()};
  return {x.graph(), x.graph().elementwise(op, operands, std::span(params.begin(), params.size()))};
}

Expr binary(ElementwiseOp op, Expr x, Expr y) {
  const NodeId operands[] = {x.id(), y.id()};
  return {x.graph(), x.graph().elementwise(op, operands)};
}

Expr reduce(ReduceKind kind, Expr x, AxisSet axes) { return {x.graph(), x.graph().reduce(kind, x.id(), axes)}; }

// A constant of exactly x's type, even where literals would promote it (a number combined with a bool).
Expr same_type(Expr x, double value) {
  if (is_float(x.dtype())) return number(x.graph(), value);
  return {x.graph(), x.graph().scalar(value, x.dtype())};
}

}  // namespace

Expr input(const OpCall& call, std::size_t i) { return {call.graph(), call.graph().strong(call.input(i))}; }
Expr number(Graph& graph, double value) { return {graph, graph.literal(value)}; }
Expr iota(Graph& graph, const Shape& shape, int axis) { return {graph, graph.iota(shape, axis)}; }
Expr integers(Graph& graph, const Shape& shape, std::span<const std::int64_t> values) {
  return {graph, graph.constant(HostArray::from<std::int64_t>(shape, values))};
}

Expr counted(Graph& graph, const Shape& shape, int axis, std::int64_t first, DType type) {
  constexpr std::int64_t kFew = 4096;
  if (shape[axis] <= kFew) {
    std::vector<std::int64_t> values(static_cast<std::size_t>(shape[axis]));
    std::iota(values.begin(), values.end(), first);
    const HostArray array = HostArray::from<std::int64_t>(shape, std::span<const std::int64_t>(values));
    return {graph, graph.constant(array.cast(type))};
  }
  const Expr shift{graph, graph.scalar(static_cast<double>(first), DType::i64)};
  return cast(first == 0 ? iota(graph, shape, axis) : iota(graph, shape, axis) + shift, type);
}

Expr cast(Expr x, DType to) { return {x.graph(), x.graph().cast(x.id(), to)}; }
Expr floating(Expr x) { return is_float(x.dtype()) ? x : cast(x, DType::f32); }

Expr operator+(Expr x, Expr y) { return binary(ElementwiseOp::Add, x, y); }
Expr operator-(Expr x, Expr y) { return binary(ElementwiseOp::Sub, x, y); }
Expr operator*(Expr x, Expr y) { return binary(ElementwiseOp::Mul, x, y); }
Expr operator/(Expr x, Expr y) { return binary(ElementwiseOp::Div, x, y); }
Expr operator+(Expr x, double y) { return x + same_type(x, y); }
Expr operator-(Expr x, double y) { return x - same_type(x, y); }
Expr operator-(double x, Expr y) { return same_type(y, x) - y; }
Expr operator*(Expr x, double y) { return x * same_type(x, y); }
Expr operator/(Expr x, double y) { return x / same_type(x, y); }
Expr operator-(Expr x) { return unary(ElementwiseOp::Neg, x); }
Expr operator<(Expr x, Expr y) { return binary(ElementwiseOp::Lt, x, y); }
Expr operator<=(Expr x, Expr y) { return binary(ElementwiseOp::Le, x, y); }
Expr operator>(Expr x, Expr y) { return binary(ElementwiseOp::Gt, x, y); }
Expr operator>=(Expr x, Expr y) { return binary(ElementwiseOp::Ge, x, y); }
Expr operator==(Expr x, Expr y) { return binary(ElementwiseOp::Eq, x, y); }
Expr operator!=(Expr x, Expr y) { return binary(ElementwiseOp::Ne, x, y); }
Expr operator==(Expr x, double y) { return x == same_type(x, y); }
Expr operator!=(Expr x, double y) { return x != same_type(x, y); }
Expr operator<=(Expr x, double y) { return x <= same_type(x, y); }
Expr operator&&(Expr x, Expr y) { return binary(ElementwiseOp::LogicalAnd, x, y); }
Expr operator!(Expr x) { return unary(ElementwiseOp::LogicalNot, x); }
Expr abs(Expr x) { return unary(ElementwiseOp::Abs, x); }
Expr exp(Expr x) { return unary(ElementwiseOp::Exp, x); }
Expr log(Expr x) { return unary(ElementwiseOp::Log, x); }
Expr log1p(Expr x) { return unary(ElementwiseOp::Log1p, x); }
Expr sqrt(Expr x) { return unary(ElementwiseOp::Sqrt, x); }
Expr square(Expr x) { return unary(ElementwiseOp::Square, x); }
Expr sin(Expr x) { return unary(ElementwiseOp::Sin, x); }
Expr cos(Expr x) { return unary(ElementwiseOp::Cos, x); }
Expr floor(Expr x) { return unary(ElementwiseOp::Floor, x); }
Expr rint(Expr x) { return unary(ElementwiseOp::Round, x); }
Expr sigmoid(Expr x) { return unary(ElementwiseOp::Sigmoid, x); }
Expr silu(Expr x) { return unary(ElementwiseOp::Silu, x); }
Expr gelu(Expr x) { return unary(ElementwiseOp::Gelu, x); }
Expr is_nan(Expr x) { return unary(ElementwiseOp::IsNan, x); }
Expr is_inf(Expr x) { return unary(ElementwiseOp::IsInf, x); }
Expr floor_div(Expr x, double y) { return binary(ElementwiseOp::FloorDiv, x, same_type(x, y)); }
Expr pow(Expr x, double y) { return pow(x, same_type(x, y)); }
Expr pow(Expr x, Expr y) { return binary(ElementwiseOp::Pow, x, y); }
Expr xlogy(Expr x, Expr y) { return binary(ElementwiseOp::XLogY, x, y); }
Expr maximum(Expr x, Expr y) { return binary(ElementwiseOp::Maximum, x, y); }
Expr minimum(Expr x, Expr y) { return binary(ElementwiseOp::Minimum, x, y); }
Expr maximum(Expr x, double y) { return maximum(x, same_type(x, y)); }
Expr minimum(Expr x, double y) { return minimum(x, same_type(x, y)); }
Expr where(Expr condition, Expr x, Expr y) {
  const NodeId operands[] = {condition.id(), x.id(), y.id()};
  return {x.graph(), x.graph().elementwise(ElementwiseOp::Where, operands)};
}
Expr where(Expr condition, Expr x, double y) { return where(condition, x, same_type(x, y)); }
Expr where(Expr condition, double x, Expr y) { return where(condition, same_type(y, x), y); }

Expr sum_keep(Expr x, AxisSet axes) { return reduce(ReduceKind::sum, x, axes); }
Expr prod_keep(Expr x, AxisSet axes) { return reduce(ReduceKind::prod, x, axes); }
Expr max_keep(Expr x, AxisSet axes) { return reduce(ReduceKind::max, x, axes); }
Expr min_keep(Expr x, AxisSet axes) { return reduce(ReduceKind::min, x, axes); }
Expr any_keep(Expr x, AxisSet axes) { return reduce(ReduceKind::any, x, axes); }
Expr all_keep(Expr x, AxisSet axes) { return reduce(ReduceKind::all, x, axes); }
Expr mean_keep(Expr x, AxisSet axes) {
  const std::int64_t count = extent_of(x.shape(), axes);
  return floating(sum_keep(x, axes)) / static_cast<double>(count);
}

Expr norm_keep(Expr x, AxisSet axes, double p) {
  if (p == 0) return sum_keep(cast(x != 0.0, x.dtype()), axes);
  const Expr size = abs(x);
  if (p == 1) return sum_keep(size, axes);
  if (extent_of(x.shape(), axes) == 0) return sum_keep(size, axes);
  if (std::isinf(p)) return p > 0 ? max_keep(size, axes) : min_keep(size, axes);
  const Expr largest = max_keep(size, axes);
  // An infinite or zero scale would turn the other elements into NaN, and no scaling is needed then.
  const Expr scale = where(is_inf(largest), 1.0, where(largest == 0.0, 1.0, largest));
  if (p == 2) return sqrt(sum_keep(square(x / scale), axes)) * scale;
  return pow(sum_keep(pow(size / scale, p), axes), 1 / p) * scale;
}

std::int64_t extent_of(const Shape& shape, AxisSet axes) {
  std::int64_t count = 1;
  for (int i = 0; i < shape.rank(); ++i)
    if (axes & one_axis(i)) count *= shape[i];
  return count;
}
AxisSet all_axes(int rank) { return static_cast<AxisSet>((1u << rank) - 1); }
AxisSet one_axis(int axis) { return static_cast<AxisSet>(1u << axis); }

Expr reshape(Expr x, const Shape& to) { return {x.graph(), x.graph().reshape(x.id(), to)}; }
Expr broadcast(Expr x, const Shape& to) { return {x.graph(), x.graph().broadcast(x.id(), to)}; }
Expr transpose(Expr x, const std::vector<int>& perm) { return {x.graph(), x.graph().transpose(x.id(), perm)}; }
Expr swap_axes(Expr x, int a, int b) {
  std::vector<int> perm;
  for (int i = 0; i < x.rank(); ++i) perm.push_back(i == a ? b : i == b ? a : i);
  return transpose(x, perm);
}
Expr squeeze(Expr x, AxisSet axes) {
  const Shape shape = x.shape();
  Dims kept;
  for (int i = 0; i < shape.rank(); ++i)
    if (!(axes & one_axis(i))) kept.push_back(shape[i]);
  return reshape(x, Shape(kept));
}
Expr unsqueeze(Expr x, int axis) {
  Dims d = dims(x.shape());
  d.insert(d.begin() + axis, 1);
  return reshape(x, Shape(d));
}
Expr narrow(Expr x, int axis, std::int64_t start, std::int64_t count, std::int64_t step) {
  const std::size_t at = static_cast<std::size_t>(axis);
  Dims starts(static_cast<std::size_t>(x.rank()), 0), counts = dims(x.shape()), steps(starts.size(), 1);
  starts[at] = start;
  counts[at] = count;
  steps[at] = step;
  return {x.graph(), x.graph().slice(x.id(), starts, counts, steps)};
}
Expr reverse(Expr x, int axis) {
  const std::int64_t n = x.extent(axis);
  return n > 1 ? narrow(x, axis, n - 1, n, -1) : x;
}
Expr pad_axis(Expr x, int axis, std::int64_t low, std::int64_t high, double value) {
  Dims lows(static_cast<std::size_t>(x.rank()), 0), highs = lows;
  lows[static_cast<std::size_t>(axis)] = low;
  highs[static_cast<std::size_t>(axis)] = high;
  return {x.graph(), x.graph().pad(x.id(), lows, highs, value)};
}
Expr concat(std::span<const Expr> parts, int axis) {
  std::vector<NodeId> ids;
  for (const Expr& part : parts) ids.push_back(part.id());
  return {parts[0].graph(), parts[0].graph().concat(ids, axis)};
}
Expr take(Expr x, Expr indices, int axis) { return {x.graph(), x.graph().take(x.id(), indices.id(), axis)}; }
Expr gather(Expr x, Expr indices, int axis) { return {x.graph(), x.graph().gather(x.id(), indices.id(), axis)}; }

Expr diagonal(Expr x, std::int64_t offset) {
  const Shape shape = x.shape();
  const int rank = shape.rank();
  const std::int64_t rows = shape[rank - 2], cols = shape[rank - 1];
  const std::int64_t row = offset < 0 ? -offset : 0, col = offset > 0 ? offset : 0;
  const std::int64_t count = std::max<std::int64_t>(0, std::min(rows - row, cols - col));
  Dims flat(shape.begin(), shape.end() - 2);
  flat.push_back(rows * cols);
  // In row-major order consecutive elements of a diagonal are one row and one column apart.
  return narrow(reshape(x, Shape(flat)), rank - 2, count > 0 ? row * cols + col : 0, count, cols + 1);
}

Expr along(Expr vector, int axis, int rank) {
  Dims d(static_cast<std::size_t>(rank), 1);
  d[static_cast<std::size_t>(axis)] = vector.shape().elements();
  return reshape(vector, Shape(d));
}
Dims dims(const Shape& shape) { return {shape.begin(), shape.end()}; }

Expr matmul(Expr a, Expr b, MatMulAttr attr) { return {a.graph(), a.graph().matmul(a.id(), b.id(), attr)}; }

}  // namespace tenon::build

#include <fmt/format.h>

#include <algorithm>

#include "model/onnx/converters/neural/spatial.h"

namespace tenon::onnx {

using namespace build;

// f32 adds integers exactly up to 2^24, so the inner axis is cut into parts whose sums stay below, and the parts are added as
// i32. Products in f32 are many times faster than products of integers.
Expr exact_matmul(Expr a, Expr b, double largest_a, double largest_b) {
  const std::int64_t inner = a.extent(a.rank() - 1),
                     part = std::max<std::int64_t>(static_cast<std::int64_t>(0x1p24 / (largest_a * largest_b)), 1);
  const Expr x = cast(a, DType::f32), y = cast(b, DType::f32);
  if (inner == 0) return cast(matmul(x, y), DType::i32);
  Expr sum = x;
  for (std::int64_t start = 0; start < inner; start += part) {
    const std::int64_t count = std::min(part, inner - start);
    const Expr here = cast(matmul(narrow(x, x.rank() - 1, start, count), narrow(y, y.rank() - 2, start, count)), DType::i32);
    sum = start == 0 ? here : sum + here;
  }
  return sum;
}

namespace {

// Vectors become matrices, and the added axis is taken away again.
struct Operands {
  Expr a, b;
  bool row = false, column = false;

  Expr result(Expr y) const {
    if (row && column) return reshape(y, {});
    if (row) return squeeze(y, one_axis(y.rank() - 2));
    if (column) return squeeze(y, one_axis(y.rank() - 1));
    return y;
  }
};

Operands operands(const NodeContext& node, Expr a, Expr b) {
  if (a.rank() == 0 || b.rank() == 0) node.fail("scalars have no matrix product");
  Operands out{a, b, a.rank() == 1, b.rank() == 1};
  if (out.row) out.a = unsqueeze(a, 0);
  if (out.column) out.b = unsqueeze(b, 1);
  return out;
}

Results matmul_op(const NodeContext& node) {
  const Operands o = operands(node, node.operand(0), node.operand(1));
  return {o.result(like(matmul(o.a, o.b), node.dtype(0)))};
}

Results gemm(const NodeContext& node) {
  const double alpha = node.number("alpha", 1), beta = node.number("beta", 1);
  const DType dtype = node.dtype(0);
  Expr y =
      like(matmul(node.operand(0), node.operand(1), {node.integer("transA", 0) != 0, node.integer("transB", 0) != 0}), dtype);
  if (alpha != 1) y = is_float(dtype) ? y * alpha : cast(cast(y, DType::f64) * alpha, dtype);
  if (node.has(2)) {
    Expr c = node.in(2);
    if (beta != 1) c = is_float(dtype) ? c * beta : cast(cast(c, DType::f64) * beta, dtype);
    y = y + c;
  }
  return {y};
}

Results einsum(const NodeContext& node) {
  std::vector<NodeId> inputs;
  for (std::size_t i = 0; i < node.inputs(); ++i) inputs.push_back(node.operand(i).id());
  std::string equation;
  for (const char c : node.text("equation", ""))
    if (c != ' ') equation += c;
  const NamedValue parameters[] = {{"equation", equation}};
  return {like(Expr(node.graph(), apply(node.graph(), find_op("einsum"), inputs, parameters)[0]), node.dtype(0))};
}

// x - zero point as floats with integer values. |axis|: of the zero points, if there are several.
Expr centred(const NodeContext& node, Expr x, std::size_t zero, int axis) {
  const Expr wide = cast(x, DType::f32);
  if (!node.has(zero)) return wide;
  Expr point = cast(node.in(zero), DType::f32);
  if (point.shape().elements() == 1)
    point = reshape(point, {});
  else if (point.rank() == 1)
    point = along(point, axis, x.rank());
  return wide - point;
}

// The largest magnitude of a value minus its zero point.
double largest(const NodeContext& node, DType dtype, std::size_t zero) {
  if (element_bytes(dtype) > 1) return 65535;
  if (dtype == DType::i8 &&
      (!node.has(zero) || (node.is_known(zero) && node.shape(zero).elements() == 1 && node.host_number(zero) == 0)))
    return 128;
  return 255;
}

Results matmul_integer(const NodeContext& node) {
  const Operands o = operands(node, node.in(0), node.in(1));
  const double high_a = largest(node, o.a.dtype(), 2), high_b = largest(node, o.b.dtype(), 3);
  return {o.result(exact_matmul(centred(node, o.a, 2, o.a.rank() - 2), centred(node, o.b, 3, o.b.rank() - 1), high_a, high_b))};
}

Results qlinear_matmul(const NodeContext& node) {
  const Operands o = operands(node, node.in(0), node.in(3));
  const double high_a = largest(node, o.a.dtype(), 2), high_b = largest(node, o.b.dtype(), 5);
  const Expr sum = exact_matmul(centred(node, o.a, 2, o.a.rank() - 2), centred(node, o.b, 5, o.b.rank() - 1), high_a, high_b);
  const auto scale = [&](std::size_t i, int axis) {
    const Expr s = node.in(i);
    if (s.shape().elements() == 1) return reshape(s, {});
    return s.rank() == 1 ? along(s, axis, sum.rank()) : s;
  };
  // Scales of 16 bits are combined in 16 bits; the sum is then scaled in double, so that the one rounding is the last.
  const DType narrow_type = node.dtype(1);
  const auto rounded = [&](Expr x) {
    return narrow_type == compute_dtype(narrow_type) ? x : cast(cast(x, narrow_type), DType::f64);
  };
  const Expr factor = rounded(rounded(scale(1, sum.rank() - 2) * scale(4, sum.rank() - 1)) / rounded(scale(6, sum.rank() - 2)));
  Expr y = rint(cast(sum, DType::f64) * cast(factor, DType::f64));
  if (node.has(7)) {
    const Expr zero = cast(node.in(7), DType::f64);
    y = y + (zero.shape().elements() == 1 ? reshape(zero, {}) : along(zero, sum.rank() - 2, sum.rank()));
  }
  return {o.result(cast(y, node.has(7) ? node.dtype(7) : node.dtype(0)))};
}

// By elimination without pivots where they are known not to be needed would be wrong for some matrices, so the pivot row of each
// step is chosen by its size and brought up by a product with a permutation.
Results det(const NodeContext& node) {
  Expr a = node.in(0);
  const int rank = a.rank();
  if (rank < 2 || a.extent(rank - 1) != a.extent(rank - 2)) node.fail("expected square matrices");
  const std::int64_t n = a.extent(rank - 1);
  if (n > 64) node.refuse(fmt::format("matrices of {} rows; at most 64 are supported", n));
  const DType dtype = a.dtype();
  a = reshape(cast(a, DType::f64), Shape{n == 0 ? 0 : a.shape().elements() / (n * n), n, n});
  Expr product = expand_to(node.constant(HostArray::full(DType::f64, {}, 1)), Shape{a.extent(0), 1, 1});
  for (std::int64_t size = n; size > 0; --size) {
    const Expr column = narrow(a, 2, 0, 1);
    const Expr best(node.graph(), node.graph().arg_reduce(abs(column).id(), 1, true));
    const Expr row = build::iota(node.graph(), column.shape(), 1);
    // Row |best| and row 0 change places.
    const Expr order = where(row == 0.0, best, where(row == best, row * 0.0, row));
    a = gather(a, expand_to(order, a.shape()), 1);
    const Expr pivot = narrow(narrow(a, 2, 0, 1), 1, 0, 1);
    product = product * pivot * where(best == 0.0, cast(pivot * 0.0 + 1.0, DType::f64), cast(pivot * 0.0 - 1.0, DType::f64));
    if (size == 1) break;
    const Expr below = narrow(narrow(a, 2, 0, 1), 1, 1, size - 1), right = narrow(narrow(a, 1, 0, 1), 2, 1, size - 1);
    const Expr factor = below / where(pivot == 0.0, 1.0, pivot);
    a = narrow(narrow(a, 1, 1, size - 1), 2, 1, size - 1) - factor * right;
  }
  Dims out = dims(node.shape(0));
  out.resize(out.size() - 2);
  return {cast(reshape(product, Shape(out)), dtype)};
}

}  // namespace

void add_products(ConverterTable& table) {
  table.add("MatMul", matmul_op);
  table.add("Gemm", gemm);
  table.add("Einsum", einsum);
  table.add("MatMulInteger", matmul_integer);
  table.add("QLinearMatMul", qlinear_matmul);
  table.add("Det", det);
}

}  // namespace tenon::onnx

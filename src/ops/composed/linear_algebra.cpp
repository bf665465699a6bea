#include <fmt/format.h>

#include <cmath>

#include "ops/build.h"
#include "ops/parameters.h"
#include "ops/register.h"

namespace tenon {
namespace {

using namespace build;
using Results = std::vector<NodeId>;

void need_rank(const OpCall& call, Expr x, int rank, std::string_view what) {
  if (x.rank() != rank)
    call.fail(fmt::format("{} must have {} {}, got shape {}", what, rank, rank == 1 ? "axis" : "axes", to_string(x.shape())));
}

void need_matrix(const OpCall& call, Expr x) {
  if (x.rank() < 2) call.fail("expected at least two axes", "reshape it to a matrix");
}

// NumPy's rule: a vector is a row on the left, a column on the right, and its axis disappears from the result.
Expr product(const OpCall& call, Expr a, Expr b) {
  if (a.rank() == 0 || b.rank() == 0) call.fail("an input is a scalar", "use * to scale");
  const bool row = a.rank() == 1, column = b.rank() == 1;
  if (row) a = unsqueeze(a, 0);
  if (column) b = unsqueeze(b, 1);
  const std::int64_t inner_a = a.extent(a.rank() - 1), inner_b = b.extent(b.rank() - 2);
  if (inner_a != inner_b)
    call.fail(fmt::format("the inner dimensions {} and {} differ", inner_a, inner_b),
              "transpose one of them, or check their order");
  Expr y = matmul(a, b);
  if (row) y = squeeze(y, one_axis(y.rank() - 2));
  if (column) y = squeeze(y, one_axis(y.rank() - 1));
  return y;
}

Results matmul_op(const OpCall& call) { return {product(call, input(call, 0), input(call, 1)).id()}; }

Results dot(const OpCall& call) {
  const Expr a = input(call, 0), b = input(call, 1);
  if (a.rank() != 1 || b.rank() != 1) call.fail("both inputs must be vectors", "use matmul for matrices, vecdot along an axis");
  return {product(call, a, b).id()};
}

Results vecdot(const OpCall& call) {
  const Expr a = input(call, 0), b = input(call, 1);
  const Shape common = broadcast(a.shape(), b.shape());
  const int axis = call.axis("axis", common.rank());
  const DType dtype = promote(a.dtype(), b.dtype());
  if (is_integer(dtype)) {
    // A matrix product of integers keeps their type and wraps; a sum would be of 64 bits.
    const auto last = [&](Expr x) { return swap_axes(broadcast(cast(x, dtype), common), axis, common.rank() - 1); };
    const int rank = common.rank();
    const Expr y = matmul(unsqueeze(last(a), rank - 1), unsqueeze(last(b), rank));
    return {squeeze(swap_axes(squeeze(y, one_axis(rank)), axis, rank - 1), one_axis(axis)).id()};
  }
  const Expr products = cast(a, dtype) * cast(b, dtype);
  return {squeeze(sum_keep(products, one_axis(axis)), one_axis(axis)).id()};
}

Results bmm(const OpCall& call) {
  const Expr a = input(call, 0), b = input(call, 1);
  need_rank(call, a, 3, "a");
  need_rank(call, b, 3, "b");
  return {product(call, a, b).id()};
}

Results mv(const OpCall& call) {
  const Expr a = input(call, 0), v = input(call, 1);
  need_rank(call, a, 2, "the matrix");
  need_rank(call, v, 1, "the vector");
  return {product(call, a, v).id()};
}

// x * factor; integers stay integers where the factor is whole.
Expr scaled(Expr x, double factor) {
  if (factor == 1) return x;
  return (factor == std::floor(factor) ? x : floating(x)) * factor;
}

Results addmm(const OpCall& call) {
  const Expr y = product(call, input(call, 1), input(call, 2));
  const Expr c = input(call, 0);
  const double alpha = call.number("alpha"), beta = call.number("beta");
  // With beta 0 the addend is not read, so its NaNs do not spread: BLAS's rule.
  const Expr product_part = scaled(y, alpha);
  return {beta == 0 ? product_part.id() : (scaled(c, beta) + product_part).id()};
}

Results linear(const OpCall& call) {
  const Expr x = input(call, 0), w = input(call, 1);
  if (w.rank() != 2) call.fail("weight must be a matrix [out, in]");
  if (x.rank() < 1 || x.extent(x.rank() - 1) != w.extent(1))
    call.fail(fmt::format("x has {} features, but weight expects {}", x.rank() < 1 ? 0 : x.extent(x.rank() - 1), w.extent(1)),
              "the shape of weight is [out, in]; transpose it if it is [in, out]");
  // All rows as one matrix: one large product instead of a batch of small ones.
  Dims out = dims(x.shape());
  out.back() = w.extent(0);
  std::int64_t rows = 1;
  for (int i = 0; i + 1 < x.rank(); ++i) rows *= x.extent(i);
  Expr y = reshape(matmul(reshape(x, Shape{rows, w.extent(1)}), w, {.transpose_b = true}), Shape(out));
  if (call.has_input(2)) y = y + input(call, 2);
  return {y.id()};
}

Expr flat(Expr x) { return reshape(x, Shape{x.shape().elements()}); }

Results outer(const OpCall& call) { return {(unsqueeze(flat(input(call, 0)), 1) * unsqueeze(flat(input(call, 1)), 0)).id()}; }

Results inner(const OpCall& call) {
  const Expr a = input(call, 0), b = input(call, 1);
  if (a.rank() == 0 || b.rank() == 0) return {(a * b).id()};
  const std::int64_t n = a.extent(a.rank() - 1);
  if (n != b.extent(b.rank() - 1)) call.fail("the last axes of the inputs have different extents");
  Dims out = dims(a.shape()), tail = dims(b.shape());
  out.pop_back();
  out.insert(out.end(), tail.begin(), tail.end() - 1);
  const auto rows = [&](Expr x) { return Shape{n == 0 ? 0 : x.shape().elements() / n, n}; };
  if (n == 0) return {broadcast(sum_keep(a, all_axes(a.rank())), Shape(out)).id()};
  return {reshape(matmul(reshape(a, rows(a)), reshape(b, rows(b)), {.transpose_b = true}), Shape(out)).id()};
}

Results kron(const OpCall& call) {
  const Expr a = input(call, 0), b = input(call, 1);
  if (a.rank() != b.rank() || 2 * a.rank() > kMaxRank)
    call.fail(fmt::format("both inputs must have the same number of axes, at most {}", kMaxRank / 2));
  Dims da, db, out;
  for (int i = 0; i < a.rank(); ++i) {
    da.insert(da.end(), {a.extent(i), 1});
    db.insert(db.end(), {1, b.extent(i)});
    out.push_back(a.extent(i) * b.extent(i));
  }
  return {reshape(reshape(a, Shape(da)) * reshape(b, Shape(db)), Shape(out)).id()};
}

Results cross(const OpCall& call) {
  const Expr a = input(call, 0), b = input(call, 1);
  const Shape common = broadcast(a.shape(), b.shape());
  const int axis = call.axis("axis", common.rank());
  if (common[axis] != 3) call.fail(fmt::format("axis {} must have 3 elements, but has {}", axis, common[axis]));
  const Expr x = broadcast(a, common), y = broadcast(b, common);
  const auto part = [&](Expr v, int i) { return narrow(v, axis, i % 3, 1); };
  std::vector<Expr> parts;
  for (int i = 0; i < 3; ++i) parts.push_back(part(x, i + 1) * part(y, i + 2) - part(x, i + 2) * part(y, i + 1));
  return {concat(parts, axis).id()};
}

Results trace(const OpCall& call) {
  const Expr x = input(call, 0);
  need_matrix(call, x);
  const Expr d = diagonal(x, call.integer("offset"));
  const AxisSet last = one_axis(d.rank() - 1);
  return {squeeze(sum_keep(d, last), last).id()};
}

Results matrix_power(const OpCall& call) {
  const Expr x = input(call, 0);
  need_matrix(call, x);
  const int rank = x.rank();
  const std::int64_t n = x.extent(rank - 1);
  if (x.extent(rank - 2) != n) call.fail("the matrix must be square");
  std::int64_t exponent = call.integer("n");
  if (exponent == 0) {
    const Shape square{n, n};
    const Expr one = iota(call.graph(), square, 0) == iota(call.graph(), square, 1);
    return {broadcast(cast(one, x.dtype()), x.shape()).id()};
  }
  Expr power = x;
  std::optional<Expr> result;
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) result = result ? matmul(*result, power) : power;
    if (exponent > 1) power = matmul(power, power);
  }
  return {result->id()};
}

Family algebra_family() { return {.category = "linear algebra", .inputs = {"a", "b"}, .dtypes = number_dtypes()}; }

}  // namespace

void register_linear_algebra_ops(OpList& ops) {
  Entry(ops, algebra_family(), "matmul", matmul_op)
      .aliases({"mm"})
      .formula("c_ij = sum_k a_ik b_kj")
      .doc("Matrix product. Leading axes are batches and broadcast; vectors are rows or columns. Also a @ b.")
      .example("matmul([[1, 2], [3, 4]], [[5, 6], [7, 8]])");
  Entry(ops, algebra_family(), "dot", dot)
      .formula("sum_i a_i b_i")
      .doc("Inner product of two vectors.")
      .example("dot([1, 2, 3], [4, 5, 6])");
  Entry(ops, algebra_family(), "vecdot", vecdot)
      .parameters({axis_parameter(-1, "axis along which the vectors lie")})
      .formula("sum_i a_i b_i")
      .doc("Inner products of the vectors along an axis.")
      .example("vecdot([[1, 2], [3, 4]], [[5, 6], [7, 8]])");
  Entry(ops, algebra_family(), "bmm", bmm)
      .formula("c_nij = sum_k a_nik b_nkj")
      .doc("Matrix products of two stacks of matrices.")
      .example("bmm([[[1, 2], [3, 4]]], [[[5, 6], [7, 8]]])");
  Entry(ops, algebra_family(), "mv", mv)
      .inputs({"a", "v"})
      .formula("y_i = sum_k a_ik v_k")
      .doc("Matrix times vector.")
      .example("mv([[1, 2], [3, 4]], [5, 6])");
  Entry(ops, algebra_family(), "addmm", addmm)
      .inputs({"c", "a", "b"})
      .parameters({number_parameter("beta", 1, "factor of c; if it is 0, c is ignored"),
                   number_parameter("alpha", 1, "factor of the product")})
      .formula("beta c + alpha (a @ b)")
      .doc("Adds a matrix product to a tensor.")
      .example("addmm([[1, 1], [1, 1]], [[1, 2], [3, 4]], [[5, 6], [7, 8]], beta=2)");
  Entry(ops, algebra_family(), "linear", linear)
      .inputs({"x", "weight", "bias"}, 2)
      .formula("x weight^T + bias")
      .doc("A dense layer: weight is [out, in]; bias [out] is optional.")
      .example("linear([[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]], [0.5, 0.5])");
  Entry(ops, algebra_family(), "outer", outer)
      .aliases({"ger"})
      .formula("c_ij = a_i b_j")
      .doc("Every element of a times every element of b.")
      .example("outer([1, 2], [3, 4, 5])");
  Entry(ops, algebra_family(), "inner", inner)
      .formula("sum over the last axes")
      .doc("Products summed over the last axis of both.")
      .example("inner([[1, 2], [3, 4]], [5, 6])");
  Entry(ops, algebra_family(), "kron", kron)
      .formula("blocks a_ij b")
      .doc("Kronecker product.")
      .example("kron([[1, 2], [3, 4]], [[1, 1], [1, 1]])");
  Entry(ops, algebra_family(), "cross", cross)
      .parameters({axis_parameter(-1, "axis of the three components")})
      .formula("(a2 b3 - a3 b2, a3 b1 - a1 b3, a1 b2 - a2 b1)")
      .doc("Vector product in three dimensions.")
      .example("cross([1, 0, 0], [0, 1, 0])");
  Entry(ops, algebra_family(), "trace", trace)
      .inputs({"x"})
      .parameters({{.name = "offset",
                    .type = ParameterType::integer,
                    .fallback = std::int64_t{0},
                    .min = -1e9,
                    .max = 1e9,
                    .doc = "diagonal above (positive) or below the main diagonal"}})
      .formula("sum_i x_ii")
      .doc("Sum of a diagonal of the last two axes.")
      .example("trace([[1, 2], [3, 4]])");
  Entry(ops, algebra_family(), "matrix_power", matrix_power)
      .inputs({"x"})
      .parameters({{.name = "n", .type = ParameterType::integer, .required = true, .min = 0.0, .max = 1e6, .doc = "exponent"}})
      .formula("x @ x @ ... @ x")
      .doc("Power of a square matrix.")
      .example("matrix_power([[1, 1], [1, 0]], n=10)");
}

}  // namespace tenon

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ops/build.h"
#include "ops/parameters.h"
#include "ops/register.h"

namespace tenon {
namespace {

using namespace build;
using Results = std::vector<NodeId>;

double order(const OpCall& call) {
  const double p = call.number("p");
  if (!(p >= 0)) call.fail("p must be at least 0");
  return p;
}

Results cosine_similarity(const OpCall& call) {
  const Expr a = floating(input(call, 0)), b = floating(input(call, 1));
  const Shape common = broadcast(a.shape(), b.shape());
  const int axis = call.axis("axis", common.rank());
  const AxisSet axes = one_axis(axis);
  const double eps = call.number("eps");
  // Rows are made unit length first: the product of two long vectors could overflow where their cosine does not.
  const auto unit = [&](Expr x) {
    x = broadcast(x, common);
    return x / maximum(norm_keep(x, axes, 2), eps);
  };
  return {squeeze(sum_keep(unit(a) * unit(b), axes), axes).id()};
}

Results pairwise_distance(const OpCall& call) {
  const Expr a = floating(input(call, 0)), b = floating(input(call, 1));
  const Expr difference = a - b + call.number("eps");
  if (difference.rank() == 0) call.fail("expected vectors along the last axis");
  const AxisSet last = one_axis(difference.rank() - 1);
  const Expr distance = norm_keep(difference, last, order(call));
  return {call.boolean("keepdims") ? distance.id() : squeeze(distance, last).id()};
}

// Records the region if the batch axes of a and b need no broadcasting, which would come after the result.
void mark_distances(Expr a, Expr b, Expr y, double p) {
  const auto batch = [](Expr x) { return Shape(x.shape().dims().first(static_cast<std::size_t>(x.rank() - 2))); };
  if (a.dtype() == b.dtype() && y.shape().elements() > 0 && batch(a) == batch(b))
    y.graph().mark({{a.id(), b.id()}, y.id(), DistanceAttr{p}});
}

// Enough rows that a product is several times faster than their differences.
bool is_worth_a_product(Expr a, Expr b) {
  return std::min(a.extent(a.rank() - 2), b.extent(b.rank() - 2)) >= 32 && a.extent(a.rank() - 1) >= 4 && !is_block(a.dtype());
}

// |a - b|^2 = |a|^2 + |b|^2 - 2 a.b. What cancels in it depends on how far the rows are from the origin, so f32 and f64 are moved
// to the mean of b first; 16-bit rows would be rounded by that.
Expr distances_by_product(Expr a, Expr b) {
  if (compute_dtype(a.dtype()) == a.dtype() && compute_dtype(b.dtype()) == b.dtype()) {
    const Expr mean = mean_keep(b, one_axis(b.rank() - 2));
    a = a - mean;
    b = b - mean;
  }
  const auto squares = [](Expr x) { return sum_keep(square(x), one_axis(x.rank() - 1)); };
  const Expr product = matmul(a, b, {.transpose_b = true});
  // Between steps of a program a device may round a product, of which little is left here.
  const Expr exact = build::cast(product, compute_dtype(product.dtype())), b_squares = squares(b);
  const Expr sum = squares(a) + swap_axes(b_squares, b_squares.rank() - 2, b_squares.rank() - 1) - exact * 2.0;
  return build::cast(sqrt(maximum(sum, 0.0)), product.dtype());
}

Results cdist(const OpCall& call) {
  const Expr a = floating(input(call, 0)), b = floating(input(call, 1));
  if (a.rank() < 2 || b.rank() < 2) call.fail("expected shapes [..., n, d] and [..., m, d]");
  if (a.extent(a.rank() - 1) != b.extent(b.rank() - 1)) call.fail("the last axes of the inputs differ");
  if (std::max(a.rank(), b.rank()) >= kMaxRank) call.fail(fmt::format("the input may have at most {} axes", kMaxRank - 1));
  const double p = order(call);
  if (p == 2 && !call.boolean("exact") && is_worth_a_product(a, b)) return {distances_by_product(a, b).id()};
  // Differences do not cancel for rows that are close to each other.
  const Expr difference = unsqueeze(a, a.rank() - 1) - unsqueeze(b, b.rank() - 2);
  const AxisSet last = one_axis(difference.rank() - 1);
  const Expr y = squeeze(norm_keep(difference, last, p), last);
  mark_distances(a, b, y, p);
  return {y.id()};
}

Family distance_family() { return {.category = "distance", .inputs = {"a", "b"}, .dtypes = number_dtypes()}; }

}  // namespace

void register_distance_ops(OpList& ops) {
  const Parameter p = number_parameter("p", 2, "order of the norm: 2 Euclidean, 1 Manhattan, inf Chebyshev");
  Entry(ops, distance_family(), "cosine_similarity", cosine_similarity)
      .parameters({axis_parameter(-1, "axis along which the vectors lie"), eps_parameter(1e-8)})
      .formula("a . b / (max(|a|, eps) max(|b|, eps))")
      .doc("Cosine of the angle between vectors.")
      .example("cosine_similarity([[1.0, 0.0]], [[1.0, 1.0]])");
  Entry(ops, distance_family(), "pairwise_distance", pairwise_distance)
      .parameters({p, eps_parameter(1e-6), keepdims_parameter()})
      .formula("norm(a - b + eps, p)")
      .doc("Distances between corresponding rows.")
      .example("pairwise_distance([[0.0, 0.0]], [[3.0, 4.0]])");
  Entry(ops, distance_family(), "cdist", cdist)
      .parameters({p, boolean_parameter("exact", false,
                                        "form differences even for p = 2 and 32 or more rows; otherwise distances below about "
                                        "1e-3 of the rows' spread lose digits")})
      .formula("d_ij = norm(a_i - b_j, p)")
      .doc("Distances from every row of a to every row of b.")
      .example("cdist([[0.0, 0.0], [1.0, 1.0]], [[3.0, 4.0]])");
}

}  // namespace tenon

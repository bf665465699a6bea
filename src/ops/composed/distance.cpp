#include <fmt/format.h>

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

Results cdist(const OpCall& call) {
  const Expr a = floating(input(call, 0)), b = floating(input(call, 1));
  if (a.rank() < 2 || b.rank() < 2) call.fail("expected shapes [..., n, d] and [..., m, d]");
  if (a.extent(a.rank() - 1) != b.extent(b.rank() - 1)) call.fail("the last axes of the inputs differ");
  if (std::max(a.rank(), b.rank()) >= kMaxRank) call.fail(fmt::format("the input may have at most {} axes", kMaxRank - 1));
  // Differences, not |a|^2 + |b|^2 - 2 a.b: that cancels for rows close to each other.
  const Expr difference = unsqueeze(a, a.rank() - 1) - unsqueeze(b, b.rank() - 2);
  const AxisSet last = one_axis(difference.rank() - 1);
  return {squeeze(norm_keep(difference, last, order(call)), last).id()};
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
      .parameters({p})
      .formula("d_ij = norm(a_i - b_j, p)")
      .doc("Distances from every row of a to every row of b.")
      .example("cdist([[0.0, 0.0], [1.0, 1.0]], [[3.0, 4.0]])");
}

}  // namespace tenon

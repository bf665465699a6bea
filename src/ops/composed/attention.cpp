#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "ops/build.h"
#include "ops/parameters.h"
#include "ops/register.h"

namespace tenon {
namespace {

using namespace build;
using Results = std::vector<NodeId>;

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

// Softmax over the last axis. A row in which everything is masked gives zeros, not NaN, where |may_be_empty|.
Expr attention_weights(Expr scores, bool may_be_empty) {
  const AxisSet last = one_axis(scores.rank() - 1);
  Expr largest = max_keep(scores, last);
  if (may_be_empty) largest = where(largest == kMinusInfinity, 0.0, largest);
  const Expr e = exp(scores - largest);
  Expr total = sum_keep(e, last);
  if (may_be_empty) total = where(total == 0.0, 1.0, total);
  return e / total;
}

// [batch..., rows, width] as [n, heads, rows, width], where the heads are the last batch axis.
Expr with_four_axes(Expr x, const Shape& batch) {
  const int rank = x.rank();
  Dims full = dims(batch);
  full.insert(full.end(), {x.extent(rank - 2), x.extent(rank - 1)});
  x = broadcast(x, Shape(full));
  const std::int64_t heads = batch.rank() > 0 ? batch[batch.rank() - 1] : 1;
  const std::int64_t n = batch.elements() == 0 ? (heads == 0 ? 1 : 0) : batch.elements() / heads;
  return reshape(x, Shape{n, heads, x.extent(x.rank() - 2), x.extent(x.rank() - 1)});
}

// The batch axes of q, k and v. The heads of k and v, the last of them, may be shared by groups of heads of q.
struct AttentionBatch {
  Shape q, kv;
};
AttentionBatch attention_batch(const OpCall& call, Expr q, Expr k, Expr v) {
  const auto of = [](Expr x) { return Shape(x.shape().dims().first(static_cast<std::size_t>(x.rank() - 2))); };
  const Shape q_batch = of(q), kv_batch = tenon::broadcast(of(k), of(v));
  const int q_rank = q_batch.rank(), kv_rank = kv_batch.rank();
  if (q_rank == 0 || kv_rank == 0) {
    const Shape all = tenon::broadcast(q_batch, kv_batch);
    return {all, all};
  }
  const std::int64_t heads = q_batch[q_rank - 1], shared = kv_batch[kv_rank - 1];
  if (heads == shared || heads == 1 || shared <= 1) {
    // One head of k and v for all of q needs no copies of it.
    const Shape all = tenon::broadcast(q_batch, kv_batch);
    return {all, shared == 1 && all.elements() > 0 ? all.with(all.rank() - 1, 1) : all};
  }
  if (heads % shared != 0) call.fail(fmt::format("{} heads of q cannot share {} heads of k and v", heads, shared));
  const Shape all = tenon::broadcast(q_batch.with(q_rank - 1, 1), kv_batch.with(kv_rank - 1, 1));
  return {all.with(all.rank() - 1, heads), all.with(all.rank() - 1, shared)};
}

// Every head |times| times in a row.
Expr repeated_heads(Expr x, std::int64_t times) {
  if (times == 1) return x;
  const Shape shape = x.shape();
  return reshape(broadcast(unsqueeze(x, 2), Shape{shape[0], shape[1], times, shape[2], shape[3]}),
                 shape.with(1, shape[1] * times));
}

Results attention(const OpCall& call) {
  Expr q = floating(input(call, 0)), k = floating(input(call, 1)), v = floating(input(call, 2));
  if (q.rank() < 2 || k.rank() < 2 || v.rank() < 2) call.fail("expected q [..., l, e], k [..., s, e], v [..., s, d]");
  const std::int64_t width = q.extent(q.rank() - 1), keys = k.extent(k.rank() - 2), rows = q.extent(q.rank() - 2);
  if (k.extent(k.rank() - 1) != width) call.fail("the last axes of q and k differ");
  if (v.extent(v.rank() - 2) != keys) call.fail(fmt::format("k has {} rows, but v has {}", keys, v.extent(v.rank() - 2)));
  if (keys == 0) call.fail("k is empty; attention needs at least one key");
  const double scale =
      call.given("scale") ? call.number("scale") : 1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(width, 1)));

  Graph& graph = call.graph();
  const AttentionBatch batch = attention_batch(call, q, k, v);
  const DType dtype = promote(promote(q.dtype(), k.dtype()), v.dtype());
  const auto prepared = [&](Expr x, const Shape& axes) {
    return with_four_axes(Expr(graph, graph.rounded(build::cast(x, dtype).id())), axes);
  };
  q = prepared(q, batch.q);
  k = prepared(k, batch.kv);
  v = prepared(v, batch.kv);
  Dims result = dims(batch.q);
  result.insert(result.end(), {rows, v.extent(3)});
  const std::int64_t heads = q.extent(1), per_group = k.extent(1) == 0 ? 1 : heads / k.extent(1);

  Region region{{q.id(), k.id(), v.id()}, -1, AttentionAttr{scale, call.boolean("causal")}};
  Expr scores = matmul(q, repeated_heads(k, per_group), {.transpose_b = true}) * scale;
  const bool masked = call.has_input(3);
  if (masked) {
    Expr mask = input(call, 3);
    Dims full = dims(batch.q);
    full.insert(full.end(), {rows, keys});
    if (!broadcastable(mask.shape(), Shape(full)))
      call.fail(fmt::format("mask {} does not broadcast to the scores {}", to_string(mask.shape()), to_string(Shape(full))));
    mask = reshape(broadcast(mask, Shape(full)), scores.shape());
    if (!is_float(mask.dtype()))
      mask = build::cast(mask, DType::boolean);
    else
      mask = build::cast(mask, dtype);
    region.inputs.push_back(mask.id());
    scores = mask.dtype() == DType::boolean ? where(mask, scores, kMinusInfinity) : scores + mask;
  }
  if (call.boolean("causal")) {
    const Shape matrix{rows, keys};
    scores = where(iota(graph, matrix, 1) <= iota(graph, matrix, 0), scores, kMinusInfinity);
  }
  const Expr y = matmul(attention_weights(scores, masked), repeated_heads(v, per_group));
  region.output = y.id();
  if (y.shape().elements() > 0) graph.mark(std::move(region));
  return {reshape(y, Shape(result)).id()};
}

// Rotates pairs of features by position * base^(-2 j / width). Angles are formed in double: at position 100,000 an f32 angle
// would be off by a hundredth of a turn.
Results rope(const OpCall& call) {
  const Expr x = floating(input(call, 0));
  const int rank = x.rank();
  if (rank < 2) call.fail("expected x [..., positions, width]");
  const std::int64_t length = x.extent(rank - 2), width = x.extent(rank - 1), pairs = width / 2;
  if (width % 2 != 0) call.fail(fmt::format("the width must be even, but is {}", width));
  const double base = call.number("base");
  Graph& graph = call.graph();

  Expr position = build::cast(iota(graph, Shape{length}, 0), DType::f64);
  if (call.has_input(1)) {
    const Expr given = input(call, 1);
    if (given.rank() < 1 || given.extent(given.rank() - 1) != length)
      call.fail(fmt::format("positions {} do not match {} rows", to_string(given.shape()), length));
    position = build::cast(given, DType::f64);
  }
  position = position + call.number("offset");
  const Expr exponent =
      build::cast(iota(graph, Shape{pairs}, 0), DType::f64) * (-2.0 / static_cast<double>(std::max<std::int64_t>(width, 1)));
  const Expr angle = build::unsqueeze(position, position.rank()) * exp(exponent * std::log(base));
  const Expr c = build::cast(cos(angle), compute_dtype(x.dtype())), s = build::cast(sin(angle), compute_dtype(x.dtype()));

  const auto rotate = [&](Expr a, Expr b) { return std::pair{a * c - b * s, a * s + b * c}; };
  if (!call.boolean("interleaved")) {
    const auto [a, b] = rotate(narrow(x, rank - 1, 0, pairs), narrow(x, rank - 1, pairs, pairs));
    const Expr halves[] = {a, b};
    return {build::cast(build::concat(halves, rank - 1), x.dtype()).id()};
  }
  const auto [a, b] = rotate(narrow(x, rank - 1, 0, pairs, 2), narrow(x, rank - 1, pairs > 0 ? 1 : 0, pairs, 2));
  if (rank == kMaxRank) call.fail(fmt::format("the input may have at most {} axes", kMaxRank - 1));
  const Expr columns[] = {build::unsqueeze(a, rank), build::unsqueeze(b, rank)};
  return {build::cast(build::reshape(build::concat(columns, rank), x.shape()), x.dtype()).id()};
}

Results embedding(const OpCall& call) {
  const Expr indices = input(call, 0), weight = input(call, 1);
  if (weight.rank() != 2) call.fail("weight must be a matrix [entries, width]");
  return {build::take(weight, indices, 0).id()};
}

}  // namespace

void register_attention_ops(OpList& ops) {
  Entry(ops, {.category = "attention", .dtypes = float_dtypes()}, "scaled_dot_product_attention", attention)
      .inputs({"q", "k", "v", "mask"}, 3)
      .parameters(
          {boolean_parameter("causal", false, "row i attends only to keys 0 to i"),
           {.name = "scale", .type = ParameterType::number, .doc = "factor applied to the scores; default 1 / sqrt(width)"}})
      .aliases({"attention", "sdpa"})
      .formula("softmax(q k^T scale + mask) v")
      .doc(
          "Attention over [..., heads, rows, width]; k and v may have fewer heads. A bool mask is true for keys to attend to; a "
          "float mask is added to the scores.")
      .example(
          "scaled_dot_product_attention([[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]], [[1.0, 2.0], [3.0, "
          "4.0]], causal=true)");
  Entry(ops, {.category = "attention", .dtypes = float_dtypes()}, "rope", rope)
      .inputs({"x", "positions"}, 1)
      .parameters(
          {{.name = "base",
            .type = ParameterType::number,
            .fallback = 10000.0,
            .min = 1e-30,
            .doc = "base of the frequencies; the longest period is about 2 pi base positions"},
           boolean_parameter(
               "interleaved", false,
               "rotate adjacent elements as pairs; otherwise element j of the first half with element j of the second half"),
           number_parameter("offset", 0, "number added to every position")})
      .aliases({"rotary_embedding"})
      .formula("(a cos t - b sin t, a sin t + b cos t), t = position base^(-2 j / width)")
      .doc("Rotary position embedding of [..., positions, width]; positions default to 0, 1, ...")
      .example("rope([[1.0, 0.0, 1.0, 0.0], [1.0, 0.0, 1.0, 0.0]])");
  Entry(ops, {.category = "indexing", .dtypes = integer_dtypes()}, "embedding", embedding)
      .inputs({"indices", "weight"})
      .formula("y[i] = weight[indices[i]]")
      .doc("Looks up rows of a table by index.")
      .example("embedding([1, 0, 1], [[1.0, 2.0], [3.0, 4.0]])");
}

}  // namespace tenon

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "model/onnx/converters/neural/heads.h"
#include "model/onnx/import/importer.h"

namespace tenon::onnx {

using namespace build;

Expr heads_apart(const NodeContext& node, Expr x, std::int64_t heads) {
  if (heads <= 0 || x.extent(2) % heads != 0)
    node.fail(fmt::format("{} elements cannot be divided into {} heads", x.extent(2), heads));
  return swap_axes(reshape(x, Shape{x.extent(0), x.extent(1), heads, x.extent(2) / heads}), 1, 2);
}

Expr heads_together(Expr x) { return reshape(swap_axes(x, 1, 2), Shape{x.extent(0), x.extent(2), x.extent(1) * x.extent(3)}); }

Expr repeat_heads(Expr x, std::int64_t count) {
  if (count == 1) return x;
  const Shape shape = x.shape();
  Dims stretched = dims(shape);
  stretched.insert(stretched.begin() + 2, count);
  return reshape(broadcast(unsqueeze(x, 2), Shape(stretched)), shape.with(1, shape[1] * count));
}

Expr rotated(const NodeContext& node, Expr x, Expr cosine, Expr sine, bool interleaved) {
  const std::int64_t width = x.extent(3), half = cosine.extent(cosine.rank() - 1), turned = 2 * half;
  if (turned > width) node.fail(fmt::format("{} elements of a head of {} cannot be rotated", turned, width));
  const Expr c = unsqueeze(cosine, 2), s = unsqueeze(sine, 2), turning = narrow(x, 3, 0, turned);
  const Expr a = interleaved ? narrow(turning, 3, 0, half, 2) : narrow(turning, 3, 0, half);
  const Expr b = interleaved ? narrow(turning, 3, 1, half, 2) : narrow(turning, 3, half, half);
  const Expr real = a * c - b * s, imaginary = a * s + b * c;
  std::vector<Expr> parts{real, imaginary};
  if (interleaved) {
    const Expr pair[] = {unsqueeze(real, 4), unsqueeze(imaginary, 4)};
    parts = {reshape(concat(pair, 4), turning.shape())};
  }
  if (turned < width) parts.push_back(narrow(x, 3, turned, width - turned));
  return cast(parts.size() == 1 ? parts[0] : concat(parts, 3), x.dtype());
}

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Expr masked_by(Expr bias, Expr allowed) { return where(allowed, bias, -kInfinity); }

// Query i may see key j, both counted from the start: |offset| keys come before the first query, per batch or for all.
struct Positions {
  Expr query, key;  // broadcast to [batch or 1, 1, queries, keys]
};

Positions positions(const NodeContext& node, std::int64_t queries, std::int64_t keys, std::optional<Expr> batch_offset,
                    std::int64_t offset) {
  const Shape shape{1, 1, queries, keys};
  const Expr query = build::iota(node.graph(), shape, 2) + static_cast<double>(offset), key = build::iota(node.graph(), shape, 3);
  return {batch_offset ? query + *batch_offset : query, key};
}

// Probabilities; a row in which every key is masked is 0, not NaN.
Expr safe_softmax(Expr scores) {
  const AxisSet last = one_axis(scores.rank() - 1);
  const Expr largest = max_keep(scores, last);
  const Expr shift = where(is_inf(largest), 0.0, largest);
  const Expr e = exp(scores - shift), sum = sum_keep(e, last);
  return e / where(sum == 0.0, 1.0, sum);
}

Results attention(const NodeContext& node) {
  Expr q = node.in(0), k = node.in(1), v = node.in(2);
  const bool packed = q.rank() == 3;
  const DType dtype = q.dtype();
  if ((!packed && q.rank() != 4) || k.rank() != q.rank() || v.rank() != q.rank())
    node.fail("expected queries, keys and values of three axes, or of four");
  if (packed) {
    q = heads_apart(node, q, node.integer("q_num_heads"));
    k = heads_apart(node, k, node.integer("kv_num_heads"));
    v = heads_apart(node, v, node.integer("kv_num_heads"));
  }
  std::int64_t past = 0;
  if (node.has(4)) {
    const Expr keys[] = {node.in(4), k}, values[] = {node.in(5), v};
    past = node.shape(4)[2];
    k = concat(keys, 2);
    v = concat(values, 2);
  }
  const Expr present_key = k, present_value = v;
  const std::int64_t queries = q.extent(2), keys = k.extent(2);
  if (k.extent(1) < 1 || q.extent(1) % k.extent(1) != 0)
    node.fail(fmt::format("{} query heads cannot share {} key heads", q.extent(1), k.extent(1)));
  const std::int64_t group = q.extent(1) / k.extent(1);
  const double scale = std::sqrt(node.given("scale") ? node.number("scale", 1) : 1 / std::sqrt(static_cast<double>(q.extent(3))));
  Expr scores = like(matmul(node.operand(q * scale), node.operand(repeat_heads(k, group) * scale), {.transpose_b = true}), dtype);
  const std::int64_t mode = node.integer("qk_matmul_output_mode", 0);
  Expr shown = scores;
  const double cap = node.number("softcap", 0);
  if (cap > 0) scores = node.apply("tanh", {scores / cap}) * cap;
  // ONNX 1.23 shows the scores after the cap and before the mask as mode 1, and with the mask as mode 2; opset 23 had them
  // swapped.
  if (mode == 1) shown = scores;

  std::optional<Expr> bias;
  const auto add_bias = [&](Expr more) { bias = bias ? *bias + more : more; };
  if (node.has(3)) {
    Expr mask = node.in(3);
    if (mask.rank() < 1) node.fail("expected a mask of at least one axis");
    const int last = mask.rank() - 1;
    if (mask.extent(last) < keys) {
      const std::int64_t missing = keys - mask.extent(last);
      mask = mask.dtype() == DType::boolean ? pad_axis(mask, last, 0, missing) : pad_axis(mask, last, 0, missing, -kInfinity);
    }
    add_bias(mask.dtype() == DType::boolean ? where(mask, cast(mask, compute_dtype(dtype)) * 0.0, -kInfinity) : mask);
  }
  std::optional<Expr> lengths;
  if (node.has(6)) lengths = reshape(cast(node.in(6), DType::i64), Shape{node.shape(6).elements(), 1, 1, 1});
  std::optional<Expr> offset;
  if (lengths && !node.has(4)) offset = *lengths - static_cast<double>(queries);
  const Positions at = positions(node, queries, keys, offset, past);
  const auto forbid = [&](Expr allowed) { add_bias(masked_by(cast(allowed, compute_dtype(dtype)) * 0.0, allowed)); };
  if (node.integer("is_causal", 0) != 0) forbid(at.key <= at.query);
  const std::int64_t left = node.integer("left_window_size", -1), right = node.integer("right_window_size", -1);
  if (left >= 0) forbid(at.query - at.key <= static_cast<double>(left));
  if (right >= 0) forbid(at.key - at.query <= static_cast<double>(right));
  if (lengths) forbid(at.key < *lengths);
  if (bias) scores = scores + *bias;
  if (mode == 2) shown = scores;
  const std::int64_t precision = node.integer("softmax_precision", 0);
  if (precision != 0) scores = cast(scores, held_as(static_cast<ElementType>(precision)));
  Expr probabilities = safe_softmax(scores);
  if (bias) {
    const AxisSet last = one_axis(bias->rank() - 1);
    const Expr none = max_keep(expand_to(*bias, bias->shape().with(bias->rank() - 1, keys)), last) == same(*bias, -kInfinity);
    probabilities = where(none, 0.0, probabilities);
  }
  probabilities = cast(probabilities, dtype);
  if (mode == 3) shown = probabilities;
  const Expr y = like(matmul(node.operand(probabilities), node.operand(repeat_heads(v, group))), dtype);
  return {cast(packed ? heads_together(y) : y, dtype), cast(present_key, node.dtype(1)), cast(present_value, node.dtype(2)),
          cast(shown, dtype)};
}

Results flex_attention(const NodeContext& node) {
  const Expr q = node.in(0), k = node.in(1), v = node.in(2);
  if (q.rank() != 4 || k.rank() != 4 || v.rank() != 4 || k.extent(1) < 1 || q.extent(1) % k.extent(1) != 0)
    node.fail("expected [batch, heads, length, width]");
  const std::int64_t group = q.extent(1) / k.extent(1), precision = node.integer("softmax_precision", 0);
  const double scale = std::sqrt(node.given("scale") ? node.number("scale", 1) : 1 / std::sqrt(static_cast<double>(q.extent(3))));
  const DType wide = precision != 0            ? held_as(static_cast<ElementType>(precision))
                     : q.dtype() == DType::f64 ? DType::f64
                                               : DType::f32;
  const auto modified = [&](std::string_view graph, Expr x) {
    if (!node.given(graph)) return x;
    const std::vector<ValuePtr> results = node.importer().call(node.subgraph(graph), node.scope(), {computed(x)});
    if (results.size() != 1) node.fail(fmt::format("'{}' must have one output", graph));
    return cast(node.in(results[0]), wide);
  };
  const Expr scores = modified("score_mod", cast(matmul(q * scale, repeat_heads(k, group) * scale, {.transpose_b = true}), wide));
  const Expr probabilities = modified("prob_mod", node.apply("softmax", {scores}));
  return {cast(matmul(probabilities, cast(repeat_heads(v, group), wide)), v.dtype())};
}

// A recurrence over the time axis with a matrix as its state.
Results linear_attention(const NodeContext& node) {
  const std::int64_t q_heads = node.integer("q_num_heads"), heads = node.integer("kv_num_heads");
  const std::string rule = node.text("update_rule", "gated_delta");
  const bool gated = rule == "gated" || rule == "gated_delta", delta = rule == "delta" || rule == "gated_delta";
  const DType dtype = node.dtype(0);
  const auto wide = [&](std::size_t i, std::int64_t count) { return heads_apart(node, cast(node.in(i), DType::f32), count); };
  const Expr q = wide(0, q_heads), k = wide(1, heads), v = wide(2, heads);
  const std::int64_t batch = q.extent(0), time = q.extent(2), width = k.extent(3), out = v.extent(3);
  Expr state = node.has(3) ? cast(node.in(3), DType::f32)
                           : expand_to(node.constant(HostArray::zeros(DType::f32, {})), Shape{batch, heads, width, out});
  std::optional<Expr> decay, beta;
  if (gated) decay = exp(wide(4, heads));
  if (delta) beta = wide(5, node.shape(5)[2]);
  const double scale = node.number("scale", 0) != 0 ? node.number("scale", 0) : 1 / std::sqrt(static_cast<double>(width));
  std::vector<Expr> rows;
  for (std::int64_t t = 0; t < time; ++t) {
    node.importer().count_step();
    const auto at = [&](Expr x) { return narrow(x, 2, t, 1); };
    if (gated) state = state * swap_axes(at(*decay), 2, 3);
    Expr value = at(v);
    if (delta) value = at(*beta) * (value - matmul(at(k), state));
    state = state + matmul(at(k), value, {.transpose_a = true});
    rows.push_back(matmul(at(q), repeat_heads(state, q_heads / heads)) * scale);
  }
  if (rows.empty()) node.fail("the sequence is empty");
  return {cast(heads_together(concat(rows, 2)), dtype), cast(state, node.has(3) ? node.dtype(3) : dtype)};
}

Results rotary_embedding(const NodeContext& node) {
  Expr x = node.in(0);
  const bool packed = x.rank() == 3;
  const Shape shape = x.shape();
  x = packed ? reshape(x, Shape{shape[0], shape[1], node.integer("num_heads"),
                                shape[2] / std::max<std::int64_t>(node.integer("num_heads"), 1)})
             : swap_axes(x, 1, 2);
  const std::int64_t width = x.extent(3), given = node.integer("rotary_embedding_dim", 0), rotated = given == 0 ? width : given,
                     half = rotated / 2;
  Expr cosine = node.in(1), sine = node.in(2);
  if (node.has(3)) {
    cosine = take(cosine, node.in(3), 0);
    sine = take(sine, node.in(3), 0);
  }
  if (cosine.extent(cosine.rank() - 1) != half)
    node.fail(
        fmt::format("the tables have {} columns, but half of the rotated width is {}", cosine.extent(cosine.rank() - 1), half));
  const Expr y = onnx::rotated(node, x, cosine, sine, node.integer("interleaved", 0) != 0);
  return {cast(packed ? reshape(y, shape) : swap_axes(y, 1, 2), node.dtype(0))};
}

}  // namespace

void add_attention(ConverterTable& table) {
  table.add("Attention", attention);
  table.add("ai.onnx.preview.FlexAttention", flex_attention);
  table.add("LinearAttention", linear_attention);
  table.add("RotaryEmbedding", rotary_embedding);
}

}  // namespace tenon::onnx

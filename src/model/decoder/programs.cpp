#include "model/decoder/programs.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <optional>

#include "ops/build.h"
#include "ops/quantized_matmul.h"
#include "tenon/ops.h"

namespace tenon::decoder {
namespace {

using build::Expr;

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

// Softmax over the last axis, where every row has a key.
Expr softmax(Expr x) {
  const AxisSet last = build::one_axis(x.rank() - 1);
  const Expr e = build::exp(x - build::max_keep(x, last));
  return e / build::sum_keep(e, last);
}

class Builder {
 public:
  explicit Builder(const Architecture& architecture) : a_(architecture) {}

  Expr given(const std::string& name, DType dtype, const Shape& shape) {
    program_.open.push_back(program_.feeds.size());
    program_.feeds.emplace_back();
    return {program_.graph, program_.graph.input(name, dtype, shape)};
  }
  Expr weight(const std::shared_ptr<Storage>& storage) {
    program_.feeds.push_back(storage);
    return {program_.graph,
            program_.graph.input(fmt::format("w{}", program_.feeds.size()), storage->type().dtype, storage->type().shape)};
  }
  // Keys and values of every layer.
  std::vector<Expr> cache(const std::string& name, std::int64_t rows, std::int64_t tokens) {
    std::vector<Expr> out;
    for (std::int64_t i = 0; i < 2 * a_.layers; ++i)
      out.push_back(given(fmt::format("{}{}", name, i), DType::f32, Shape{rows, a_.kv_heads, tokens, a_.head_width}));
    return out;
  }

  // x [m, columns] times the transposed matrix: f32 [m, rows].
  Expr product(Expr x, const Matrix& matrix) {
    std::optional<Expr> y;
    if (matrix.codes) {
      std::vector<NodeId> parts;
      for (const auto& part : matrix.parts) parts.push_back(weight(part).id());
      y = Expr(program_.graph, quantized_matmul(program_.graph, x.id(), parts, *matrix.codes));
      if (matrix.stored_rows != matrix.rows) y = build::narrow(*y, 1, 0, matrix.rows);
    } else {
      const Expr w = weight(matrix.parts[0]);
      y = build::cast(build::matmul(build::cast(x, w.dtype()), w, {.transpose_b = true}), DType::f32);
    }
    return matrix.bias ? *y + weight(matrix.bias) : *y;
  }
  // Columns [first, first + count) of the results of several matrices, which stand one after the other.
  static Expr columns(const std::vector<Expr>& parts, std::int64_t first, std::int64_t count) {
    std::vector<Expr> found;
    for (const Expr& part : parts) {
      const std::int64_t extent = part.extent(1), begin = std::max<std::int64_t>(first, 0), end = std::min(first + count, extent);
      if (begin < end) found.push_back(build::narrow(part, 1, begin, end - begin));
      first -= extent;
    }
    return found.size() == 1 ? found[0] : build::concat(found, 1);
  }

  Expr norm(Expr x, const Norm& norm) {
    if (!norm.scale) return x;
    const char* const op = a_.is_centred ? "layer_norm" : "rms_norm";
    const NodeId scale = weight(norm.scale).id();
    if (!norm.bias) return {program_.graph, apply(program_.graph, op, {x.id(), scale}, {{"eps", a_.norm_eps}})[0]};
    return {program_.graph, apply(program_.graph, op, {x.id(), scale, weight(norm.bias).id()}, {{"eps", a_.norm_eps}})[0]};
  }

  // c tanh(x / c), where a cap is given.
  Expr capped(Expr x, double cap) {
    if (cap == 0) return x;
    return Expr(program_.graph, apply(program_.graph, "tanh", {(x * (1 / cap)).id()})[0]) * cap;
  }

  // Turns the pairs of each head [m, heads, head_width]: the first half of the rotated elements with the second.
  Expr rotate(Expr x, Expr cos, Expr sin, std::size_t layer) const {
    if (!a_.turned[layer]) return x;
    const Shape shape = x.shape();
    const std::int64_t half = a_.rotated / 2;
    if (a_.has_two_sets) {
      cos = build::narrow(cos, 3, a_.windowed[layer] ? half : 0, half);
      sin = build::narrow(sin, 3, a_.windowed[layer] ? half : 0, half);
    }
    const Expr turned = build::reshape(build::narrow(x, 2, 0, a_.rotated), Shape{shape[0], shape[1], 2, half});
    const Expr result = build::reshape(turned * cos + build::reverse(turned, 2) * sin, Shape{shape[0], shape[1], a_.rotated});
    if (a_.rotated == a_.head_width) return result;
    const std::array parts{result, build::narrow(x, 2, a_.rotated, a_.head_width - a_.rotated)};
    return build::concat(parts, 2);
  }

  struct Heads {
    Expr q, k, v;  // [m, heads or kv_heads, head_width]
  };
  Heads heads(Expr x, const Weights& weights, std::int64_t number, Expr cos, Expr sin) {
    const auto place = static_cast<std::size_t>(number);
    const Layer& layer = weights.layers[place];
    const std::int64_t m = x.extent(0), q_width = a_.heads * a_.head_width, kv_width = a_.kv_heads * a_.head_width;
    const Expr h = norm(x, layer.attention_norm);
    std::vector<Expr> parts;
    for (const Matrix& matrix : layer.qkv) parts.push_back(product(h, matrix));
    // Scales as wide as all heads together normalise them so.
    const auto split = [&](std::int64_t first, std::int64_t heads, const Norm& scale) {
      const std::int64_t width = heads * a_.head_width;
      const Shape by_head{m, heads, a_.head_width};
      const Expr all = columns(parts, first, width);
      if (scale.scale && scale.scale->type().shape[0] == width) return build::reshape(norm(all, scale), by_head);
      return norm(build::reshape(all, by_head), scale);
    };
    const Expr q = split(0, a_.heads, layer.q_norm), k = split(q_width, a_.kv_heads, layer.k_norm);
    return {rotate(q, cos, sin, place), rotate(k, cos, sin, place), split(q_width + kv_width, a_.kv_heads, {})};
  }

  // q [rows, heads, tokens, head_width] over keys and values [rows, kv_heads, keys, head_width] that the mask lets through.
  Expr attention(Expr q, Expr keys, Expr values, Expr mask) {
    if (a_.attention_cap == 0)
      return {program_.graph, apply(program_.graph, "attention", {q.id(), keys.id(), values.id(), mask.id()},
                                    {{"scale", a_.attention_scale}})[0]};
    // The op has no cap. The heads that share keys are the rows of one matrix.
    const Shape shape = q.shape();
    const std::int64_t rows = shape[0], tokens = shape[2], all = keys.extent(2);
    q = build::reshape(q, Shape{rows, a_.kv_heads, a_.rows_per_head() * tokens, a_.head_width});
    const Expr scores = capped(build::matmul(q, keys, {.transpose_b = true}) * a_.attention_scale, a_.attention_cap);
    const Expr p = softmax(build::where(mask, build::reshape(scores, Shape{rows, a_.heads, tokens, all}), kMinusInfinity));
    return build::reshape(build::matmul(build::reshape(p, Shape{rows, a_.kv_heads, a_.rows_per_head() * tokens, all}), values),
                          shape);
  }

  // What follows the attention, whose result is [m, heads * head_width].
  Expr rest(Expr x, Expr attended, const Layer& layer) {
    const Expr mixed = x + scaled(norm(product(attended, layer.output), layer.after_attention), a_.residual_scale);
    const Expr h = norm(a_.is_parallel ? x : mixed, layer.feed_forward_norm);
    std::vector<Expr> parts;
    for (const Matrix& matrix : layer.gate_up) parts.push_back(product(h, matrix));
    Expr inner = activated(columns(parts, 0, a_.feed_forward));
    if (a_.is_gated) inner = inner * columns(parts, a_.feed_forward, a_.feed_forward);
    return mixed + scaled(norm(product(inner, layer.down), layer.after_feed_forward), a_.residual_scale);
  }

  Expr logits(Expr x, const Weights& weights) {
    return capped(scaled(product(norm(x, weights.norm), weights.head), a_.logit_scale), a_.logit_cap);
  }

  StepProgram finish(const std::vector<Expr>& outputs) {
    std::vector<NodeId> ids;
    for (const Expr& output : outputs) ids.push_back(output.id());
    program_.graph.set_outputs(std::move(ids));
    return std::move(program_);
  }

  Graph& graph() { return program_.graph; }

 private:
  static Expr scaled(Expr x, double by) { return by == 1 ? x : x * by; }
  Expr activated(Expr x) const {
    switch (a_.activation) {
      case Activation::silu: return build::silu(x);
      case Activation::gelu: return build::gelu(x);
      case Activation::gelu_tanh: return {x.graph(), apply(x.graph(), "gelu", {x.id()}, {{"approximate", "tanh"}})[0]};
      case Activation::relu: return build::maximum(x, 0.0);
    }
    return x;
  }

  const Architecture& a_;
  StepProgram program_;
};

// With |to| tokens: cut, or padded with zeros.
Expr resized(Expr cache, std::int64_t to) {
  const std::int64_t tokens = cache.extent(2);
  return to <= tokens ? build::narrow(cache, 2, 0, to) : build::pad_axis(cache, 2, 0, to - tokens);
}

}  // namespace

StepProgram prefill(const Architecture& a, const Weights& weights, std::int64_t tokens, std::int64_t closed) {
  Builder b(a);
  Expr x = b.given("x", DType::f32, Shape{tokens, a.width});
  const Expr cos = b.given("cos", DType::f32, Shape{tokens, 1, 1, a.angles()});
  const Expr sin = b.given("sin", DType::f32, Shape{tokens, 1, 2, a.angles()});
  const Expr last = b.given("last", DType::i64, Shape{1});
  std::optional<Expr> count;
  std::vector<Expr> before;
  if (closed > 0) {
    count = b.given("count", DType::i64, Shape{1});
    before = b.cache("closed", 1, closed);
  }
  // Keys: closed ones that count, then the tokens' own up to each.
  const Shape matrix{tokens, closed + tokens};
  const Expr key = build::iota(b.graph(), matrix, 1), row = build::iota(b.graph(), matrix, 0);
  const auto mask_of = [&](std::int64_t window) {
    const double reach = static_cast<double>(window);
    Expr own = build::cast(key <= row + static_cast<double>(closed), DType::boolean);
    if (window > 0) own = own && key + reach > row + static_cast<double>(closed);
    if (closed == 0) return own;
    const Expr limit = build::number(b.graph(), static_cast<double>(closed));
    const Expr is_closed = key < build::cast(limit, DType::i64);
    Expr early = key < *count;
    if (window > 0) early = early && key + reach > row + *count;
    return build::where(is_closed, early, own);
  };
  const Expr full = mask_of(0), near = a.window > 0 ? mask_of(a.window) : full;
  const auto by_head = [&](Expr heads) {
    return build::unsqueeze(build::transpose(heads, {1, 0, 2}), 0);  // [1, heads, tokens, head_width]
  };
  std::vector<Expr> outputs;
  for (std::int64_t i = 0; i < a.layers; ++i) {
    const Layer& layer = weights.layers[static_cast<std::size_t>(i)];
    const Expr mask = a.windowed[static_cast<std::size_t>(i)] ? near : full;
    const Builder::Heads heads = b.heads(x, weights, i, cos, sin);
    const Expr q = by_head(heads.q), k = by_head(heads.k), v = by_head(heads.v);
    outputs.push_back(k);
    outputs.push_back(v);
    Expr keys = k, values = v;
    if (closed > 0) {
      const std::size_t place = static_cast<std::size_t>(2 * i);
      keys = build::concat(std::array{before[place], k}, 2);
      values = build::concat(std::array{before[place + 1], v}, 2);
    }
    const Expr rows = build::transpose(build::squeeze(b.attention(q, keys, values, mask), build::one_axis(0)), {1, 0, 2});
    x = b.rest(x, build::reshape(rows, Shape{tokens, a.heads * a.head_width}), layer);
  }
  outputs.insert(outputs.begin(), b.logits(build::take(x, last, 0), weights));
  return b.finish(outputs);
}

StepProgram decode(const Architecture& a, const Weights& weights, std::int64_t rows, std::int64_t closed, bool whole_attention) {
  Builder b(a);
  Expr x = b.given("x", DType::f32, Shape{rows, a.width});
  const Expr cos = b.given("cos", DType::f32, Shape{rows, 1, 1, a.angles()});
  const Expr sin = b.given("sin", DType::f32, Shape{rows, 1, 2, a.angles()});
  const Expr count = build::reshape(b.given("count", DType::i64, Shape{rows}), Shape{rows, 1, 1, 1});
  const Expr place = build::reshape(b.given("place", DType::i64, Shape{rows}), Shape{rows, 1, 1, 1});
  const std::vector<Expr> before = b.cache("closed", rows, closed), lately = b.cache("open", rows, kOpen);
  const std::int64_t shared = a.rows_per_head();
  const Expr early_key = build::iota(b.graph(), Shape{rows, 1, 1, closed}, 3);
  const Expr late_key = build::iota(b.graph(), Shape{rows, 1, 1, kOpen}, 3);
  struct Keys {
    Expr closed, open;
  };
  const Keys full{early_key < count, late_key <= place};
  const double reach = static_cast<double>(a.window);
  const Keys near =
      a.window == 0 ? full : Keys{full.closed && early_key + reach > count + place, full.open && late_key + reach > place};
  const Expr is_new = build::iota(b.graph(), Shape{rows, 1, kOpen, 1}, 2) == place;
  std::vector<Expr> outputs;
  for (std::int64_t i = 0; i < a.layers; ++i) {
    const Layer& layer = weights.layers[static_cast<std::size_t>(i)];
    const auto& [closed_keys, open_keys] = a.windowed[static_cast<std::size_t>(i)] ? near : full;
    const Builder::Heads heads = b.heads(x, weights, i, cos, sin);
    const std::size_t at = static_cast<std::size_t>(2 * i);
    const Shape one{rows, a.kv_heads, 1, a.head_width};
    const Expr k = build::where(is_new, build::reshape(heads.k, one), lately[at]);
    const Expr v = build::where(is_new, build::reshape(heads.v, one), lately[at + 1]);
    outputs.push_back(k);
    outputs.push_back(v);
    if (whole_attention) {
      const Expr q = build::reshape(heads.q, Shape{rows, a.heads, 1, a.head_width});
      const Expr keys = build::concat(std::array{before[at], k}, 2), values = build::concat(std::array{before[at + 1], v}, 2);
      const Expr attended = b.attention(q, keys, values, build::concat(std::array{closed_keys, open_keys}, 3));
      x = b.rest(x, build::reshape(attended, Shape{rows, a.heads * a.head_width}), layer);
      continue;
    }
    // The heads that share keys are the rows of one matrix.
    const Expr q = build::reshape(heads.q, Shape{rows, a.kv_heads, shared, a.head_width}) * a.attention_scale;
    const Expr early = build::matmul(q, before[at], {.transpose_b = true}), late = build::matmul(q, k, {.transpose_b = true});
    const std::array scores{build::where(closed_keys, b.capped(early, a.attention_cap), kMinusInfinity),
                            build::where(open_keys, b.capped(late, a.attention_cap), kMinusInfinity)};
    const Expr p = softmax(build::concat(scores, 3));
    const Expr attended =
        build::matmul(build::narrow(p, 3, 0, closed), before[at + 1]) + build::matmul(build::narrow(p, 3, closed, kOpen), v);
    x = b.rest(x, build::reshape(attended, Shape{rows, a.heads * a.head_width}), layer);
  }
  outputs.insert(outputs.begin(), b.logits(x, weights));
  return b.finish(outputs);
}

StepProgram append(const Architecture& a, std::int64_t rows, std::int64_t closed, std::int64_t to, std::int64_t tokens) {
  Builder b(a);
  const Expr place = build::reshape(b.given("place", DType::i64, Shape{rows}), Shape{rows, 1, 1, 1});
  const std::vector<Expr> before = closed > 0 ? b.cache("closed", rows, closed) : std::vector<Expr>();
  const std::vector<Expr> added = b.cache("added", rows, tokens);
  const Shape part{rows, a.kv_heads, tokens, a.head_width};
  const Expr indices = build::broadcast(build::iota(b.graph(), Shape{rows, 1, tokens, 1}, 2) + place, part);
  std::vector<Expr> outputs;
  for (std::size_t i = 0; i < added.size(); ++i) {
    const Expr whole = resized(closed > 0 ? before[i] : added[i], to);
    outputs.emplace_back(b.graph(),
                         closed > 0 ? b.graph().scatter(whole.id(), indices.id(), added[i].id(), 2, false) : whole.id());
  }
  return b.finish(outputs);
}

StepProgram arrange(const Architecture& a, std::int64_t rows, std::int64_t to, std::int64_t from_rows, std::int64_t closed,
                    std::int64_t added) {
  Builder b(a);
  const Expr numbers = b.given("rows", DType::i64, Shape{rows});
  const std::vector<Expr> before = from_rows > 0 ? b.cache("closed", from_rows, closed) : std::vector<Expr>();
  const std::vector<Expr> more = added > 0 ? b.cache("added", 1, added) : std::vector<Expr>();
  std::vector<Expr> outputs;
  for (std::size_t i = 0; i < static_cast<std::size_t>(2 * a.layers); ++i) {
    std::vector<Expr> parts;
    if (from_rows > 0) parts.push_back(resized(before[i], to));
    if (added > 0) parts.push_back(resized(more[i], to));
    outputs.push_back(build::take(parts.size() == 1 ? parts[0] : build::concat(parts, 0), numbers, 0));
  }
  return b.finish(outputs);
}

}  // namespace tenon::decoder

#include "model/decoder/programs.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <map>
#include <numeric>
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
  Builder(const Architecture& architecture, bool apart) : a_(architecture), apart_(apart) {}

  Expr given(const std::string& name, DType dtype, const Shape& shape) {
    program_.open.push_back(program_.feeds.size());
    program_.feeds.emplace_back();
    return {program_.graph, program_.graph.input(name, dtype, shape)};
  }
  // One input, however often it is used.
  Expr weight(const std::shared_ptr<Storage>& storage) {
    const auto [found, is_new] = weights_.try_emplace(storage.get(), -1);
    if (is_new) {
      program_.feeds.push_back(storage);
      found->second =
          program_.graph.input(fmt::format("w{}", program_.feeds.size()), storage->type().dtype, storage->type().shape);
    }
    return {program_.graph, found->second};
  }
  // Keys and values of every layer.
  std::vector<Expr> cache(const std::string& name, std::int64_t rows, std::int64_t tokens) {
    std::vector<Expr> out;
    for (std::int64_t i = 0; i < cache_tensors(a_, apart_); ++i)
      out.push_back(given(fmt::format("{}{}", name, i), DType::f32, cache_shape(a_, apart_, rows, tokens)));
    return out;
  }

  // What the first layer takes of |count| tokens, [count, width]: given, or found in the table by the given numbers.
  Expr tokens(std::int64_t count, const Weights& weights) {
    if (!apart_) return norm(given("x", DType::f32, Shape{count, a_.width}), weights.embedding_norm);
    return embedded(given("ids", DType::i64, Shape{count}), weights.embedding);
  }
  Expr embedded(Expr ids, const Matrix& table) {
    if (!table.codes) return scaled(widened(build::take(weight(table.parts[0]), ids, 0)), a_.embedding_scale);
    std::vector<NodeId> parts;
    for (const auto& part : table.parts) parts.push_back(weight(part).id());
    return scaled({program_.graph, quantized_rows(program_.graph, ids.id(), parts, *table.codes)}, a_.embedding_scale);
  }

  // x [m, columns] times the transposed matrix: f32 [m, rows].
  Expr product(Expr x, const Matrix& matrix) { return widened(narrow_product(x, matrix)); }
  // The same in the type of the matrix: kernels that take a part of it convert that.
  Expr narrow_product(Expr x, const Matrix& matrix) {
    std::vector<Expr> parts;
    for (const auto& part : matrix.parts) parts.push_back(weight(part));
    Expr y = product_of(x, parts, matrix);
    if (y.extent(1) != matrix.rows) y = build::narrow(y, 1, 0, matrix.rows);
    return matrix.bias ? widened(y) + weight(matrix.bias) : y;
  }
  // |parts|: those of a matrix of this kind.
  Expr product_of(Expr x, const std::vector<Expr>& parts, const Matrix& kind) {
    if (!kind.codes) return build::matmul(build::cast(x, parts[0].dtype()), parts[0], {.transpose_b = true});
    std::vector<NodeId> ids;
    for (const Expr& part : parts) ids.push_back(part.id());
    return {program_.graph, quantized_matmul(program_.graph, x.id(), ids, *kind.codes)};
  }
  // x times the rows (axis 0) or columns (axis 1) of a matrix that belong to the experts with these numbers.
  Expr product_of_experts(Expr x, const Matrix& matrix, Expr numbers, int axis) {
    std::vector<Expr> parts;
    for (const auto& part : matrix.parts) {
      const Expr all = weight(part);
      const Shape shape = all.shape();
      const std::int64_t each = shape[axis] / a_.experts.count, before = axis == 0 ? 1 : shape[0];
      const Expr by_expert = build::reshape(all, Shape{before, a_.experts.count, shape.elements() / before / a_.experts.count});
      parts.push_back(build::reshape(build::take(by_expert, numbers, 1), shape.with(axis, numbers.extent(0) * each)));
    }
    const Expr y = widened(product_of(x, parts, matrix));
    return axis == 0 || y.extent(1) == a_.width ? y : build::narrow(y, 1, 0, a_.width);
  }
  static Expr widened(Expr x) { return build::cast(x, DType::f32); }
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

  // cos [m, 1, 1, angles], sin [m, 1, 2, angles]; on a device that is apart, also for keys and values together, which
  // turn by nothing: [m, 2 * kv_heads, ...].
  struct Turns {
    Expr cos, sin, kv_cos, kv_sin;
  };
  Turns turns(std::int64_t m) {
    const Expr cos = given("cos", DType::f32, Shape{m, 1, 1, a_.angles()});
    const Expr sin = given("sin", DType::f32, Shape{m, 1, 2, a_.angles()});
    if (!apart_) return {cos, sin, cos, sin};
    const Expr is_key = numbers(Shape{1, 2 * a_.kv_heads, 1, 1}, 0) <= static_cast<double>(a_.kv_heads - 1);
    return {cos, sin, build::where(is_key, cos, 1.0), build::where(is_key, sin, 0.0)};
  }
  // first, first + 1, ... as a constant: a kernel less than if the device counted.
  Expr numbers(const Shape& shape, std::int64_t first) {
    std::vector<std::int64_t> values(static_cast<std::size_t>(shape.elements()));
    std::iota(values.begin(), values.end(), first);
    return build::integers(program_.graph, shape, values);
  }

  struct Heads {
    Expr q, k, v;                  // [m, heads or kv_heads, head_width]
    Expr kv;                       // if the device is apart: k and v, [m, 2 * kv_heads, head_width]
    std::optional<Expr> unturned;  // the same before they are turned, if nothing else is done to them
  };
  Heads heads(Expr x, const Weights& weights, std::int64_t number, const Turns& turns) {
    const auto place = static_cast<std::size_t>(number);
    const Layer& layer = weights.layers[place];
    const std::int64_t m = x.extent(0), q_width = a_.heads * a_.head_width, kv_width = a_.kv_heads * a_.head_width;
    const Expr h = norm(x, layer.attention_norm);
    std::vector<Expr> parts;
    for (const Matrix& matrix : layer.qkv) {
      parts.push_back(product(h, matrix));
      if (a_.qkv_limit > 0) parts.back() = build::minimum(build::maximum(parts.back(), -a_.qkv_limit), a_.qkv_limit);
    }
    // Scales as wide as all heads together normalise them so.
    const auto split = [&](std::int64_t first, std::int64_t heads, const Norm& scale) {
      const std::int64_t width = heads * a_.head_width;
      const Shape by_head{m, heads, a_.head_width};
      const Expr all = columns(parts, first, width);
      if (scale.scale && scale.scale->type().shape[0] == width) return build::reshape(norm(all, scale), by_head);
      return norm(build::reshape(all, by_head), scale);
    };
    const Expr q = rotate(split(0, a_.heads, layer.q_norm), turns.cos, turns.sin, place);
    if (apart_ && !layer.q_norm.scale) {
      const Expr raw = split(q_width, 2 * a_.kv_heads, {}), kv = rotate(raw, turns.kv_cos, turns.kv_sin, place);
      const bool turns_all = a_.rotated == a_.head_width;
      return {q, build::narrow(kv, 1, 0, a_.kv_heads), build::narrow(kv, 1, a_.kv_heads, a_.kv_heads), kv,
              turns_all ? std::optional(raw) : std::nullopt};
    }
    const Expr k = rotate(split(q_width, a_.kv_heads, layer.k_norm), turns.cos, turns.sin, place);
    const Expr v = split(q_width + kv_width, a_.kv_heads, {});
    return {q, k, v, apart_ ? build::concat(std::array{k, v}, 1) : k, std::nullopt};
  }

  // The open part with the keys and values of one token for each row.
  Expr with_token(Expr lately, const Heads& heads, const Turns& turns, Expr is_new) const {
    const std::int64_t rows = lately.extent(0), half = a_.head_width / 2;
    if (!heads.unturned)
      return build::where(is_new, build::reshape(heads.kv, Shape{rows, 2 * a_.kv_heads, 1, a_.head_width}), lately);
    // Turned again for each place of the open part, which costs nothing in the kernel that writes them all, and saves one.
    const Shape all{rows, 2 * a_.kv_heads, kOpen, 2, half};
    const auto spread = [&](Expr x, std::int64_t parts) {
      return build::broadcast(build::reshape(x, Shape{rows, 2 * a_.kv_heads, 1, parts, half}), all);
    };
    const Expr kv = spread(*heads.unturned, 2);
    const Expr turned = kv * spread(turns.kv_cos, 1) + build::reverse(kv, 3) * spread(turns.kv_sin, 2);
    const Expr at_place = build::broadcast(build::reshape(is_new, Shape{rows, 1, kOpen, 1, 1}), all);
    return build::reshape(build::where(at_place, turned, build::reshape(lately, all)), lately.shape());
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

  // What is added to scores with ALiBi: the distance to a key times the slope of the head, or minus infinity for a key that the
  // mask hides.
  Expr falling(Expr mask, Expr distance, const Weights& weights, const Shape& by_head) {
    return build::where(mask, build::cast(distance, DType::f32) * build::reshape(weight(weights.slopes), by_head),
                        kMinusInfinity);
  }

  // What follows the attention, whose result is [m, heads * head_width].
  Expr rest(Expr x, Expr attended, const Layer& layer) {
    const Expr mixed = x + scaled(norm(product(attended, layer.output), layer.after_attention), a_.residual_scale);
    const Expr h = norm(a_.is_parallel ? x : mixed, layer.feed_forward_norm);
    std::optional<Expr> y;
    if (layer.feed_forward) y = feed_forward(h, *layer.feed_forward);
    if (layer.experts) {
      if (layer.experts->shared_gate) y = *y * build::sigmoid(product(h, *layer.experts->shared_gate));
      const Expr chosen = experts(h, *layer.experts);
      y = y ? *y + chosen : chosen;
    }
    return mixed + scaled(norm(*y, layer.after_feed_forward), a_.residual_scale);
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
  Expr feed_forward(Expr h, const FeedForward& weights) {
    std::vector<Expr> parts;
    for (const Matrix& matrix : weights.gate_up) parts.push_back(apart_ ? narrow_product(h, matrix) : product(h, matrix));
    const std::int64_t inner_width = weights.down.columns;
    Expr inner = activated(widened(columns(parts, 0, inner_width)));
    if (a_.is_gated) inner = inner * widened(columns(parts, inner_width, inner_width));
    return product(inner, weights.down);
  }

  // What the chosen experts make of each row of h, weighted.
  Expr experts(Expr h, const Experts& layer) {
    const std::int64_t m = h.extent(0), count = a_.experts.count, used = a_.experts.used;
    const std::vector<NodeId> best =
        apply(program_.graph, "top_k", {softmax(product(h, layer.router)).id()}, {{"k", static_cast<double>(used)}});
    Expr shares(program_.graph, best[0]);
    const Expr numbers(program_.graph, best[1]);
    if (a_.experts.sums_to_one) shares = shares / build::sum_keep(shares, build::one_axis(1));
    // Cutting the weights of an expert out costs as much as three times reading them. A single token never reads those of others.
    if (m == 1 || 3 * m * used <= count) {
      std::vector<Expr> rows;
      for (std::int64_t i = 0; i < m; ++i) {
        const auto row = [&](Expr x) { return m == 1 ? x : build::narrow(x, 0, i, 1); };
        const Expr own = build::reshape(row(numbers), Shape{used}), by = build::reshape(row(shares), Shape{1, used, 1});
        std::vector<Expr> parts;
        for (const Matrix& matrix : layer.all.gate_up) parts.push_back(product_of_experts(row(h), matrix, own, 0));
        rows.push_back(product_of_experts(gated_by(parts, by), layer.all.down, own, 1));
      }
      return m == 1 ? rows[0] : build::concat(rows, 0);
    }
    const Expr none = build::broadcast(build::number(program_.graph, 0.0), Shape{m, count});
    const Expr by(program_.graph, program_.graph.scatter(none.id(), numbers.id(), shares.id(), 1, false));
    std::vector<Expr> parts;
    for (const Matrix& matrix : layer.all.gate_up) parts.push_back(product(h, matrix));
    return product(gated_by(parts, build::reshape(by, Shape{m, count, 1})), layer.all.down);
  }
  // The inner values of several experts, [m, n * width]. |parts|: the results of their gates and then of the others, of one
  // expert after the other. |shares|: [m, n, 1].
  Expr gated_by(const std::vector<Expr>& parts, Expr shares) const {
    const std::int64_t m = shares.extent(0), n = shares.extent(1), width = a_.experts.width;
    const auto half = [&](std::size_t which) {
      if (parts.size() > 1) return build::reshape(parts[which], Shape{m, n, width});
      const std::int64_t first = static_cast<std::int64_t>(which) * width;
      return build::narrow(build::reshape(parts[0], Shape{m, n, 2 * width}), 2, first, width);
    };
    return build::reshape(activated(half(0)) * half(1) * shares, Shape{m, n * width});
  }
  static Expr scaled(Expr x, double by) { return by == 1 ? x : x * by; }
  Expr activated(Expr x) const {
    switch (a_.activation) {
      case Activation::silu: return build::silu(x);
      case Activation::gelu: return build::gelu(x);
      case Activation::gelu_tanh: return {x.graph(), apply(x.graph(), "gelu", {x.id()}, {{"approximate", "tanh"}})[0]};
      case Activation::relu: return build::maximum(x, 0.0);
      case Activation::relu_squared: return build::square(build::maximum(x, 0.0));
    }
    return x;
  }

  const Architecture& a_;
  const bool apart_;
  StepProgram program_;
  std::map<const Storage*, NodeId> weights_;
};

// With |to| tokens: cut, or padded with zeros.
Expr resized(Expr cache, std::int64_t to) {
  const std::int64_t tokens = cache.extent(2);
  return to <= tokens ? build::narrow(cache, 2, 0, to) : build::pad_axis(cache, 2, 0, to - tokens);
}

// What |tokens| steps on a device that is not the host are given, and what can be computed for all of them together: it has rows
// for the first step, then for the second, and so on.
struct Apart {
  Apart(Builder& b, std::int64_t each, std::int64_t closed, std::int64_t tokens)
      : rows(each),
        ids(b.given("ids", DType::i64, Shape{rows})),
        turns(b.turns(tokens * rows)),
        mask(turns.cos),
        is_new(turns.cos) {
    const Expr count = b.given("count", DType::i64, Shape{rows});
    const Expr place = build::reshape(b.given("place", DType::i64, Shape{rows}), Shape{1, rows, 1, 1, 1});
    const Expr places = place + b.numbers(Shape{tokens, 1, 1, 1, 1}, 0);
    const Expr closed_keys =
        build::broadcast(b.numbers(Shape{1, 1, 1, 1, closed}, 0) < build::reshape(count, Shape{1, rows, 1, 1, 1}),
                         Shape{tokens, rows, 1, 1, closed});
    const Expr open_keys = b.numbers(Shape{1, 1, 1, 1, kOpen}, 0) <= places;
    mask = build::reshape(build::concat(std::array{closed_keys, open_keys}, 4), Shape{tokens * rows, 1, 1, closed + kOpen});
    is_new = build::reshape(b.numbers(Shape{1, 1, 1, kOpen, 1}, 0) == places, Shape{tokens * rows, 1, kOpen, 1});
    before = b.cache("closed", rows, closed);
    lately = b.cache("open", rows, kOpen);
  }
  Expr of_step(Expr all, std::int64_t step) const { return build::narrow(all, 0, step * rows, rows); }

  const std::int64_t rows;
  const Expr ids;
  const Builder::Turns turns;
  Expr mask, is_new;
  std::vector<Expr> before, lately;  // closed; open, with the tokens so far
};

// One token for each row.
Expr advance_rows(Builder& b, const Architecture& a, const Weights& weights, Expr x, Apart& given, std::int64_t step) {
  const std::int64_t rows = given.rows;
  const Expr mask = given.of_step(given.mask, step), is_new = given.of_step(given.is_new, step);
  const Builder::Turns turns{given.of_step(given.turns.cos, step), given.of_step(given.turns.sin, step),
                             given.of_step(given.turns.kv_cos, step), given.of_step(given.turns.kv_sin, step)};
  for (std::int64_t i = 0; i < a.layers; ++i) {
    const std::size_t at = static_cast<std::size_t>(i);
    const Layer& layer = weights.layers[at];
    const Builder::Heads heads = b.heads(x, weights, i, turns);
    const Expr before = given.before[at];
    Expr& lately = given.lately[at];
    lately = b.with_token(lately, heads, turns, is_new);
    const auto both = [&](std::int64_t first) {
      return build::concat(std::array{build::narrow(before, 1, first, a.kv_heads), build::narrow(lately, 1, first, a.kv_heads)},
                           2);
    };
    const Expr q = build::reshape(heads.q, Shape{rows, a.heads, 1, a.head_width}), k = both(0), v = both(a.kv_heads);
    Expr attended = b.attention(q, k, v, mask);
    // Rounded for the product already here, it is stored so.
    if (!layer.output.codes) attended = build::cast(attended, layer.output.parts[0]->type().dtype);
    x = b.rest(x, build::reshape(attended, Shape{rows, a.heads * a.head_width}), layer);
  }
  return x;
}

}  // namespace

std::int64_t cache_tensors(const Architecture& a, bool apart) { return apart ? a.layers : 2 * a.layers; }

Shape cache_shape(const Architecture& a, bool apart, std::int64_t rows, std::int64_t tokens) {
  return Shape{rows, apart ? 2 * a.kv_heads : a.kv_heads, tokens, a.head_width};
}

StepProgram prefill(const Architecture& a, const Weights& weights, std::int64_t tokens, std::int64_t closed, bool apart) {
  Builder b(a, apart);
  Expr x = b.tokens(tokens, weights);
  const Builder::Turns turns = b.turns(tokens);
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
  Expr full = mask_of(0);
  const Expr near = a.window > 0 ? mask_of(a.window) : full;
  if (weights.slopes) {
    Expr begin = build::number(b.graph(), static_cast<double>(closed));
    if (closed > 0) begin = build::where(key < build::cast(begin, DType::i64), *count, build::cast(begin, DType::i64));
    full = b.falling(full, key - row - begin, weights, Shape{1, a.heads, 1, 1});
  }
  const auto by_head = [&](Expr heads) {
    return build::unsqueeze(build::transpose(heads, {1, 0, 2}), 0);  // [1, heads, tokens, head_width]
  };
  std::vector<Expr> outputs;
  for (std::int64_t i = 0; i < a.layers; ++i) {
    const Layer& layer = weights.layers[static_cast<std::size_t>(i)];
    const Expr mask = a.windowed[static_cast<std::size_t>(i)] ? near : full;
    const Builder::Heads heads = b.heads(x, weights, i, turns);
    const Expr q = by_head(heads.q), k = by_head(heads.k), v = by_head(heads.v);
    if (apart) {
      outputs.push_back(by_head(heads.kv));
    } else {
      outputs.push_back(k);
      outputs.push_back(v);
    }
    Expr keys = k, values = v;
    if (closed > 0) {
      const std::size_t place = static_cast<std::size_t>(apart ? i : 2 * i);
      const Expr old_keys = apart ? build::narrow(before[place], 1, 0, a.kv_heads) : before[place];
      const Expr old_values = apart ? build::narrow(before[place], 1, a.kv_heads, a.kv_heads) : before[place + 1];
      keys = build::concat(std::array{old_keys, k}, 2);
      values = build::concat(std::array{old_values, v}, 2);
    }
    const Expr rows = build::transpose(build::squeeze(b.attention(q, keys, values, mask), build::one_axis(0)), {1, 0, 2});
    x = b.rest(x, build::reshape(rows, Shape{tokens, a.heads * a.head_width}), layer);
  }
  outputs.insert(outputs.begin(), b.logits(build::take(x, last, 0), weights));
  return b.finish(outputs);
}

StepProgram decode(const Architecture& a, const Weights& weights, std::int64_t rows, std::int64_t closed) {
  Builder b(a, false);
  Expr x = b.tokens(rows, weights);
  const Builder::Turns turns = b.turns(rows);
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
    const Builder::Heads heads = b.heads(x, weights, i, turns);
    const std::size_t at = static_cast<std::size_t>(2 * i);
    const Shape one{rows, a.kv_heads, 1, a.head_width};
    const Expr k = build::where(is_new, build::reshape(heads.k, one), lately[at]);
    const Expr v = build::where(is_new, build::reshape(heads.v, one), lately[at + 1]);
    outputs.push_back(k);
    outputs.push_back(v);
    // The heads that share keys are the rows of one matrix.
    const Expr q = build::reshape(heads.q, Shape{rows, a.kv_heads, shared, a.head_width}) * a.attention_scale;
    const Expr early = build::matmul(q, before[at], {.transpose_b = true}), late = build::matmul(q, k, {.transpose_b = true});
    std::array scores{build::where(closed_keys, b.capped(early, a.attention_cap), kMinusInfinity),
                      build::where(open_keys, b.capped(late, a.attention_cap), kMinusInfinity)};
    if (weights.slopes) {
      const Shape by_head{1, a.kv_heads, shared, 1};
      scores = {scores[0] + b.falling(closed_keys, early_key - count - place, weights, by_head),
                scores[1] + b.falling(open_keys, late_key - place, weights, by_head)};
    }
    const Expr p = softmax(build::concat(scores, 3));
    const Expr attended =
        build::matmul(build::narrow(p, 3, 0, closed), before[at + 1]) + build::matmul(build::narrow(p, 3, closed, kOpen), v);
    x = b.rest(x, build::reshape(attended, Shape{rows, a.heads * a.head_width}), layer);
  }
  outputs.insert(outputs.begin(), b.logits(x, weights));
  return b.finish(outputs);
}

StepProgram decode_apart(const Architecture& a, const Weights& weights, std::int64_t rows, std::int64_t closed) {
  Builder b(a, true);
  Apart given(b, rows, closed, 1);
  const Expr x = advance_rows(b, a, weights, b.embedded(given.ids, weights.embedding), given, 0);
  std::vector<Expr> outputs{b.logits(x, weights)};
  outputs.insert(outputs.end(), given.lately.begin(), given.lately.end());
  return b.finish(outputs);
}

StepProgram advance(const Architecture& a, const Weights& weights, std::int64_t rows, std::int64_t closed, std::int64_t tokens) {
  Builder b(a, true);
  Apart given(b, rows, closed, tokens);
  std::vector<Expr> chosen;
  for (std::int64_t i = 0; i < tokens; ++i) {
    const Expr ids = i == 0 ? given.ids : build::reshape(chosen.back(), Shape{rows});
    const Expr x = advance_rows(b, a, weights, b.embedded(ids, weights.embedding), given, i);
    // The first of equal ones, as Sampler takes it.
    chosen.emplace_back(b.graph(), b.graph().arg_reduce(b.logits(x, weights).id(), 1, true));
  }
  std::vector<Expr> outputs{chosen.size() == 1 ? chosen[0] : build::concat(chosen, 1)};
  outputs.insert(outputs.end(), given.lately.begin(), given.lately.end());
  return b.finish(outputs);
}

StepProgram append(const Architecture& a, std::int64_t rows, std::int64_t closed, std::int64_t to, std::int64_t tokens,
                   bool apart) {
  Builder b(a, apart);
  const Expr place = build::reshape(b.given("place", DType::i64, Shape{rows}), Shape{rows, 1, 1, 1});
  const std::vector<Expr> before = closed > 0 ? b.cache("closed", rows, closed) : std::vector<Expr>();
  const std::vector<Expr> added = b.cache("added", rows, tokens);
  const Shape part = cache_shape(a, apart, rows, tokens);
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
                    std::int64_t added, bool apart) {
  Builder b(a, apart);
  const Expr numbers = b.given("rows", DType::i64, Shape{rows});
  const std::vector<Expr> before = from_rows > 0 ? b.cache("closed", from_rows, closed) : std::vector<Expr>();
  const std::vector<Expr> more = added > 0 ? b.cache("added", 1, added) : std::vector<Expr>();
  std::vector<Expr> outputs;
  for (std::size_t i = 0; i < static_cast<std::size_t>(cache_tensors(a, apart)); ++i) {
    std::vector<Expr> parts;
    if (from_rows > 0) parts.push_back(resized(before[i], to));
    if (added > 0) parts.push_back(resized(more[i], to));
    outputs.push_back(build::take(parts.size() == 1 ? parts[0] : build::concat(parts, 0), numbers, 0));
  }
  return b.finish(outputs);
}

}  // namespace tenon::decoder

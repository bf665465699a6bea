#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/onnx/converters/microsoft/fused.h"
#include "model/onnx/import/importer.h"

namespace tenon::onnx {
namespace {

using namespace build;

struct Heads {
  Expr q, k, v;  // [batch, heads, length, width]; keys and values may have fewer heads
};

void add_to(std::optional<Expr>& bias, Expr more) { bias = bias ? *bias + more : more; }

// softmax(q k^T * scale + bias) v, as [batch, length, heads * width]. |sink|: one more score per head, whose value is 0.
Expr attend(const NodeContext& node, const Heads& heads, std::optional<Expr> bias, std::optional<Expr> sink = {}) {
  const DType dtype = heads.q.dtype(), wide = dtype == DType::f64 ? DType::f64 : DType::f32;
  if (heads.k.extent(1) < 1 || heads.q.extent(1) % heads.k.extent(1) != 0)
    node.fail(fmt::format("{} query heads cannot share {} key heads", heads.q.extent(1), heads.k.extent(1)));
  const std::int64_t group = heads.q.extent(1) / heads.k.extent(1);
  const double given = node.number("scale", 0), cap = node.number("softcap", 0),
               scale = given != 0 ? given : 1 / std::sqrt(static_cast<double>(heads.q.extent(3)));
  Expr scores =
      cast(matmul(node.operand(heads.q), node.operand(repeat_heads(heads.k, group)), {.transpose_b = true}), wide) * scale;
  if (cap > 0) scores = node.apply("tanh", {scores / cap}) * cap;
  if (bias) scores = scores + cast(*bias, wide);
  const std::int64_t keys = scores.extent(3);
  if (sink) {
    const Expr parts[] = {scores, expand_to(cast(*sink, wide), scores.shape().with(3, 1))};
    scores = concat(parts, 3);
  }
  Expr probabilities = node.apply("softmax", {scores});
  if (sink) probabilities = narrow(probabilities, 3, 0, keys);
  return heads_together(
      like(matmul(node.operand(cast(probabilities, dtype)), node.operand(repeat_heads(heads.v, group))), dtype));
}

Expr after(Expr past, Expr x, int axis) {
  const Expr parts[] = {past, x};
  return concat(parts, axis);
}

// -inf where query i, of which |past| precede, may not see key j; [1, 1, queries, keys].
Expr causal(const NodeContext& node, std::int64_t queries, std::int64_t keys) {
  const Shape shape{1, 1, queries, keys};
  const Expr query = build::iota(node.graph(), shape, 2) + static_cast<double>(keys - queries);
  const Expr allowed = build::iota(node.graph(), shape, 3) <= query;
  return where(allowed, cast(allowed, DType::f32) * 0.0, -std::numeric_limits<double>::infinity());
}

// The addend of the scores: the input |mask|, if there is one, the attribute unidirectional, and the input |more|. A mask has
// 0 and 1 per key, or per query and key, or says where the keys of each row end, and where they start.
std::optional<Expr> attention_bias(const NodeContext& node, std::size_t mask, std::size_t more, std::int64_t batch,
                                   std::int64_t queries, std::int64_t keys) {
  std::optional<Expr> bias;
  const double filter = node.number("mask_filter_value", -10000);
  const auto masked = [&](Expr kept) { add_to(bias, where(kept, cast(kept, DType::f32) * 0.0, filter)); };
  if (node.has(mask)) {
    Expr m = node.in(mask);
    if (m.rank() == 1 && (m.extent(0) == batch || m.extent(0) == 2 * batch)) {
      const Expr key = build::iota(node.graph(), Shape{1, 1, 1, keys}, 3),
                 places = reshape(cast(m, DType::i64), Shape{m.extent(0), 1, 1, 1});
      Expr kept = key < narrow(places, 0, 0, batch);
      if (m.extent(0) == 2 * batch && batch > 0) kept = kept && key >= narrow(places, 0, batch, batch);
      masked(kept);
    } else if (m.rank() == 2 && m.extent(1) == keys) {
      masked(reshape(m, Shape{m.extent(0), 1, 1, keys}) > same(m, 0));
    } else if (m.rank() == 3 && m.extent(2) == keys) {
      masked(unsqueeze(m, 1) > same(m, 0));
    } else if (m.rank() == 4 && m.extent(2) >= keys && m.extent(3) >= keys) {
      masked(narrow(narrow(m, 2, keys - queries, queries), 3, 0, keys) > same(m, 0));
    } else if (m.rank() != 2 || m.extent(1) != 1) {  // [batch, 1] stands for no mask
      node.refuse(fmt::format("a mask of shape {} for {} queries and {} keys", to_string(m.shape()), queries, keys));
    }
  }
  if (node.integer("unidirectional", 0) != 0) add_to(bias, causal(node, queries, keys));
  if (node.has(more)) add_to(bias, cast(node.in(more), DType::f32));
  return bias;
}

// Attention and QAttention from the product of the input with its weights, [batch, length, 3 * heads * width].
Results from_product(const NodeContext& node, Expr product, std::size_t mask, std::size_t past, std::size_t more) {
  const std::int64_t heads = node.integer("num_heads");
  std::vector<std::int64_t> sizes = node.integers("qkv_hidden_sizes");
  if (sizes.empty()) sizes.assign(3, product.extent(2) / 3);
  const auto fits = [&](std::int64_t size) { return size >= 0 && size <= product.extent(2); };
  if (sizes.size() != 3 || !std::ranges::all_of(sizes, fits) || sizes[0] + sizes[1] + sizes[2] != product.extent(2))
    node.fail(fmt::format("{} columns cannot be divided into queries, keys and values", product.extent(2)));
  if (node.integer("do_rotary", 0) != 0) node.refuse("rotary positions");
  if (node.integer("past_present_share_buffer", 0) != 0) node.refuse("a buffer that past and present share");
  const auto part = [&](std::int64_t start, std::int64_t size) {
    return heads_apart(node, narrow(product, 2, start, size), heads);
  };
  Heads h{part(0, sizes[0]), part(sizes[0], sizes[1]), part(sizes[0] + sizes[1], sizes[2])};
  if (node.has(past)) {
    const Expr both = node.in(past);
    if (both.rank() != 5 || both.extent(0) != 2) node.fail("expected past keys and values [2, batch, heads, length, width]");
    const auto half = [&](std::int64_t i) { return squeeze(narrow(both, 0, i, 1), one_axis(0)); };
    h.k = after(half(0), h.k, 2);
    h.v = after(half(1), h.v, 2);
  }
  const auto bias = attention_bias(node, mask, more, h.q.extent(0), h.q.extent(2), h.k.extent(2));
  Results results{attend(node, h, bias)};
  if (node.wants(1)) results.emplace_back(after(unsqueeze(h.k, 0), unsqueeze(h.v, 0), 0));
  return results;
}

Results attention(const NodeContext& node) {
  const DType dtype = node.dtype(0);
  if (node.rank(0) != 3 || node.rank(1) != 2) node.fail("expected an input [batch, length, width] and weights of two axes");
  Expr product = like(matmul(node.operand(0), node.operand(1)), dtype);
  if (node.has(2)) product = product + node.in(2);
  return from_product(node, product, 3, 4, 5);
}

Results quantized_attention(const NodeContext& node) {
  const auto value = [&](std::size_t i) { return node.has(i) ? node.value(i) : nullptr; };
  const Expr sum = first(node, as_op(node, "MatMulInteger", {value(0), value(1), value(6), value(7)}));
  Expr product = cast(sum, DType::f32) * (node.in(3) * node.in(4));
  if (node.has(2)) product = product + node.in(2);
  return from_product(node, product, 5, 8, 99);
}

Results multi_head_attention(const NodeContext& node) {
  const std::int64_t count = node.integer("num_heads");
  Expr q = node.in(0);
  if (node.has(9)) node.refuse("a cache with beams");
  const auto packed = [&](Expr x, std::int64_t place) {  // [batch, length, heads, 2 or 3, width]
    return swap_axes(squeeze(narrow(x, 3, place, 1), one_axis(3)), 1, 2);
  };
  std::int64_t start = 0;  // in the biases of queries, keys and values, one after the other
  const auto apart = [&](Expr x) {
    if (x.rank() == 4) return x;
    if (x.rank() != 3) node.fail("expected [batch, length, width]");
    if (node.has(3)) x = x + narrow(node.in(3), 0, start, x.extent(2));
    start += x.extent(2);
    return heads_apart(node, x, count);
  };
  std::optional<Heads> h;
  if (q.rank() == 5) {
    h = Heads{packed(q, 0), packed(q, 1), packed(q, 2)};
    if (node.has(3)) node.refuse("a bias of packed queries, keys and values");
  } else {
    const Expr k = node.in(1);
    if (k.rank() == 5 && node.has(3)) node.refuse("a bias of packed keys and values");
    const Expr query = apart(q), key = k.rank() == 5 ? packed(k, 0) : apart(k);
    h = Heads{query, key, k.rank() == 5 ? packed(k, 1) : apart(node.in(2))};
  }
  if (node.has(6)) {
    h->k = after(node.in(6), h->k, 2);
    h->v = after(node.in(7), h->v, 2);
  }
  const auto bias = attention_bias(node, 4, 5, h->q.extent(0), h->q.extent(2), h->k.extent(2));
  return {attend(node, *h, bias), h->k, h->v};
}

// Keys and values are shared by groups of heads, rows may have lengths of their own, and the cache may be longer than what it
// holds: seqlens_k says how many keys each row has, the new ones included, less one.
Results group_query_attention(const NodeContext& node) {
  const std::int64_t heads = node.integer("num_heads"), shared = node.integer("kv_num_heads");
  if (node.integer("smooth_softmax", 0) != 0) node.refuse("a smooth softmax");
  Expr q = node.in(0);
  if (q.rank() != 3 || heads < 1 || shared < 1) node.fail("expected queries [batch, length, width] and numbers of heads");
  // A head has at least one element. Larger numbers would overflow below.
  if (heads > q.extent(2) || shared > q.extent(2))
    node.fail(fmt::format("{} elements cannot be divided into {} and {} heads", q.extent(2), heads, shared));
  const std::int64_t batch = q.extent(0), length = q.extent(1);
  std::optional<Expr> k, v;
  if (node.has(1)) {
    k = node.in(1);
    v = node.in(2);
    if (k->rank() != 3 || v->rank() != 3) node.fail("expected keys and values [batch, length, width]");
  } else {
    const std::int64_t all = heads + 2 * shared, width = q.extent(2) / all;
    if (width * all != q.extent(2)) node.fail(fmt::format("{} elements cannot be divided into {} heads", q.extent(2), all));
    k = narrow(q, 2, heads * width, shared * width);
    v = narrow(q, 2, (heads + shared) * width, shared * width);
    q = narrow(q, 2, 0, heads * width);
  }
  const std::int64_t total = static_cast<std::int64_t>(node.host_number(6));
  if (total < length) node.fail(fmt::format("a total length of {} with {} new tokens", total, length));
  // Where the first of the new tokens of each row is.
  const bool is_prompt = total == length;
  const Expr keys_of = reshape(cast(node.in(5), DType::i64), Shape{batch, 1}) + 1.0;
  const Expr start = is_prompt ? keys_of * same(keys_of, 0) : keys_of - static_cast<double>(length);
  const auto apart = [&](Expr x, std::int64_t count) {
    if (x.extent(2) % count != 0) node.fail(fmt::format("{} elements and {} heads", x.extent(2), count));
    return reshape(x, Shape{batch, x.extent(1), count, x.extent(2) / count});
  };
  Expr query = apart(q, heads), key = apart(*k, shared);
  if (node.integer("do_rotary", 0) != 0) {
    const Expr position = node.has(9) ? cast(node.in(9), DType::i64) : start + build::iota(node.graph(), Shape{1, length}, 1);
    const Expr cosine = take(node.in(7), position, 0), sine = take(node.in(8), position, 0);
    const bool interleaved = node.integer("rotary_interleaved", 0) != 0;
    query = rotated(node, query, cosine, sine, interleaved);
    key = rotated(node, key, cosine, sine, interleaved);
  }
  Heads h{swap_axes(query, 1, 2), swap_axes(key, 1, 2), swap_axes(apart(*v, shared), 1, 2)};
  const std::int64_t past = node.has(3) ? node.shape(3)[2] : 0, present = std::max(past, total);
  if (node.has(3)) {
    if (batch == 1 && past + length == total) {
      h.k = after(node.in(3), h.k, 2);
      h.v = after(node.in(4), h.v, 2);
    } else {
      // Key j of a row is new if it is one of |length| from its start on, else one of the cache.
      const Shape shape{batch, 1, present, 1};
      const Expr j = build::iota(node.graph(), shape, 2), first_new = reshape(start, Shape{batch, 1, 1, 1}),
                 offset = j - first_new;
      const Expr is_new = offset >= same(offset, 0) && offset < same(offset, static_cast<double>(length));
      const Expr place =
          where(is_new, offset + static_cast<double>(past), minimum(j, static_cast<double>(std::max<std::int64_t>(past - 1, 0))));
      const Expr is_filled = j < reshape(keys_of, Shape{batch, 1, 1, 1});
      const auto joined = [&](Expr old, Expr x) {
        const Expr all = after(old, x, 2);
        return where(is_filled, gather(all, expand_to(place, all.shape().with(2, present)), 2), 0.0);
      };
      h.k = joined(node.in(3), h.k);
      h.v = joined(node.in(4), h.v);
    }
  }
  const std::int64_t keys = h.k.extent(2);
  const Expr at = reshape(start, Shape{batch, 1, 1, 1}) + build::iota(node.graph(), Shape{1, 1, length, 1}, 2);
  const Expr j = build::iota(node.graph(), Shape{1, 1, 1, keys}, 3);
  Expr allowed = j <= at;
  if (const std::int64_t window = node.integer("local_window_size", -1); window >= 0)
    allowed = allowed && j > at - static_cast<double>(window);
  std::optional<Expr> bias = where(allowed, cast(allowed, DType::f32) * 0.0, -std::numeric_limits<double>::infinity());
  if (node.has(10)) {
    Expr more = cast(node.in(10), DType::f32);
    if (more.extent(3) < keys) more = pad_axis(more, 3, 0, keys - more.extent(3));
    add_to(bias, more);
  }
  std::optional<Expr> sink;
  if (node.has(11)) sink = reshape(node.in(11), Shape{1, heads, 1, 1});
  return {attend(node, h, bias, sink), h.k, h.v};
}

}  // namespace

void add_microsoft_attention(ConverterTable& table) {
  table.add("com.microsoft.Attention", attention);
  table.add("com.microsoft.QAttention", quantized_attention);
  table.add("com.microsoft.MultiHeadAttention", multi_head_attention);
  table.add("com.microsoft.GroupQueryAttention", group_query_attention);
}

}  // namespace tenon::onnx

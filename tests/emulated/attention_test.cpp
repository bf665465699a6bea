// Attention of few queries: keys in one part or two, divided between work-groups or not, and last keys that the kernel renews.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <span>

#include "emulated/cases.h"
#include "emulated/kernel_library.h"
#include "tenon/ops.h"

namespace tenon::emulated {
namespace {

struct Sizes {
  std::int64_t batch = 1, heads = 4, shared = 4, rows = 1, keys = 100, width = 64, v_width = 0;  // 0: as wide as keys
};

double limit_of(DType dtype) { return dtype == DType::f32 ? 1e-5 : dtype == DType::f16 ? 2e-3 : 1.6e-2; }

void add_attention(Cases& cases, const Sizes& s, DType dtype, bool has_mask, bool is_causal, int units, Numbers& numbers) {
  Graph graph;
  const auto input = [&](const char* name, std::int64_t heads, std::int64_t rows, std::int64_t width) {
    return graph.input(name, dtype, Shape{s.batch, heads, rows, width});
  };
  std::vector<NodeId> operands{input("q", s.heads, s.rows, s.width), input("k", s.shared, s.keys, s.width),
                               input("v", s.shared, s.keys, s.v_width == 0 ? s.width : s.v_width)};
  std::vector<HostArray> inputs;
  for (const NodeId id : operands) inputs.push_back(numbers.normal(dtype, graph[id].shape));
  if (has_mask) {
    operands.push_back(graph.input("mask", DType::f32, Shape{s.rows, s.keys}));
    inputs.push_back(numbers.normal(DType::f32, Shape{s.rows, s.keys}));
    operands.back() = graph.cast(operands.back(), dtype);
  }
  graph.set_outputs(apply(graph, find_op("attention"), operands, std::vector<NamedValue>{{"causal", is_causal}}));
  cases.add(fmt::format("{} x {} of {} heads, {} x {} of {}, {}{}{}, {} units", s.batch, s.shared, s.heads, s.rows, s.keys,
                        s.width, name(dtype), has_mask ? ", mask" : "", is_causal ? ", causal" : "", units),
            std::move(graph), std::move(inputs), card(units), limit_of(dtype));
}

TEST(EmulatedAttention, OfFewQueriesIsThatOfTheReference) {
  TENON_SKIP_WITHOUT_COMPILER();
  Numbers numbers(3);
  Cases cases;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
    for (const std::int64_t width : {32, 64, 128}) {
      add_attention(cases, {.width = width}, dtype, false, false, 4, numbers);
      add_attention(cases, {.batch = 2, .heads = 8, .shared = 2, .keys = 1037, .width = width}, dtype, true, false, 40, numbers);
    }
  add_attention(cases, {.rows = 3, .keys = 5}, DType::f32, true, false, 4, numbers);
  add_attention(cases, {.heads = 2, .shared = 2, .rows = 8, .keys = 300}, DType::f16, true, true, 40, numbers);
  add_attention(cases, {.heads = 8, .shared = 1, .rows = 2, .keys = 2}, DType::f32, false, true, 4, numbers);
  // More than the cache holds.
  add_attention(cases, {.heads = 10, .shared = 5, .keys = 3400}, DType::f32, false, false, 6, numbers);
  add_attention(cases, {.heads = 20, .shared = 5, .keys = 3290}, DType::f32, true, false, 40, numbers);
  cases.check();
}

// Rows that lanes divide unevenly, in words of any length, and values of another width than keys.
TEST(EmulatedAttention, OfFewQueriesTakesRowsOfAnyWidth) {
  TENON_SKIP_WITHOUT_COMPILER();
  Numbers numbers(9);
  Cases cases;
  for (const std::int64_t width : {1, 7, 20, 80, 89, 140, 192, 256}) {
    add_attention(cases, {.width = width}, DType::f32, true, false, 4, numbers);
    add_attention(cases, {.batch = 2, .heads = 6, .shared = 2, .keys = 437, .width = width}, DType::f32, false, false, 40,
                  numbers);
  }
  for (const std::int64_t width : {3, 36, 89, 140}) {
    add_attention(cases, {.width = width}, DType::bf16, false, false, 4, numbers);
    add_attention(cases, {.batch = 2, .heads = 6, .shared = 2, .keys = 437, .width = width}, DType::f16, true, true, 40, numbers);
  }
  // Several passes over keys of long rows, and one head of keys for many.
  add_attention(cases, {.heads = 12, .shared = 4, .keys = 1200, .width = 236}, DType::f32, false, false, 6, numbers);
  add_attention(cases, {.heads = 40, .shared = 1, .rows = 2, .keys = 90, .width = 96}, DType::f32, true, true, 4, numbers);
  add_attention(cases, {.heads = 40, .shared = 1, .rows = 2, .keys = 90, .width = 96}, DType::bf16, true, true, 4, numbers);
  add_attention(cases, {.keys = 120, .width = 48, .v_width = 72}, DType::f32, false, false, 4, numbers);
  add_attention(cases, {.keys = 120, .width = 75, .v_width = 30}, DType::f16, false, false, 4, numbers);
  cases.check();
}

TEST(EmulatedAttention, OfFewQueriesOnTheMatrixUnitsIsThatOfTheReference) {
  TENON_SKIP_WITHOUT_COMPILER();
  Numbers numbers(7);
  Cases cases;
  for (const DType dtype : {DType::f16, DType::bf16}) {
    for (const std::int64_t width : {8, 40, 64, 80, 96, 128, 192, 256})
      add_attention(cases, {.batch = 2, .heads = 6, .shared = 2, .keys = 300 + width, .width = width}, dtype, false, false, 4,
                    numbers);
    // Rows of one tile, of two, and of several pairs; keys of one part and of several; fewer keys than one product has.
    add_attention(cases, {.heads = 8, .shared = 1, .rows = 1, .keys = 1037}, dtype, true, false, 40, numbers);
    add_attention(cases, {.heads = 12, .shared = 1, .rows = 1, .keys = 500, .width = 128}, dtype, true, false, 2, numbers);
    add_attention(cases, {.heads = 4, .shared = 2, .rows = 5, .keys = 17}, dtype, true, true, 4, numbers);
    add_attention(cases, {.heads = 4, .shared = 1, .rows = 7, .keys = 700, .width = 32}, dtype, false, true, 40, numbers);
    add_attention(cases, {.heads = 3, .shared = 3, .rows = 20, .keys = 3}, dtype, false, false, 4, numbers);
  }
  cases.check();
}

// Keys and values that end in [is_new ? x : old], as those of a step that adds a token do.
struct Renewed {
  std::int64_t batch = 1, heads = 4, shared = 2, from = 100, late = 32, width = 64;
  int units = 4;
  bool halves = false;         // x in five axes, turned
  bool is_read_early = false;  // also by something in front of the attention
};

void add_renewed(Cases& cases, const Renewed& s, Numbers& numbers) {
  Graph graph;
  std::vector<HostArray> inputs;
  const auto input = [&](const char* name, DType dtype, const Shape& shape) {
    inputs.push_back(dtype == DType::boolean ? HostArray::zeros(dtype, shape) : numbers.normal(dtype, shape));
    return graph.input(name, dtype, shape);
  };
  const auto apply_one = [&](const char* op, std::initializer_list<NodeId> operands) {
    return apply(graph, find_op(op), std::vector<NodeId>(operands))[0];
  };
  const Shape all{s.batch, 2 * s.shared, s.late, s.width};
  const NodeId q = input("q", DType::f32, Shape{s.batch, s.heads, 1, s.width});
  const NodeId before = input("before", DType::f32, Shape{s.batch, 2 * s.shared, s.from, s.width});
  NodeId old = input("old", DType::f32, all);
  const NodeId x = input("x", DType::f32, Shape{s.batch, 2 * s.shared, 1, s.width});
  const NodeId mask = input("mask", DType::f32, Shape{s.batch, 1, 1, s.from + s.late});
  NodeId is_new = input("is_new", DType::boolean, Shape{s.batch, 1, s.late, 1});
  // What is replaced does not count, and need not be a number.
  const std::span<float> old_values = inputs[2].mutable_view<float>();
  const std::span<std::uint8_t> is_new_values = inputs[5].mutable_view<std::uint8_t>();
  for (std::int64_t n = 0; n < s.batch; ++n) {
    const std::int64_t place = s.late - 1 - n;
    is_new_values[static_cast<std::size_t>(n * s.late + place)] = 1;
    for (std::int64_t h = 0; h < 2 * s.shared; ++h)
      for (std::int64_t e = 0; e < s.width; ++e)
        old_values[static_cast<std::size_t>(((n * 2 * s.shared + h) * s.late + place) * s.width + e)] =
            std::numeric_limits<float>::quiet_NaN();
  }
  NodeId added = apply_one("mul", {graph.broadcast(x, all), graph.scalar(0.5, DType::f32)});
  if (s.halves) {
    const Shape five{s.batch, 2 * s.shared, s.late, 2, s.width / 2};
    added = apply_one("mul", {graph.reshape(graph.broadcast(x, all), five), graph.scalar(0.5, DType::f32)});
    is_new = graph.broadcast(graph.reshape(is_new, Shape{s.batch, 1, s.late, 1, 1}), five);
    old = graph.reshape(old, five);
  }
  const NodeId renewed = graph.reshape(apply_one("where", {is_new, added, old}), all);
  std::vector<NodeId> outputs;
  NodeId query = q;
  if (s.is_read_early) query = apply_one("add", {q, graph.reduce(ReduceKind::sum, renewed, AxisSet{0b1110})});
  const auto part = [&](NodeId of, std::int64_t first) {
    Shape shape = graph[of].shape;
    const std::int64_t start[] = {0, first, 0, 0}, step[] = {1, 1, 1, 1};
    const std::int64_t extent[] = {shape[0], s.shared, shape[2], shape[3]};
    return graph.slice(of, start, extent, step);
  };
  const auto both = [&](std::int64_t first) {
    const NodeId parts[] = {part(before, first), part(renewed, first)};
    return graph.concat(parts, 2);
  };
  const std::vector<NodeId> operands{query, both(0), both(s.shared), mask};
  outputs.push_back(apply(graph, find_op("attention"), operands)[0]);
  outputs.push_back(renewed);
  graph.set_outputs(std::move(outputs));
  cases.add(fmt::format("{} x {} of {} heads of {}, {} and {} keys, {} units{}{}", s.batch, s.shared, s.heads, s.width, s.from,
                        s.late, s.units, s.halves ? ", halves" : "", s.is_read_early ? ", read early" : ""),
            std::move(graph), std::move(inputs), card(s.units), 1e-5);
}

TEST(EmulatedAttention, RenewsTheLastKeysAsTheReferenceDoes) {
  TENON_SKIP_WITHOUT_COMPILER();
  Numbers numbers(5);
  Cases cases;
  for (const std::int64_t width : {32, 64, 128, 20, 80, 256})
    add_renewed(cases, {.batch = 2, .width = width, .halves = true}, numbers);
  add_renewed(cases, {.heads = 4, .shared = 4, .from = 300, .late = 40, .width = 99, .units = 40}, numbers);
  // One key that was there, and late ones that are no multiple of what is read at once, or more than once.
  for (const std::int64_t late : {1, 5, 33, 150}) add_renewed(cases, {.from = 1, .late = late}, numbers);
  add_renewed(cases, {.heads = 4, .shared = 4, .from = 1500, .late = 40, .units = 40}, numbers);
  // Several passes over the keys, with more rows than one pass serves, and less than a part of keys in the last part.
  add_renewed(cases, {.batch = 2, .heads = 16, .shared = 2, .from = 4500, .late = 70, .units = 40, .halves = true}, numbers);
  add_renewed(cases, {.from = 700, .is_read_early = true}, numbers);
  cases.check();
}

}  // namespace
}  // namespace tenon::emulated

#include "graph/optimize/attention.h"

#include <gtest/gtest.h>

#include "graph/optimize/simplify.h"
#include "tenon/ops.h"

namespace tenon {
namespace {

struct Written {
  bool transposes_keys = true;  // as a node of its own, which most exporters do
  bool divides = true;
  bool adds_mask = false;
  bool in_rows = false;         // softmax of [n * h * l, s]
  DType products = DType::f32;  // f32 is cast to this where it enters a product
};

// Attention as exporters write it, of q and k [2, 4, 5, 8] and [2, 4, 7, 8] and v [2, 4, 7, 6].
Graph written(const Written& how) {
  Graph graph;
  const auto operand = [&](NodeId x) { return graph.cast(x, how.products); };
  const auto one = [&](const char* op, NodeId a, NodeId b) { return apply(graph, op, {a, b})[0]; };
  const NodeId q = graph.input("q", DType::f32, {2, 4, 5, 8}), k = graph.input("k", DType::f32, {2, 4, 7, 8}),
               v = graph.input("v", DType::f32, {2, 4, 7, 6});
  const NodeId turned = how.transposes_keys ? graph.transpose(k, std::array{0, 1, 3, 2}) : k;
  NodeId scores = graph.matmul(operand(q), operand(turned), {.transpose_b = !how.transposes_keys});
  scores = graph.cast(scores, DType::f32);
  scores = how.divides ? one("div", scores, graph.scalar(4, DType::f32)) : one("mul", graph.scalar(0.25, DType::f32), scores);
  if (how.adds_mask) scores = one("add", scores, graph.input("mask", DType::f32, {2, 1, 1, 7}));
  if (how.in_rows) scores = graph.reshape(scores, {40, 7});
  NodeId p = apply(graph, "softmax", {scores}, {{"axis", std::int64_t{-1}}})[0];
  if (how.in_rows) p = graph.reshape(p, {2, 4, 5, 7});
  graph.set_outputs({graph.cast(graph.matmul(operand(p), operand(v)), DType::f32)});
  return graph;
}

const Region* attention_in(const std::optional<Graph>& graph) {
  if (graph)
    for (const Region& region : graph->regions())
      if (std::holds_alternative<AttentionAttr>(region.attr)) return &region;
  return nullptr;
}

TEST(FindAttention, IsFoundHoweverItIsWritten) {
  for (const bool transposes : {true, false})
    for (const bool divides : {true, false})
      for (const bool masked : {true, false})
        for (const bool in_rows : {true, false})
          for (const DType products : {DType::f32, DType::bf16}) {
            const Graph graph = written({transposes, divides, masked, in_rows, products});
            const std::optional<Graph> found = with_attention(graph);
            const Region* const region = attention_in(found);
            ASSERT_NE(region, nullptr) << transposes << divides << masked << in_rows << name(products);
            EXPECT_EQ(std::get<AttentionAttr>(region->attr).scale, 0.25);
            EXPECT_EQ(region->inputs.size(), masked ? 4u : 3u);
            EXPECT_EQ((*found)[region->inputs[1]].shape, (Shape{2, 4, 7, 8}));
            EXPECT_EQ((*found)[region->output].dtype, products);
          }
}

// As PyTorch's exporter writes it where there is a mask: both factors of the scores have the square root of the scale, keys are
// transposed between reshapes, and a row without a key is zeros.
Graph exported(DType products) {
  Graph graph;
  const auto operand = [&](NodeId x) { return graph.cast(x, products); };
  const auto one = [&](const char* op, std::initializer_list<NodeId> inputs) { return apply(graph, op, inputs)[0]; };
  const NodeId q = graph.input("q", DType::f32, {2, 4, 5, 8}), k = graph.input("k", DType::f32, {2, 4, 7, 8}),
               v = graph.input("v", DType::f32, {2, 4, 7, 6}), root = graph.scalar(0.5, DType::f32);
  const NodeId turned = graph.reshape(graph.transpose(graph.reshape(k, {8, 7, 8}), std::array{0, 2, 1}), {2, 4, 8, 7});
  const NodeId scores = graph.matmul(operand(one("mul", {q, root})), operand(one("mul", {turned, root})), {});
  const NodeId masked = one("add", {graph.cast(scores, DType::f32), graph.input("mask", DType::f32, {2, 1, 5, 7})});
  const NodeId p = apply(graph, "softmax", {masked}, {{"axis", std::int64_t{-1}}})[0];
  const NodeId safe = one("where", {one("isnan", {p}), graph.scalar(0, DType::f32), p});
  graph.set_outputs({graph.cast(graph.matmul(operand(safe), operand(v)), DType::f32)});
  return graph;
}

TEST(FindAttention, IsFoundAsPyTorchExportsItWithAMask) {
  for (const DType products : {DType::f32, DType::bf16}) {
    const std::optional<Graph> found = with_attention(exported(products));
    const Region* const region = attention_in(found);
    ASSERT_NE(region, nullptr) << name(products);
    EXPECT_EQ(std::get<AttentionAttr>(region->attr).scale, 0.25);
    ASSERT_EQ(region->inputs.size(), 4u);
    // The inputs themselves, cast at most: nothing is multiplied or transposed before.
    for (const int i : {0, 1, 2}) {
      NodeId from = region->inputs[static_cast<std::size_t>(i)];
      if ((*found)[from].prim == Prim::cast) from = (*found)[from].inputs[0];
      EXPECT_EQ((*found)[from].prim, Prim::input) << i;
    }
  }
}

TEST(FindAttention, AZeroForEachNanOfSomethingElseIsNotAttention) {
  Graph graph;
  const NodeId x = graph.input("x", DType::f32, {2, 4, 7, 7}), v = graph.input("v", DType::f32, {2, 4, 7, 6});
  const NodeId p = apply(graph, "softmax", {graph.matmul(x, x)}, {{"axis", std::int64_t{-1}}})[0];
  const NodeId other = apply(graph, "where", {apply(graph, "isnan", {x})[0], graph.scalar(0, DType::f32), p})[0];
  graph.set_outputs({graph.matmul(other, v)});
  EXPECT_EQ(attention_in(with_attention(graph)), nullptr);
}

TEST(FindAttention, ABackendThatTakesItSeesOneNodeAndNoScores) {
  const Graph simple =
      simplify(written({.adds_mask = true, .in_rows = true, .products = DType::bf16}),
               [](const Graph&, const Region& region) { return std::holds_alternative<AttentionAttr>(region.attr); });
  int regions = 0, products = 0;
  for (NodeId id = 0; id < simple.size(); ++id) {
    regions += simple[id].prim == Prim::region;
    products += simple[id].prim == Prim::matmul;
  }
  EXPECT_EQ(regions, 1);
  EXPECT_EQ(products, 0);
}

TEST(FindAttention, AnythingElseBetweenTheProductsIsNotAttention) {
  Graph graph;
  const NodeId q = graph.input("q", DType::f32, {2, 4, 5, 8}), k = graph.input("k", DType::f32, {2, 4, 7, 8}),
               v = graph.input("v", DType::f32, {2, 4, 7, 6});
  const NodeId scores = apply(graph, "tanh", {graph.matmul(q, k, {.transpose_b = true})})[0];
  const NodeId p = apply(graph, "softmax", {scores}, {{"axis", std::int64_t{-1}}})[0];
  graph.set_outputs({graph.matmul(p, v)});
  EXPECT_EQ(attention_in(with_attention(graph)), nullptr);
}

TEST(FindAttention, TheOpItselfIsMarkedOnce) {
  Graph graph;
  const NodeId x = graph.input("x", DType::f32, {2, 4, 7, 8});
  graph.set_outputs(apply(graph, "attention", {x, x, x}));
  EXPECT_FALSE(with_attention(graph).has_value());
}

TEST(Simplify, ASquareIsAProduct) {
  Graph graph;
  const NodeId x = graph.input("x", DType::f32, {5});
  graph.set_outputs({apply(graph, "pow", {x, graph.scalar(2, DType::f32)})[0]});
  const Graph simple = simplify(graph);
  const Node& y = simple[simple.outputs()[0]];
  EXPECT_EQ(y.inputs, (std::vector{simple.inputs()[0], simple.inputs()[0]}));
}

TEST(Simplify, ACastToASmallerTypeGoesInFrontOfViews) {
  Graph graph;
  const NodeId x = graph.input("x", DType::f32, {4, 6}), y = apply(graph, "exp", {x})[0];
  graph.set_outputs({graph.cast(graph.reshape(graph.transpose(y, std::array{1, 0}), {24}), DType::bf16)});
  const Graph simple = simplify(graph);
  const Node& last = simple[simple.outputs()[0]];
  EXPECT_EQ(last.prim, Prim::reshape);
  EXPECT_EQ(last.dtype, DType::bf16);
  for (NodeId id = 0; id < simple.size(); ++id)
    if (simple[id].prim == Prim::cast) EXPECT_EQ(simple[simple[id].inputs[0]].prim, Prim::elementwise);
  EXPECT_EQ(simple.size(), 5) << "nothing is left of the wider views";
}

}  // namespace
}  // namespace tenon

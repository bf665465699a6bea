#include "graph/optimize/region.h"

#include <gtest/gtest.h>

#include "graph/encode/serialize.h"
#include "graph/optimize/simplify.h"
#include "tenon/error.h"
#include "tenon/ops.h"

namespace tenon {
namespace {

Graph attention_of(DType dtype, bool computed_query = false) {
  Graph graph;
  NodeId q = graph.input("q", dtype, {2, 4, 5, 8});
  const NodeId k = graph.input("k", dtype, {2, 2, 7, 8}), v = graph.input("v", dtype, {2, 2, 7, 6});
  if (computed_query) q = apply(graph, "silu", {q})[0];
  graph.set_outputs(apply(graph, "attention", {q, k, v}, {{"causal", true}}));
  return graph;
}

int count(const Graph& graph, Prim prim) {
  int n = 0;
  for (NodeId id = 0; id < graph.size(); ++id) n += graph[id].prim == prim;
  return n;
}

TEST(Rounding, WhatIsComputedIsRoundedWhereItEntersAProduct) {
  Graph graph;
  const NodeId x = graph.input("x", DType::bf16, {4, 4});
  const NodeId y = graph.matmul(x, x);
  EXPECT_EQ(graph[y].inputs, (std::vector{x, x}));
  const NodeId z = graph.matmul(y, x);
  const Node& operand = graph[graph[z].inputs[0]];
  EXPECT_EQ(operand.prim, Prim::cast);
  EXPECT_EQ(operand.dtype, DType::bf16);
  EXPECT_EQ(operand.inputs, std::vector{y});
}

TEST(Rounding, AWiderProductHasNone) {
  Graph graph;
  const NodeId x = graph.input("x", DType::f32, {4, 4});
  const NodeId y = graph.matmul(graph.matmul(x, x), x);
  EXPECT_EQ(count(graph, Prim::cast), 0);
  EXPECT_EQ(graph[y].dtype, DType::f32);
}

TEST(Rounding, IsMovedInFrontOfViewsAndHappensOnce) {
  Graph graph;
  const NodeId x = graph.input("x", DType::f16, {4, 6});
  const NodeId y = apply(graph, "gelu", {x})[0];
  const int perm[] = {1, 0};
  const NodeId turned = graph.transpose(y, perm);
  graph.set_outputs({graph.matmul(y, turned), graph.matmul(turned, y)});
  const Graph simple = simplify(graph);
  EXPECT_EQ(count(graph, Prim::cast), 4);
  ASSERT_EQ(count(simple, Prim::cast), 1);
  for (NodeId id = 0; id < simple.size(); ++id)
    if (simple[id].prim == Prim::cast) EXPECT_EQ(simple[simple[id].inputs[0]].prim, Prim::elementwise);
}

TEST(Regions, AttentionRemembersItsInputsRounded) {
  const Graph graph = attention_of(DType::bf16, true);
  ASSERT_EQ(graph.regions().size(), 1u);
  const Region& region = graph.regions()[0];
  EXPECT_TRUE(std::get<AttentionAttr>(region.attr).causal);
  EXPECT_EQ(graph[region.inputs[0]].shape, (Shape{2, 4, 5, 8}));
  EXPECT_EQ(graph[region.inputs[0]].prim, Prim::cast);
  EXPECT_EQ(graph[region.inputs[1]].prim, Prim::input);
}

TEST(Regions, ABackendThatTakesOneSeesOneNode) {
  const Graph graph = attention_of(DType::f32);
  EXPECT_EQ(count(simplify(graph), Prim::region), 0);
  EXPECT_EQ(count(simplify(graph), Prim::matmul), 2);
  const Graph taken =
      simplify(graph, [](const Graph&, const Region& region) { return std::holds_alternative<AttentionAttr>(region.attr); });
  EXPECT_EQ(taken.size(), 4);  // q, k, v and the attention
  EXPECT_EQ(taken[3].prim, Prim::region);
  EXPECT_EQ(taken[3].shape, (Shape{2, 4, 5, 6}));
  EXPECT_EQ(taken.outputs()[0], 3);
}

TEST(Regions, ArePartOfTheKeyAndOfTheMessage) {
  const Graph graph = attention_of(DType::f32);
  Graph without;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph[id];
    if (node.prim == Prim::input)
      without.input(node.as<InputAttr>().name, node.dtype, node.shape);
    else
      without.append(node);
  }
  without.set_outputs({graph.outputs().begin(), graph.outputs().end()});
  EXPECT_NE(graph.key(), without.key());
  EXPECT_NE(graph.fingerprint(), without.fingerprint());
  without.mark(graph.regions()[0]);
  EXPECT_EQ(graph.key(), without.key());
  EXPECT_EQ(graph.fingerprint(), without.fingerprint());
  EXPECT_EQ(deserialize(serialize(graph)).key(), graph.key());
}

TEST(Regions, ThatDoNotFitTheirNodesAreRefused) {
  Graph graph = attention_of(DType::f32);
  Region region = graph.regions()[0];
  std::swap(region.inputs[0], region.inputs[2]);
  EXPECT_THROW(check_region(graph, region), Error);
  EXPECT_THROW(graph.mark(region), Error);
  EXPECT_THROW(check_region(graph, {{0}, 1, SoftmaxAttr{9, false}}), Error);
  EXPECT_THROW(check_region(graph, {{5}, 2, SoftmaxAttr{0, false}}), Error);
}

TEST(Regions, AreMarkedByEveryOpThatABackendMayTakeWhole) {
  const auto region_of = [](std::string_view op, std::vector<Shape> shapes, std::vector<NamedValue> parameters = {}) {
    Graph graph;
    std::vector<NodeId> inputs;
    for (const Shape& shape : shapes) inputs.push_back(graph.input("x", DType::f32, shape));
    graph.set_outputs(apply(graph, find_op(op), inputs, parameters));
    return graph.regions().size() == 1 ? region_text(graph.regions()[0].attr) : "";
  };
  EXPECT_EQ(region_of("softmax", {{3, 4}}), "softmax axis 1 log false");
  EXPECT_EQ(region_of("log_softmax", {{3, 4}}, {{"axis", std::int64_t{0}}}), "softmax axis 0 log true");
  EXPECT_EQ(region_of("layer_norm", {{3, 4}, {4}, {4}}), "norm axes 2 eps 1e-05 subtract_mean true");
  EXPECT_EQ(region_of("top_k", {{3, 9}}, {{"k", std::int64_t{2}}}), "top_k axis 1 first 0 count 2 descending true");
  EXPECT_EQ(region_of("median", {{9}}), "top_k axis 0 first 4 count 2 descending false");
  EXPECT_EQ(region_of("cdist", {{3, 4}, {5, 4}}), "cdist p 2");
  EXPECT_NE(region_of("conv_transpose2d", {{1, 3, 5, 5}, {3, 2, 3, 3}}, {{"stride", std::int64_t{2}}}), "");
}

}  // namespace
}  // namespace tenon

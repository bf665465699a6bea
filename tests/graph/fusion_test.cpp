#include "graph/optimize/fusion.h"

#include <gtest/gtest.h>

#include "graph/elementwise.h"
#include "graph/optimize/simplify.h"
#include "tenon/ops.h"

namespace tenon {
namespace {

Plan plan_of(Graph& graph, NodeId output) {
  graph.set_outputs({output});
  graph = simplify(graph);
  return fuse(graph);
}

TEST(Simplify, EqualNodesAreJoined) {
  Graph g;
  const NodeId x = g.input("x", DType::f32, {8});
  const NodeId y = apply(g, "add", {apply(g, "exp", {x})[0], apply(g, "exp", {x})[0]})[0];
  g.set_outputs({y});
  EXPECT_EQ(simplify(g).size(), 3);
}

TEST(Simplify, WhatNoOutputNeedsIsDropped) {
  Graph g;
  const NodeId x = g.input("x", DType::f32, {8});
  apply(g, "exp", {x});
  g.set_outputs({x});
  EXPECT_EQ(simplify(g).size(), 1);
}

TEST(Simplify, UnusedInputsKeepTheirPlace) {
  Graph g;
  g.input("a", DType::f32, {8});
  const NodeId b = g.input("b", DType::f32, {3});
  g.set_outputs({b});
  const Graph s = simplify(g);
  ASSERT_EQ(s.inputs().size(), 2u);
  EXPECT_EQ(s[s.inputs()[1]].shape, (Shape{3}));
}

TEST(Simplify, AxesThatAreNotNeighboursAreReducedOneAfterAnother) {
  Graph g;
  const NodeId x = g.input("x", DType::f32, {2, 3, 4});
  g.set_outputs({g.reduce(ReduceKind::sum, x, 0b101)});
  const Graph s = simplify(g);
  ASSERT_EQ(s.size(), 3);
  EXPECT_EQ(s[1].shape, (Shape{2, 3, 1}));
  EXPECT_EQ(s[2].shape, (Shape{1, 3, 1}));
}

TEST(Simplify, WholePowersUpToTheFourthAreProducts) {
  const auto count_of = [](double exponent, ElementwiseOp op) {
    Graph g;
    g.set_outputs({apply(g, "pow", {g.input("x", DType::f32, {8}), g.literal(exponent)})[0]});
    const Graph s = simplify(g);
    int count = 0;
    for (NodeId id = 0; id < s.size(); ++id)
      count += s[id].prim == Prim::elementwise && s[id].as<ElementwiseAttr>().op == op ? 1 : 0;
    return count;
  };
  EXPECT_EQ(count_of(2, ElementwiseOp::Mul), 1);
  EXPECT_EQ(count_of(3, ElementwiseOp::Mul), 2);
  EXPECT_EQ(count_of(4, ElementwiseOp::Mul), 2);
  for (const double whole : {2.0, 3.0, 4.0}) EXPECT_EQ(count_of(whole, ElementwiseOp::Pow), 0) << whole;
  for (const double other : {-1.0, 0.5, 2.5, 5.0}) EXPECT_EQ(count_of(other, ElementwiseOp::Pow), 1) << other;
}

TEST(Fusion, AChainOfElementwiseOpsIsOneStep) {
  Graph g;
  const NodeId a = g.input("a", DType::f32, {100}), b = g.input("b", DType::f32, {100});
  const NodeId y = apply(g, "gelu", {apply(g, "add", {apply(g, "mul", {a, b})[0], g.literal(0.5)})[0]})[0];
  const Plan plan = plan_of(g, y);
  ASSERT_EQ(plan.steps.size(), 1u);
  EXPECT_EQ(plan.groups[0].nodes.size(), 3u);
  EXPECT_EQ(plan.groups[0].outputs.size(), 1u);
}

TEST(Fusion, SoftmaxIsOneStepOverRows) {
  Graph g;
  const Plan plan = plan_of(g, apply(g, "softmax", {g.input("x", DType::f32, {64, 128})}, {{"axis", std::int64_t{-1}}})[0]);
  ASSERT_EQ(plan.steps.size(), 1u);
  EXPECT_EQ(plan.groups[static_cast<std::size_t>(plan.steps[0].group)].kind, Group::Kind::rows);
}

TEST(Fusion, LayerNormWithWeightsIsOneStepOverRows) {
  Graph g;
  const NodeId x = g.input("x", DType::f32, {64, 128}), w = g.input("w", DType::f32, {128}), b = g.input("b", DType::f32, {128});
  const Plan plan = plan_of(g, apply(g, "layer_norm", {x, w, b})[0]);
  ASSERT_EQ(plan.steps.size(), 1u);
}

TEST(Fusion, ALongRowIsReducedInAStepOfItsOwn) {
  Graph g;
  const Plan plan = plan_of(g, apply(g, "softmax", {g.input("x", DType::f32, {2, 1'000'000})}, {{"axis", std::int64_t{-1}}})[0]);
  EXPECT_GT(plan.steps.size(), 1u);
  for (const Group& group : plan.groups) EXPECT_NE(group.kind, Group::Kind::rows);
}

TEST(Fusion, AGroupNeverDependsOnItselfThroughAnotherStep) {
  // exp(x) feeds both a matmul and the sum with its result: joining them would make the group wait for itself.
  Graph g;
  const NodeId x = g.input("x", DType::f32, {16, 16});
  const NodeId e = apply(g, "exp", {x})[0];
  const NodeId y = apply(g, "add", {e, apply(g, "matmul", {e, x})[0]})[0];
  const Plan plan = plan_of(g, y);
  ASSERT_EQ(plan.steps.size(), 3u);
  EXPECT_GE(plan.steps[0].group, 0);
  EXPECT_GE(plan.steps[1].node, 0);
  EXPECT_GE(plan.steps[2].group, 0);
}

TEST(Fusion, LimitOneTurnsItOff) {
  Graph g;
  const NodeId x = g.input("x", DType::f32, {100});
  g.set_outputs({apply(g, "exp", {apply(g, "neg", {x})[0]})[0]});
  EXPECT_EQ(fuse(simplify(g), {.max_nodes = 1}).steps.size(), 2u);
}

TEST(View, ReshapeOfADenseValueIsAView) {
  Graph g;
  const NodeId x = g.input("x", DType::f32, {4, 6});
  const NodeId r = g.reshape(x, {2, 12});
  const auto view = view_through(g[r], whole_view(x, {4, 6}));
  ASSERT_TRUE(view);
  EXPECT_TRUE(is_dense(*view));
}

TEST(View, ReshapeOfATransposedValueNeedsACopy) {
  Graph g;
  const NodeId x = g.input("x", DType::f32, {4, 6});
  const int perm[] = {1, 0};
  const NodeId t = g.transpose(x, perm);
  const NodeId r = g.reshape(t, {24});
  const auto transposed = view_through(g[t], whole_view(x, {4, 6}));
  ASSERT_TRUE(transposed);
  EXPECT_FALSE(view_through(g[r], *transposed));
}

TEST(View, ReshapeThatOnlySplitsAnAxisFollowsTheStrides) {
  Graph g;
  const NodeId x = g.input("x", DType::f32, {4, 6});
  const int perm[] = {1, 0};
  const NodeId t = g.transpose(x, perm);     // [6, 4], strides 1, 6
  const NodeId r = g.reshape(t, {2, 3, 4});  // strides 3, 1, 6
  const auto view = view_through(g[r], *view_through(g[t], whole_view(x, {4, 6})));
  ASSERT_TRUE(view);
  EXPECT_EQ(view->strides[0], 3);
  EXPECT_EQ(view->strides[1], 1);
  EXPECT_EQ(view->strides[2], 6);
}

TEST(View, ANegativeStepStartsAtTheEnd) {
  Graph g;
  const NodeId x = g.input("x", DType::f32, {5});
  const std::int64_t start[] = {4}, extent[] = {5}, step[] = {-1};
  const NodeId s = g.slice(x, start, extent, step);
  const auto view = view_through(g[s], whole_view(x, {5}));
  EXPECT_EQ(view->offset, 4);
  EXPECT_EQ(view->strides[0], -1);
}

}  // namespace
}  // namespace tenon

#include "tenon/graph.h"

#include <gtest/gtest.h>

#include "graph/elementwise.h"
#include "tenon/error.h"

namespace tenon {
namespace {

template <class Call>
Error error_of(Call call) {
  try {
    call();
  } catch (const Error& e) {
    return e;
  }
  return Error(ErrorCode::ok, "nothing was thrown");
}

NodeId add(Graph& g, NodeId a, NodeId b) {
  const NodeId operands[] = {a, b};
  return g.elementwise(ElementwiseOp::Add, operands);
}

TEST(Graph, OperandsAreBroadcastAndPromoted) {
  Graph g;
  const NodeId y = add(g, g.input("a", DType::bf16, {3, 1}), g.input("b", DType::f32, {4}));
  EXPECT_EQ(g[y].shape, (Shape{3, 4}));
  EXPECT_EQ(g[y].dtype, DType::f32);
}

TEST(Graph, ALiteralTakesTheTypeItMeets) {
  Graph g;
  const NodeId half = g.input("h", DType::bf16, {2}), integer = g.input("i", DType::i16, {2}),
               flag = g.input("b", DType::boolean, {2});
  EXPECT_EQ(g[add(g, half, g.literal(0.5))].dtype, DType::bf16);
  EXPECT_EQ(g[add(g, integer, g.literal(std::int64_t{2}))].dtype, DType::i16);
  EXPECT_EQ(g[add(g, integer, g.literal(0.5))].dtype, DType::f32);
  EXPECT_EQ(g[add(g, flag, g.literal(std::int64_t{1}))].dtype, DType::i64);
}

TEST(Graph, ALiteralMeetsF64Unrounded) {
  Graph g;
  const NodeId y = add(g, g.input("x", DType::f64, {}), g.literal(0.1));
  const NodeId constant = g[y].inputs[1];
  EXPECT_EQ(g[constant].as<ConstantAttr>().value.value(0), 0.1);
}

TEST(Graph, LiteralsAloneAreF32AndI64AsOutputs) {
  Graph g;
  g.set_outputs(
      {add(g, g.literal(0.5), g.literal(std::int64_t{1})), add(g, g.literal(std::int64_t{1}), g.literal(std::int64_t{1}))});
  EXPECT_EQ(g[g.outputs()[0]].dtype, DType::f32);
  EXPECT_EQ(g[g.outputs()[1]].dtype, DType::i64);
}

TEST(Graph, ShapesThatDoNotMatchAreNamed) {
  Graph g;
  const NodeId a = g.input("a", DType::f32, {2, 3}), b = g.input("b", DType::f32, {4});
  const Error e = error_of([&] { add(g, a, b); });
  EXPECT_EQ(e.code(), ErrorCode::invalid_argument);
  EXPECT_NE(std::string(e.what()).find("[2, 3]"), std::string::npos);
  EXPECT_NE(std::string(e.what()).find("[4]"), std::string::npos);
}

TEST(Graph, MatmulNamesTheInnerExtentsThatDiffer) {
  Graph g;
  const NodeId a = g.input("a", DType::f32, {2, 3}), b = g.input("b", DType::f32, {4, 5});
  const Error e = error_of([&] { g.matmul(a, b); });
  EXPECT_EQ(e.code(), ErrorCode::invalid_argument);
  EXPECT_NE(std::string(e.what()).find("3 and 4"), std::string::npos);
}

TEST(Graph, SumsOfSmallIntegersAreFormedIn64Bits) {
  Graph g;
  EXPECT_EQ(g[g.reduce(ReduceKind::sum, g.input("a", DType::i8, {4}), 1)].dtype, DType::i64);
  EXPECT_EQ(g[g.reduce(ReduceKind::sum, g.input("b", DType::u8, {4}), 1)].dtype, DType::u64);
  EXPECT_EQ(g[g.reduce(ReduceKind::max, g.input("c", DType::i8, {4}), 1)].dtype, DType::i8);
}

TEST(Graph, TheMaximumOfNothingIsRefused) {
  Graph g;
  const NodeId x = g.input("x", DType::f32, {3, 0});
  EXPECT_EQ(error_of([&] { g.reduce(ReduceKind::max, x, 2); }).code(), ErrorCode::invalid_argument);
  EXPECT_EQ(g[g.reduce(ReduceKind::sum, x, 2)].shape, (Shape{3, 1}));
}

TEST(Graph, ASliceThatLeavesItsAxisIsRefused) {
  Graph g;
  const NodeId x = g.input("x", DType::f32, {5});
  const std::int64_t start[] = {3}, extent[] = {3}, step[] = {1};
  EXPECT_EQ(error_of([&] { g.slice(x, start, extent, step); }).code(), ErrorCode::out_of_range);
}

TEST(Graph, AnEnormousShapeIsRefusedBeforeAnythingIsAllocated) {
  Graph g;
  const NodeId x = g.input("x", DType::f32, {1});
  const Error e = error_of([&] { g.broadcast(x, Shape{1'000'000, 1'000'000, 1'000'000}); });
  EXPECT_EQ(e.code(), ErrorCode::resource_exhausted);
}

TEST(Graph, EqualProgramsHaveEqualText) {
  const auto build = [](double c) {
    Graph g;
    g.set_outputs({add(g, g.input("x", DType::f32, {2}), g.literal(c))});
    return g.text();
  };
  EXPECT_EQ(build(0.5), build(0.5));
  EXPECT_NE(build(0.5), build(0.25));
}

}  // namespace
}  // namespace tenon

#include "model/onnx/import/fixed_values.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "reference/reference.h"
#include "tenon/ops.h"

namespace tenon::onnx {
namespace {

HostArray numbers(const Shape& shape, double first) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < shape.elements(); ++i) values.push_back(first + static_cast<double>(i % 7) / 4);
  return HostArray::from<double>(shape, values).cast(DType::f32);
}

// Runs both parts and compares with the whole.
void expect_same(const Graph& whole, const SeparatedGraph& parts, const std::vector<HostArray>& inputs) {
  std::vector<HostArray> weights, given;
  for (const int input : parts.weights) weights.push_back(inputs[static_cast<std::size_t>(input)]);
  const std::vector<HostArray> fixed = reference_run(parts.fixed, weights);
  for (const int input : parts.inputs)
    given.push_back(input >= 0 ? inputs[static_cast<std::size_t>(input)] : fixed[static_cast<std::size_t>(-1 - input)]);
  const std::vector<HostArray> expected = reference_run(whole, inputs), found = reference_run(parts.rest, given);
  ASSERT_EQ(expected.size(), found.size());
  // Between the two parts values are rounded to f32.
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const std::vector<double> a = expected[i].to_doubles(), b = found[i].to_doubles();
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t k = 0; k < a.size(); ++k) EXPECT_NEAR(a[k], b[k], 1e-5 * (1 + std::abs(a[k])));
  }
}

TEST(FixedValues, WhatWeightsMakeIsAProgramOfItsOwn) {
  Graph g;
  const NodeId w = g.input("w", DType::f32, {16, 32}), x = g.input("x", DType::f32, {4, 32}),
               v = g.input("v", DType::f32, {16, 1});
  const NodeId scaled = apply(g, "mul", {w, apply(g, "exp", {v})[0]})[0];
  const int swapped[] = {1, 0};
  const NodeId y = g.matmul(x, g.transpose(scaled, swapped), {});
  g.set_outputs({apply(g, "add", {y, apply(g, "sum", {y})[0]})[0], scaled});
  const auto parts = separate_fixed(g, {true, false, true});
  ASSERT_TRUE(parts);
  EXPECT_EQ(parts->fixed.inputs().size(), 2u);
  EXPECT_EQ(parts->fixed.outputs().size(), 1u);
  EXPECT_EQ(parts->rest.inputs().size(), 2u);
  EXPECT_EQ(std::ranges::count_if(parts->inputs, [](int i) { return i < 0; }), 1);
  expect_same(g, *parts, {numbers({16, 32}, -1), numbers({4, 32}, 0.5), numbers({16, 1}, -0.5)});
}

TEST(FixedValues, RegionsStayWhereTheirResultIs) {
  Graph g;
  const NodeId x = g.input("x", DType::f32, {1, 16, 5, 5}), w = g.input("w", DType::f32, {16, 8, 2, 2});
  const NodeId doubled = apply(g, "mul", {w, g.literal(2.0)})[0];
  g.set_outputs({apply(g, "conv_transpose2d", {x, doubled}, {{"stride", std::int64_t{2}}})[0]});
  ASSERT_EQ(g.regions().size(), 1u);
  const auto parts = separate_fixed(g, {false, true});
  ASSERT_TRUE(parts);
  ASSERT_EQ(parts->rest.regions().size(), 1u);
  EXPECT_EQ(parts->rest[parts->rest.regions()[0].inputs[1]].prim, Prim::input);
  expect_same(g, *parts, {numbers({1, 16, 5, 5}, 0), numbers({16, 8, 2, 2}, 1)});
}

TEST(FixedValues, ViewsSmallAndLargeResultsAndIntegersStay) {
  Graph g;
  const NodeId x = g.input("x", DType::f32, {100, 8}), w = g.input("w", DType::f32, {8, 100}),
               b = g.input("b", DType::i8, {100, 100}), s = g.input("s", DType::f32, {32});
  const int swapped[] = {1, 0};
  const NodeId view = apply(g, "add", {x, g.transpose(w, swapped)})[0];
  const NodeId small = apply(g, "add", {view, apply(g, "sum", {apply(g, "exp", {s})[0]})[0]})[0];
  const NodeId bytes = apply(g, "sub", {g.cast(b, DType::f32), g.literal(3.0)})[0];
  const NodeId large = g.matmul(g.transpose(w, swapped), w, {});  // more elements than the weights have
  g.set_outputs({g.matmul(apply(g, "add", {bytes, large})[0], small, {})});
  EXPECT_FALSE(separate_fixed(g, {false, true, true, true}));
}

}  // namespace
}  // namespace tenon::onnx

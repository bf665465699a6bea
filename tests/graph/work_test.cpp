#include "graph/work.h"

#include <gtest/gtest.h>

#include "tenon/expression.h"

namespace tenon {
namespace {

Cost cost_of(const char* source) {
  return cost(parse_expression(source, {{"x", DType::f32, {4, 8}}, {"h", DType::bf16, {100}}, {"w", DType::f32, {8, 3}}}));
}

TEST(Cost, ReadsEachInputOnceAndWritesTheOutputs) {
  EXPECT_EQ(cost_of("x * x + x").bytes_read, 4u * 32);
  EXPECT_EQ(cost_of("x > 0").bytes_written, 32u);
  EXPECT_EQ(cost_of("h, h + 1").bytes_written, 2u * 200);
  EXPECT_EQ(cost_of("h + 1").bytes_read, 200u);
}

TEST(Cost, WhatNoOutputNeedsIsFree) {
  EXPECT_EQ(cost_of("t = x @ w; h + 1").flops, 100);
  EXPECT_EQ(cost_of("t = x @ w; h + 1").bytes_read, 200u);
}

TEST(Cost, CountsOperationsByKind) {
  EXPECT_EQ(cost_of("x * 2 + 1").flops, 2 * 32);
  EXPECT_EQ(cost_of("x @ w").flops, 2 * 4 * 8 * 3);
  EXPECT_EQ(cost_of("sum(x)").flops, 32);
  EXPECT_EQ(cost_of("x.T[1:3]").flops, 0);
  EXPECT_EQ(cost_of("conv1d(reshape(x, [1, 4, 8]), ones([2, 4, 3]))").flops, 2 * (1 * 2 * 6) * (4 * 3));
}

TEST(Cost, ConstantTensorsAreReadButNumbersAreNot) {
  EXPECT_EQ(cost_of("h + 0.5").bytes_read + 8 * 3, cost_of("h[:3] + [1, 2, 3]").bytes_read);
}

}  // namespace
}  // namespace tenon

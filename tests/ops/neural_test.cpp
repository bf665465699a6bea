// Attention, quantization and losses: the rules beside the values, which composed_golden_test.cpp checks.
#include <gtest/gtest.h>

#include <cmath>

#include "expression/expression_testing.h"

namespace tenon {
namespace {

using namespace tenon::testing;

TEST(Attention, RowsWithoutAKeyGiveZeros) {
  const std::string q = "[[1.0, 0.0]]", k = "[[1.0, 0.0], [0.0, 1.0]]", v = "[[1.0], [2.0]]";
  EXPECT_EQ(values("sdpa(" + q + ", " + k + ", " + v + ", [[0, 0]] > 0)"), (std::vector<double>{0}));
  EXPECT_EQ(values("sdpa(" + q + ", " + k + ", " + v + ", [[0, 1]] > 0)"), (std::vector<double>{2}));
}

TEST(Attention, HeadsOfKeysAndValuesBroadcast) {
  EXPECT_EQ(to_string(run("sdpa(ones([2, 8, 3, 4]), ones([2, 1, 5, 4]), ones([2, 1, 5, 6]))").shape()), "[2, 8, 3, 6]");
}

TEST(Attention, WhatDoesNotFitIsRefused) {
  for (const char* source :
       {"sdpa(ones([2, 3]), ones([2, 4]), ones([2, 3]))", "sdpa(ones([2, 3]), ones([2, 3]), ones([3, 3]))",
        "sdpa(ones([2, 3]), ones([2, 3]), ones([2, 3]), ones([3, 3]))", "sdpa(ones([3]), ones([3]), ones([3]))",
        "sdpa(ones([2, 3]), ones([0, 3]), ones([0, 3]))", "rope(ones([2, 3]))", "rope(ones([4]))",
        "rope(ones([2, 4]), [1, 2, 3])", "embedding([0], [1.0, 2.0])", "embedding([0.5], [[1.0]])"})
    EXPECT_EQ(error_of(source).code(), ErrorCode::invalid_argument) << source;
}

TEST(Rope, KeepsLengthsAndTheFirstPosition) {
  EXPECT_EQ(values("x = [[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]; rope(x)[0]"), (std::vector<double>{1, 2, 3, 4}));
  EXPECT_NEAR(value("norm(rope(cast([[0, 0, 3, 4]], float64), offset=123456))"), 5, 1e-12);
}

TEST(Rope, FarPositionsTurnAsPreciselyAsNearOnes) {
  // cos(100000.5) in double; an f32 angle would be off in the third digit.
  const double a = value("rope([[1.0, 0.0]], offset=100000.5)[0, 0]");
  EXPECT_NEAR(a, std::cos(100000.5), 1e-7);
}

TEST(Quantization, RoundTripIsWithinHalfAStep) {
  const std::string x = "linspace(-3, 3, 101)";
  EXPECT_LE(value("max(abs(dequantize(quantize(" + x + ", 0.05), 0.05) - " + x + "))"), 0.0250001);
  EXPECT_EQ(run("quantize([1.0], 0.1, dtype=\"uint8\")").dtype(), DType::u8);
  EXPECT_EQ(run("dequantize(quantize([1.0], 0.1), 0.1)").dtype(), DType::f32);
}

TEST(Quantization, ScaleAndZeroPointAreChecked) {
  for (const char* source :
       {"quantize([1.0], 0)", "quantize([1.0], -1)", "quantize([1.0], inf)", "quantize([1.0], 0.1, 200)",
        "quantize([1.0], 0.1, -1, dtype=\"uint8\")", "quantize([1.0], 0.1, dtype=\"int16\")", "dequantize([1], 0.1)"})
    EXPECT_EQ(error_of(source).code(), ErrorCode::invalid_argument) << source;
}

TEST(Losses, PerfectPredictionsCostNothing) {
  EXPECT_EQ(value("mse_loss([1.0, 2.0], [1.0, 2.0])"), 0);
  EXPECT_EQ(value("binary_cross_entropy([1.0, 0.0], [1.0, 0.0])"), 0);
  EXPECT_EQ(value("cross_entropy([[1000.0, 0.0]], [0])"), 0);
  EXPECT_EQ(value("cross_entropy([[1000.0, 0.0]], [1])"), 1000);
}

TEST(Losses, ShapesMustAgree) {
  EXPECT_EQ(error_of("mse_loss([1.0], [1.0, 2.0])").code(), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of("cross_entropy([[1.0, 2.0]], [0, 1])").code(), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of("cross_entropy([[1.0, 2.0]], [0.5])").code(), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of("mse_loss([1.0], [1.0], reduction=\"median\")").code(), ErrorCode::invalid_argument);
}

TEST(Gates, NeedAnEvenExtent) { EXPECT_EQ(error_of("glu([1.0, 2.0, 3.0])").code(), ErrorCode::invalid_argument); }

}  // namespace
}  // namespace tenon

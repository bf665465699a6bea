// Reductions and norms: types, empty tensors, extreme values, and what is refused. Values: composed_golden_test.cpp.
#include <gtest/gtest.h>

#include <cmath>

#include "expression/expression_testing.h"

namespace tenon {
namespace {

using namespace tenon::testing;

TEST(Reduction, SumsOfSmallIntegersAreSixtyFourBits) {
  EXPECT_EQ(run("sum(cast([100, 100], int8))").dtype(), DType::i64);
  EXPECT_EQ(value("sum(cast([100, 100], int8))"), 200);
  EXPECT_EQ(run("sum(cast([200, 200], uint8))").dtype(), DType::u64);
  EXPECT_EQ(run("sum([1, 2] > 1)").dtype(), DType::i64);
  EXPECT_EQ(run("cumsum(cast([100, 100], int8))").dtype(), DType::i64);
}

TEST(Reduction, FloatsKeepTheirType) {
  for (const char* dtype : {"float16", "bfloat16", "float32", "float64"})
    for (const char* op : {"sum", "mean", "max", "var", "norm", "softmax", "layer_norm", "logsumexp"}) {
      const std::string source = std::string(op) + "(cast([1, 2], " + dtype + "))";
      EXPECT_EQ(name(run(source).dtype()), dtype) << source;
    }
}

TEST(Reduction, MeansOfIntegersAreFloats) {
  EXPECT_EQ(run("mean([1, 2])").dtype(), DType::f32);
  EXPECT_EQ(value("mean([1, 2])"), 1.5);
}

TEST(Reduction, AxesAreNamedFromEitherEndAndOnce) {
  EXPECT_EQ(values("sum([[1, 2], [3, 4]], axis=-2)"), (std::vector<double>{4, 6}));
  EXPECT_EQ(to_string(run("sum([[1, 2], [3, 4]], axis=[0, 1], keepdims=true)").shape()), "[1, 1]");
  EXPECT_EQ(error_of("sum([[1, 2]], axis=2)").code(), ErrorCode::out_of_range);
  EXPECT_EQ(error_of("sum([[1, 2]], axis=[0, -2])").code(), ErrorCode::invalid_argument);
}

TEST(Reduction, AScalarReducesToItself) {
  EXPECT_EQ(value("sum(3.0)"), 3);
  EXPECT_EQ(value("max(3.0)"), 3);
  EXPECT_EQ(value("argmax(3.0)"), 0);
  EXPECT_EQ(value("softmax(3.0)"), 1);
  EXPECT_EQ(value("norm(-3.0)"), 3);
}

TEST(Reduction, NothingHasASumButNoMaximum) {
  EXPECT_EQ(value("sum(zeros([0]))"), 0);
  EXPECT_EQ(value("prod(zeros([0]))"), 1);
  EXPECT_EQ(value("norm(zeros([0]))"), 0);
  EXPECT_TRUE(std::isnan(value("mean(zeros([0]))")));
  EXPECT_EQ(value("logsumexp(zeros([0]))"), -HUGE_VAL);
  EXPECT_EQ(to_string(run("softmax(zeros([3, 0]))").shape()), "[3, 0]");
  EXPECT_EQ(to_string(run("max(zeros([0, 3]), axis=1)").shape()), "[0]");
  for (const char* source : {"max(zeros([0]))", "min(zeros([2, 0]), axis=1)", "argmax(zeros([0]))", "median(zeros([0]))"})
    EXPECT_EQ(error_of(source).code(), ErrorCode::invalid_argument) << source;
}

TEST(Reduction, VarianceOfOneElementHasNoDegreesOfFreedom) {
  EXPECT_TRUE(std::isnan(value("var([5.0])")));
  EXPECT_EQ(value("var([5.0], correction=0)"), 0);
}

TEST(Reduction, VarianceDoesNotCancel) { EXPECT_NEAR(value("var(arange(3, dtype=float64) + 1e9)"), 1, 1e-9); }

TEST(Normalization, SoftmaxOfHugeAndMaskedScoresStaysDefined) {
  EXPECT_EQ(values("softmax([1e30, 0.0])"), (std::vector<double>{1, 0}));
  EXPECT_EQ(values("softmax([-inf, 0.0, 0.0])"), (std::vector<double>{0, 0.5, 0.5}));
  EXPECT_EQ(value("logsumexp([-inf, -inf])"), -HUGE_VAL);
}

TEST(Normalization, ConstantRowsNormalizeToZero) {
  EXPECT_EQ(values("layer_norm([[5.0, 5.0, 5.0]])"), (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(values("normalize([0.0, 0.0])"), (std::vector<double>{0, 0}));
}

TEST(Normalization, WeightsMustFit) {
  EXPECT_EQ(error_of("layer_norm([[1.0, 2.0]], [1.0, 2.0, 3.0])").code(), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of("batch_norm([[1.0, 2.0]], [1.0], [1.0, 1.0])").code(), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of("group_norm([[1.0, 2.0, 3.0]], groups=2)").code(), ErrorCode::invalid_argument);
  const ExpressionError error = error_of("batch_norm([[1.0, 2.0]], [1.0], [1.0, 1.0])");
  EXPECT_NE(error.message().find("batch_norm"), std::string::npos);
  EXPECT_NE(error.message().find("1 elements, but there are 2 channels"), std::string::npos) << error.message();
}

TEST(Order, TopKGivesValuesAndPlaces) {
  const auto results = run_all("top_k([3, 9, 1, 9], 2)");
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].to_doubles(), (std::vector<double>{9, 9}));
  EXPECT_EQ(results[1].to_doubles(), (std::vector<double>{1, 3}));
  EXPECT_EQ(error_of("top_k([1, 2], 3)").code(), ErrorCode::invalid_argument);
}

TEST(Order, RunningSumsAndProductsOfIntegersWrapIn64Bits) {
  EXPECT_EQ(values("cumprod([1, 2, 3, 4])"), (std::vector<double>{1, 2, 6, 24}));
  EXPECT_EQ(to_string(run("cumsum(zeros([0, 2]), axis=0)").shape()), "[0, 2]");
}

}  // namespace
}  // namespace tenon

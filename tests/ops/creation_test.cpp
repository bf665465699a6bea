// Creation ops: types, bounds and reproducible random numbers. Values: composed_golden_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "expression/expression_testing.h"

namespace tenon {
namespace {

using namespace tenon::testing;

TEST(Creation, TypesAreFloat32UnlessAskedFor) {
  EXPECT_EQ(run("zeros([2])").dtype(), DType::f32);
  EXPECT_EQ(run("full([2], 3, dtype=int8)").dtype(), DType::i8);
  EXPECT_EQ(run("eye(2, dtype=bool)").dtype(), DType::boolean);
  EXPECT_EQ(run("arange(3)").dtype(), DType::i64);
  EXPECT_EQ(run("arange(0, 1, 0.5)").dtype(), DType::f32);
  EXPECT_EQ(run("zeros_like(cast([1], bfloat16))").dtype(), DType::bf16);
  EXPECT_EQ(run("randint([2], 0, 9, dtype=uint8)").dtype(), DType::u8);
}

TEST(Creation, EveryTypeCanBeMade) {
  for (DType dtype : all_dtypes()) {
    const std::string t(name(dtype));
    EXPECT_EQ(values("ones([3], " + t + ")"), (std::vector<double>{1, 1, 1})) << t;
    EXPECT_EQ(run("arange(2, dtype=" + t + ")").dtype(), dtype);
  }
}

TEST(Creation, EndsOfRangesAreExact) {
  const std::vector<double> v = values("linspace(0.1, 0.7, 1001, dtype=float64)");
  EXPECT_EQ(v.front(), 0.1);
  EXPECT_EQ(v.back(), 0.7);
  EXPECT_TRUE(std::is_sorted(v.begin(), v.end()));
}

TEST(Creation, ImpossibleRangesAreRefused) {
  for (const char* source :
       {"arange(0, 1, 0)", "arange(0, inf)", "arange(nan)", "linspace(0, inf, 3)", "linspace(0, 1, -1)", "randint([2], 5, 5)",
        "rand([2], dtype=int32)", "rand([2], seed=-1)", "uniform([2], 1, 0)", "bernoulli([2], p=1.5)", "zeros([-1])", "eye(-1)"})
    EXPECT_EQ(error_of(source).code(), ErrorCode::invalid_argument) << source;
}

TEST(Creation, EnormousTensorsAreRefusedWithASentence) {
  for (const char* source : {"zeros([1000000, 1000000])", "arange(1e13)", "rand([1000000000000])", "eye(1000000000)"}) {
    const ErrorCode code = error_of(source).code();
    EXPECT_TRUE(code == ErrorCode::resource_exhausted || code == ErrorCode::invalid_argument) << source;
  }
}

TEST(Creation, RandomNumbersFollowTheirSeed) {
  EXPECT_EQ(values("rand([8], seed=3)"), values("rand([8], seed=3)"));
  EXPECT_NE(values("rand([8], seed=3)"), values("rand([8], seed=4)"));
  EXPECT_NE(values("rand([8], seed=3)"), values("randn([8], seed=3)"));
}

TEST(Creation, RandomNumbersKeepTheirBounds) {
  for (double x : values("randint([1000], -3, 4, seed=1)")) {
    EXPECT_GE(x, -3);
    EXPECT_LE(x, 3);
    EXPECT_EQ(x, std::floor(x));
  }
  for (double x : values("uniform([1000], 2, 5, seed=1)")) {
    EXPECT_GE(x, 2);
    EXPECT_LT(x, 5);
  }
  const std::vector<double> ones = values("bernoulli([10000], p=0.2, seed=1)");
  EXPECT_NEAR(static_cast<double>(std::count(ones.begin(), ones.end(), 1.0)), 2000, 150);
}

TEST(Creation, APermutationHasEveryNumberOnce) {
  const std::vector<double> p = values("randperm(100, seed=5)");
  EXPECT_EQ(std::set<double>(p.begin(), p.end()).size(), 100u);
  EXPECT_FALSE(std::is_sorted(p.begin(), p.end()));
}

}  // namespace
}  // namespace tenon

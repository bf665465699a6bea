// Convolution and pooling: shapes, types, and what is refused. Values: composed_golden_test.cpp.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "expression/expression_testing.h"

namespace tenon {
namespace {

using namespace tenon::testing;

TEST(Convolution, ABatchAxisMayBeLeftOut) {
  EXPECT_EQ(to_string(run("conv2d(ones([3, 5, 5]), ones([2, 3, 3, 3]))").shape()), "[2, 3, 3]");
  EXPECT_EQ(to_string(run("max_pool2d(ones([3, 4, 4]), 2)").shape()), "[3, 2, 2]");
}

TEST(Convolution, HalfFloatsStayHalf) {
  EXPECT_EQ(run("conv1d(ones([1, 1, 3], bfloat16), ones([1, 1, 2], bfloat16))").dtype(), DType::bf16);
  EXPECT_EQ(run("avg_pool1d(ones([1, 1, 4], float16), 3, padding=1, count_include_pad=false)").dtype(), DType::f16);
  EXPECT_EQ(run("adaptive_avg_pool1d(ones([1, 1, 5], bfloat16), 3)").dtype(), DType::bf16);
}

TEST(Convolution, TransposedUndoesTheShapeOfAConvolution) {
  for (const char* options : {"stride=2, padding=1", "stride=2", "padding=2", "stride=[2, 1], padding=[0, 1]"}) {
    const std::string forward = std::string("conv2d(ones([1, 2, 7, 7]), ones([3, 2, 3, 3]), ") + options + ")";
    const std::string back = "conv_transpose2d(" + forward + ", ones([3, 2, 3, 3]), " + options + ")";
    EXPECT_EQ(to_string(run(back).shape()), "[1, 2, 7, 7]") << options;
  }
}

TEST(Convolution, WhatDoesNotFitIsRefused) {
  for (const char* source : {
           "conv2d(ones([1, 3, 5, 5]), ones([2, 2, 3, 3]))",            // channels
           "conv2d(ones([1, 4, 5, 5]), ones([3, 2, 3, 3]), groups=2)",  // groups do not divide outputs
           "conv2d(ones([1, 1, 2, 2]), ones([1, 1, 3, 3]))",            // kernel larger than the image
           "conv2d(ones([5, 5]), ones([1, 1, 3, 3]))",                  // no channels
           "conv1d(ones([1, 1, 5]), ones([1, 1, 3]), ones([2]))",       // bias
           "conv2d(ones([1, 1, 5, 5]), ones([1, 1, 3, 3]), stride=[1, 1, 1])",
           "conv1d(ones([1, 1, 5]), ones([1, 1, 3]), stride=0)",
           "conv_transpose1d(ones([1, 1, 2]), ones([1, 1, 2]), padding=9)",
           "conv_transpose1d(ones([1, 1, 2]), ones([1, 1, 2]), output_padding=1)",
           "max_pool1d(ones([1, 1, 4]), 2, padding=2)",  // a window of padding alone
           "max_pool1d(ones([1, 1, 4]), 5)",
           "adaptive_avg_pool1d(ones([1, 1, 0]), 2)",
           "adaptive_avg_pool1d(ones([1, 1, 4]), 0)",
           "pixel_shuffle(ones([1, 3, 2, 2]), 2)",
       })
    EXPECT_EQ(error_of(source).code(), ErrorCode::invalid_argument) << source;
}

TEST(Convolution, EnormousParametersAreRefusedWithoutAllocating) {
  for (const char* source : {
           "conv_transpose1d(ones([1, 1, 100000]), ones([1, 1, 3]), stride=2000000000)",
           "avg_pool3d(ones([1, 1, 1, 1, 1]), 2000000000, padding=1999999999, stride=1, count_include_pad=false)",
           "adaptive_avg_pool1d(ones([1, 1, 60000000000]), 7)",
           "upsample_nearest(ones([1, 1, 65536, 65536, 65536]), 65536)",
       }) {
    try {
      run(source);
      ADD_FAILURE() << source << " was accepted";
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == ErrorCode::resource_exhausted || error.code() == ErrorCode::invalid_argument) << source;
    }
  }
}

TEST(Pooling, IntegersHaveMaximaAndMeans) {
  EXPECT_EQ(run("max_pool1d([[[-3, -2, -5, -9]]], 2)").dtype(), DType::i64);
  EXPECT_EQ(values("max_pool1d([[[-3, -2, -5, -9]]], 3, stride=1, padding=1)"), (std::vector<double>{-2, -2, -2, -5}));
  EXPECT_EQ(run("avg_pool1d([[[1, 2]]], 2)").dtype(), DType::f32);
  EXPECT_EQ(value("avg_pool1d([[[1, 2]]], 2)"), 1.5);
}

// Their middle is read where it is, and only what is around it is looked up.
TEST(Pooling, LongAdaptiveWindowsHoldEveryElementOnce) {
  for (const std::int64_t in : {449, 1000, 1001, 2053})
    for (const std::int64_t out : {3, 6, 7}) {
      const std::string x = fmt::format("reshape(sin(arange({0}) * 1.0), [1, 1, {0}])", in);
      const std::vector<double> elements = values(x), means = values(fmt::format("adaptive_avg_pool1d({}, {})", x, out)),
                                largest = values(fmt::format("adaptive_max_pool1d({}, {})", x, out));
      ASSERT_EQ(means.size(), static_cast<std::size_t>(out));
      for (std::int64_t i = 0; i < out; ++i) {
        const auto first = elements.begin() + i * in / out, end = elements.begin() + ((i + 1) * in + out - 1) / out;
        const double mean = std::accumulate(first, end, 0.0) / static_cast<double>(end - first);
        EXPECT_NEAR(means[static_cast<std::size_t>(i)], mean, 1e-6) << in << " to " << out << ", window " << i;
        EXPECT_EQ(largest[static_cast<std::size_t>(i)], *std::max_element(first, end)) << in << " to " << out << ", window " << i;
      }
    }
}

}  // namespace
}  // namespace tenon

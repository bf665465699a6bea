// The ops as functions: the generated ones mean what the catalogue says.
#include "tenon/tensor/functions.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tenon/error.h"
#include "tenon/expression.h"

namespace tenon {
namespace {

using Doubles = std::vector<double>;

// What an expression of the language gives, whose parser reads the catalogue itself.
HostArray expected(std::string_view source, const std::vector<std::pair<std::string, Tensor>>& inputs) {
  std::vector<NamedType> types;
  std::vector<HostArray> arrays;
  for (const auto& [name, tensor] : inputs) {
    types.push_back({name, tensor.dtype(), tensor.shape()});
    arrays.push_back(tensor.to_host());
  }
  return process_manager().run(parse_expression(source, types), arrays).outputs.at(0);
}

void expect_equal(const Tensor& got, const HostArray& wanted) {
  EXPECT_EQ(got.dtype(), wanted.dtype());
  EXPECT_EQ(got.shape(), wanted.shape());
  const Doubles g = got.to_host().to_doubles(), w = wanted.to_doubles();
  ASSERT_EQ(g.size(), w.size());
  for (std::size_t i = 0; i < g.size(); ++i) EXPECT_TRUE(g[i] == w[i] || (std::isnan(g[i]) && std::isnan(w[i]))) << i;
}

class Functions : public testing::Test {
 protected:
  const Tensor x = randn({4, 6}, DType::f32, 1), y = randn({4, 6}, DType::f32, 2), w = randn({3, 6}, DType::f32, 3);
  const Tensor bias = randn({3}, DType::f32, 4);
  const Tensor image = randn({1, 4, 6, 6}, DType::f32, 5), kernel = randn({4, 2, 3, 3}, DType::f32, 6);
};

TEST_F(Functions, OfEveryKindOfParameterMeanWhatTheLanguageMeans) {
  expect_equal(softmax(x, 0), expected("softmax(x, axis=0)", {{"x", x}}));
  expect_equal(softmax(x), expected("softmax(x)", {{"x", x}}));
  expect_equal(gelu(x, "tanh"), expected("gelu(x, approximate='tanh')", {{"x", x}}));
  expect_equal(clamp(x, -0.5, 0.5), expected("clamp(x, -0.5, 0.5)", {{"x", x}}));
  expect_equal(clamp(x, std::nullopt, 0.5), expected("clamp(x, max=0.5)", {{"x", x}}));
  expect_equal(sum(x), expected("sum(x)", {{"x", x}}));
  expect_equal(sum(x, 0), expected("sum(x, 0)", {{"x", x}}));
  expect_equal(mean(x, {0, 1}, true), expected("mean(x, axis=[0, 1], keepdims=true)", {{"x", x}}));
  expect_equal(cast(x, DType::bf16), expected("cast(x, bfloat16)", {{"x", x}}));
  expect_equal(full({2, 3}, 7), expected("full([2, 3], 7)", {}));
  expect_equal(arange(0, 5, 2), expected("arange(0, 5, 2)", {}));
  expect_equal(eye(3), expected("eye(3)", {}));
  expect_equal(hardshrink(x, 0.3), expected("hardshrink(x, 0.3)", {{"x", x}}));
  expect_equal(argmax(x, 1), expected("argmax(x, 1)", {{"x", x}}));
  expect_equal(pad(x, {1, 2}, "constant", 3), expected("pad(x, [1, 2], value=3)", {{"x", x}}));
}

TEST_F(Functions, TakeOptionalInputs) {
  expect_equal(linear(x, w), expected("linear(x, w)", {{"x", x}, {"w", w}}));
  expect_equal(linear(x, w, bias), expected("linear(x, w, b)", {{"x", x}, {"w", w}, {"b", bias}}));
  expect_equal(conv2d(image, kernel, {}, 1, {1, 1}, 1, 2),
               expected("conv2d(x, w, padding=[1, 1], groups=2)", {{"x", image}, {"w", kernel}}));
  expect_equal(group_norm(image, 2), expected("group_norm(x, groups=2)", {{"x", image}}));
  expect_equal(heaviside(x), expected("heaviside(x)", {{"x", x}}));
  expect_equal(heaviside(x, y), expected("heaviside(x, y)", {{"x", x}, {"y", y}}));
}

TEST_F(Functions, TakeListsOfInputs) {
  expect_equal(concat({x, y}, 1), expected("concat(x, y, axis=1)", {{"x", x}, {"y", y}}));
  expect_equal(stack({x, y}), expected("stack(x, y)", {{"x", x}, {"y", y}}));
  expect_equal(einsum("ij,kj->ik", {x, w}), expected("einsum('ij,kj->ik', x, w)", {{"x", x}, {"w", w}}));
}

TEST_F(Functions, WithSeveralResultsGiveAList) {
  const std::vector<Tensor> top = top_k(x, 2);
  ASSERT_EQ(top.size(), 2U);
  EXPECT_EQ(top[1].dtype(), DType::i64);
  expect_equal(top[0], expected("top_k(x, 2)[0]", {{"x", x}}));
  const std::vector<Tensor> halves = split(x, {2, 2});
  ASSERT_EQ(halves.size(), 2U);
  expect_equal(halves[1], expected("split(x, [2, 2])[1]", {{"x", x}}));
  EXPECT_EQ(chunk(x, 3, 1).size(), 3U);
}

TEST_F(Functions, TakeNumbersAsTensors) {
  expect_equal(maximum(x, 0), expected("maximum(x, 0)", {{"x", x}}));
  expect_equal(where(x > 0, x, -1), expected("where(x > 0, x, -1)", {{"x", x}}));
  expect_equal(pow(x, 2), expected("pow(x, 2)", {{"x", x}}));
}

TEST_F(Functions, CheckTheirParametersAtOnce) {
  EXPECT_THROW(softmax(x, 9), Error);
  EXPECT_THROW(gelu(x, "sometimes"), Error);
  EXPECT_THROW(reshape(x, {5, 5}), Error);
  EXPECT_THROW(zeros(std::nullopt), Error);
}

}  // namespace
}  // namespace tenon

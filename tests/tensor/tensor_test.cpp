// Tensors as values: how they are made, which types they have, what their operators and indices mean.
#include "tenon/tensor.h"

#include <gtest/gtest.h>

#include <functional>
#include <sstream>

#include "tenon/error.h"
#include "tenon/tensor/functions.h"

namespace tenon {
namespace {

using Doubles = std::vector<double>;
using Longs = std::vector<std::int64_t>;

Doubles values(const Tensor& tensor) { return tensor.to_host().to_doubles(); }

std::string text(const Tensor& tensor) {
  std::ostringstream out;
  out << tensor;
  return out.str();
}

Error error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& e) {
    return e;
  }
  return {ErrorCode::ok, "no error"};
}

bool says(const Error& error, std::string_view words) {
  return std::string_view(error.what()).find(words) != std::string_view::npos;
}

TEST(TensorMaking, NestedListsGiveTheShape) {
  const Tensor matrix = tensor({{1, 2, 3}, {4, 5, 6}});
  EXPECT_EQ(matrix.shape(), (Shape{2, 3}));
  EXPECT_EQ(matrix.dtype(), DType::i64);
  EXPECT_EQ(values(matrix), (Doubles{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(tensor({{{1}}, {{2}}}).shape(), (Shape{2, 1, 1}));
  EXPECT_EQ(tensor({1}).shape(), Shape{1});
  EXPECT_EQ(tensor(1).shape(), Shape{});
  EXPECT_EQ(tensor({}).shape(), Shape{0});
}

TEST(TensorMaking, NumbersInAListDecideTheDtype) {
  EXPECT_EQ(tensor({1, 2}).dtype(), DType::i64);
  EXPECT_EQ(tensor({1, 2.5}).dtype(), DType::f32);
  EXPECT_EQ(tensor({true, false}).dtype(), DType::boolean);
  EXPECT_EQ(tensor({1, 2}, DType::bf16).dtype(), DType::bf16);
  EXPECT_EQ(tensor({{1.5F, 2.0F}}, DType::f64).dtype(), DType::f64);
  EXPECT_EQ(tensor({std::int64_t{9007199254740993}}).item<std::int64_t>(), 9007199254740993);
}

TEST(TensorMaking, RowsOfDifferentLengthAreRefused) {
  EXPECT_EQ(error_of([] { tensor({{1, 2}, {3}}); }).code(), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of([] { tensor({1, {2}}); }).code(), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of([] { tensor({{1}, 2}); }).code(), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of([] { tensor({{}, {1}}); }).code(), ErrorCode::invalid_argument);
}

TEST(TensorMaking, SpansAndArraysAreCopiedOrShared) {
  std::vector<float> numbers{1, 2, 3, 4};
  const Tensor copied = Tensor::from(std::span<const float>(numbers), {2, 2});
  const Tensor row = Tensor::from(numbers);
  numbers[0] = 9;
  EXPECT_EQ(values(copied), (Doubles{1, 2, 3, 4}));
  EXPECT_EQ(row.shape(), Shape{4});
  const HostArray array = HostArray::from<float>({2}, {1, 2});
  EXPECT_EQ(Tensor(array).to_host().data(), array.data());
  EXPECT_EQ(row.to_vector<std::int32_t>(), (std::vector<std::int32_t>{1, 2, 3, 4}));
}

TEST(TensorMaking, DlpackGoesBothWays) {
  const Tensor x = tensor({1.5, 2.5}) * 2;
  const Tensor back = Tensor::from_dlpack(x.to_dlpack());
  EXPECT_EQ(values(back), (Doubles{3, 5}));
  EXPECT_EQ(values(Tensor::from_dlpack(x.to_dlpack_versioned())), (Doubles{3, 5}));
}

TEST(TensorMaking, NoneHasNoValue) {
  const Tensor none;
  EXPECT_TRUE(none.is_none());
  EXPECT_EQ(text(none), "none");
  EXPECT_EQ(error_of([&] { none.shape(); }).code(), ErrorCode::failed_precondition);
  EXPECT_EQ(error_of([&] { none.to_host(); }).code(), ErrorCode::failed_precondition);
  EXPECT_EQ(error_of([&] { eval(none); }).code(), ErrorCode::failed_precondition);
  EXPECT_EQ(error_of([&] { relu(none); }).code(), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of([&] { none + 1; }).code(), ErrorCode::invalid_argument);
}

TEST(TensorTypes, NumbersTakeTheTypeOfTheTensorBesideThem) {
  const Tensor half = tensor({1, 2}, DType::bf16), whole = tensor({1, 2}, DType::u8), wide = tensor({1, 2}, DType::f64);
  EXPECT_EQ((half + 0.5).dtype(), DType::bf16);
  EXPECT_EQ((2 * half).dtype(), DType::bf16);
  EXPECT_EQ((whole + 1).dtype(), DType::u8);
  EXPECT_EQ((whole * 0.5F).dtype(), DType::f32);
  EXPECT_EQ((0.1 + wide).dtype(), DType::f64);
  EXPECT_EQ(values(0.1 + wide), (Doubles{1.1, 2.1}));
}

TEST(TensorTypes, NumbersAloneAreInt64OrFloat32) {
  EXPECT_EQ(Tensor(3).dtype(), DType::i64);
  EXPECT_EQ(Tensor(2.5).dtype(), DType::f32);
  EXPECT_EQ(Tensor(true).dtype(), DType::boolean);
  EXPECT_EQ(Tensor(std::uint64_t{18446744073709551615U}).dtype(), DType::u64);
  EXPECT_EQ((Tensor(2) * 3).item<int>(), 6);
  EXPECT_EQ((Tensor(2) * 0.25).item<float>(), 0.5F);
}

TEST(TensorTypes, EvaluatingANumberDoesNotGiveItAType) {
  const Tensor factor = Tensor(2.0) * 3.0;
  const Tensor half = tensor({1, 2}, DType::bf16);
  EXPECT_EQ((half * factor).dtype(), DType::bf16);
  EXPECT_EQ(factor.item<double>(), 6);
  EXPECT_EQ((half * factor).dtype(), DType::bf16);
  EXPECT_EQ(values(half * factor), (Doubles{6, 12}));
}

TEST(TensorOperators, AreElementwise) {
  const Tensor a = tensor({7, -7, 6}), b = tensor({2, 2, 3});
  EXPECT_EQ(values(a + b), (Doubles{9, -5, 9}));
  EXPECT_EQ(values(a - b), (Doubles{5, -9, 3}));
  EXPECT_EQ(values(a * b), (Doubles{14, -14, 18}));
  EXPECT_EQ(values(a / b), (Doubles{3.5, -3.5, 2}));
  EXPECT_EQ(values(a % b), (Doubles{1, 1, 0}));
  EXPECT_EQ(values(-a), (Doubles{-7, 7, -6}));
  EXPECT_EQ(values(a & b), (Doubles{2, 0, 2}));
  EXPECT_EQ(values(a | 8), (Doubles{15, -7, 14}));
  EXPECT_EQ(values(a ^ a), (Doubles{0, 0, 0}));
  EXPECT_EQ(values(~b), (Doubles{-3, -3, -4}));
  EXPECT_EQ(values(b << 1), (Doubles{4, 4, 6}));
  EXPECT_EQ(values(b >> 1), (Doubles{1, 1, 1}));
  EXPECT_EQ(values(10 - b), (Doubles{8, 8, 7}));
}

TEST(TensorOperators, ComparisonsGiveBools) {
  const Tensor a = tensor({1, 2, 3});
  EXPECT_EQ((a == 2).dtype(), DType::boolean);
  EXPECT_EQ(values(a == 2), (Doubles{0, 1, 0}));
  EXPECT_EQ(values(a != 2), (Doubles{1, 0, 1}));
  EXPECT_EQ(values(a < 2), (Doubles{1, 0, 0}));
  EXPECT_EQ(values(a <= 2), (Doubles{1, 1, 0}));
  EXPECT_EQ(values(2 > a), (Doubles{1, 0, 0}));
  EXPECT_EQ(values(a >= 2), (Doubles{0, 1, 1}));
  EXPECT_EQ(values(!(a == 2)), (Doubles{1, 0, 1}));
}

TEST(TensorOperators, AssigningOnesBroadcastAndRebind) {
  Tensor a = tensor({{1.0, 2.0}, {3.0, 4.0}});
  const Tensor before = a;
  a += tensor({10, 20});
  a *= 2;
  a -= 1;
  a /= 0.5;
  EXPECT_EQ(values(a), (Doubles{42, 86, 50, 94}));
  EXPECT_EQ(values(before), (Doubles{1, 2, 3, 4}));
}

TEST(TensorErrors, ComeAtOnceAndNameTheOpAndTheShapes) {
  const Tensor a = zeros({2, 3}), b = zeros({4, 5});
  const Error product = error_of([&] { matmul(a, b); });
  EXPECT_EQ(product.code(), ErrorCode::invalid_argument);
  EXPECT_TRUE(says(product, "matmul(float32 [2, 3], float32 [4, 5])")) << product.what();
  const Error sum = error_of([&] { a + b; });
  EXPECT_TRUE(says(sum, "add(float32 [2, 3], float32 [4, 5])")) << sum.what();
  const Error axis = error_of([&] { softmax(a, 2); });
  EXPECT_TRUE(says(axis, "softmax(float32 [2, 3])")) << axis.what();
  const Error dtype = error_of([&] { a & 1; });
  EXPECT_TRUE(says(dtype, "bitwise_and(float32 [2, 3], int64 [])")) << dtype.what();
  EXPECT_FALSE(dtype.hint().empty());
}

TEST(TensorErrors, AnOptionalInputCanOnlyBeLeftOutAtTheEnd) {
  const Tensor x = zeros({2, 3}), bias = zeros({3});
  const Error error = error_of([&] { layer_norm(x, {}, bias); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  EXPECT_TRUE(says(error, "weight is none")) << error.what();
}

class TensorIndexing : public testing::Test {
 protected:
  const Tensor x = arange(24).reshape({2, 3, 4});
};

TEST_F(TensorIndexing, NumbersTakeAnAxisAway) {
  EXPECT_EQ(x[1].shape(), (Shape{3, 4}));
  EXPECT_EQ(values(x[{1, 2}]), (Doubles{20, 21, 22, 23}));
  EXPECT_EQ((x[{1, -1, -1}].item<int>()), 23);
  EXPECT_EQ(x[0][1][2].item<int>(), 6);
}

TEST_F(TensorIndexing, SlicesFollowPython) {
  const Tensor row = arange(6);
  EXPECT_EQ(values(row[Slice(1, 4)]), (Doubles{1, 2, 3}));
  EXPECT_EQ(values(row[Slice::from(-2)]), (Doubles{4, 5}));
  EXPECT_EQ(values(row[Slice::until(-4)]), (Doubles{0, 1}));
  EXPECT_EQ(values(row[Slice::every(2)]), (Doubles{0, 2, 4}));
  EXPECT_EQ(values(row[Slice::every(-1)]), (Doubles{5, 4, 3, 2, 1, 0}));
  EXPECT_EQ(values(row[Slice(4, 1, -2)]), (Doubles{4, 2}));
  EXPECT_EQ(values(row[Slice(-100, 100, 1000)]), (Doubles{0}));
  EXPECT_EQ(row[Slice(4, 2)].shape(), Shape{0});
  EXPECT_EQ(values(row[Slice(std::nullopt, std::nullopt, std::numeric_limits<std::int64_t>::min())]), (Doubles{5}));
}

TEST_F(TensorIndexing, EllipsisAndNewAxisFillIn) {
  EXPECT_EQ((x[{ellipsis, 0}].shape()), (Shape{2, 3}));
  EXPECT_EQ(values(x[{ellipsis, 0}]), (Doubles{0, 4, 8, 12, 16, 20}));
  EXPECT_EQ((x[{0, new_axis, ellipsis, new_axis}].shape()), (Shape{1, 3, 4, 1}));
  EXPECT_EQ((x[{Slice(), 1, Slice(1, 3)}].shape()), (Shape{2, 2}));
  EXPECT_EQ((x[{0, 0, 0, ellipsis}].shape()), Shape{});
}

TEST_F(TensorIndexing, ATensorOfIntegersTakes) {
  EXPECT_EQ(values(x[{0, tensor({2, 0}), 1}]), (Doubles{9, 1}));
  EXPECT_EQ((x[{Slice(), Slice(), tensor({{0, 3}, {1, 1}})}].shape()), (Shape{2, 3, 2, 2}));
  EXPECT_EQ(values(arange(5)[tensor({-1, 0})]), (Doubles{4, 0}));
}

TEST_F(TensorIndexing, MistakesNameTheShape) {
  EXPECT_EQ(error_of([&] { x[2]; }).code(), ErrorCode::out_of_range);
  EXPECT_TRUE(says(error_of([&] { x[{0, -4}]; }), "index -4 is out of range for axis 1 of shape [2, 3, 4]"));
  EXPECT_EQ(error_of([&] { x[{0, 0, 0, 0}]; }).code(), ErrorCode::out_of_range);
  EXPECT_EQ(error_of([&] { x[Slice::every(0)]; }).code(), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of([&] { x[{ellipsis, ellipsis}]; }).code(), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of([&] { x[tensor({0.5})]; }).code(), ErrorCode::invalid_argument);
}

TEST(TensorReading, AnItemIsTheOneElement) {
  EXPECT_EQ(tensor({{2.75}}).item<int>(), 2);
  EXPECT_EQ(tensor({300}).item<std::uint8_t>(), 255);
  EXPECT_EQ(tensor({-300}).item<std::int8_t>(), -128);
  EXPECT_TRUE(tensor(2).item<bool>());
  const Error error = error_of([] { arange(3).item<int>(); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  EXPECT_TRUE(says(error, "[3]"));
}

TEST(TensorReading, PrintsAsNumPyDoes) {
  EXPECT_EQ(text(tensor({{1.0, 2.5}, {3.0, 4.0}})), "[[1.0 2.5]\n [3.0 4.0]]");
  EXPECT_EQ(text(arange(1001)), "[   0    1    2 ...  998  999 1000]");
  EXPECT_EQ(text(Tensor(2.5) * 2), "5.0");
}

TEST(TensorReading, MembersReadLikeTheirFunctions) {
  const Tensor x = arange(6).reshape({2, 3});
  EXPECT_EQ(values(x.T()), (Doubles{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(x.cast(DType::f16).dtype(), DType::f16);
  EXPECT_EQ(x.rank(), 2);
  EXPECT_EQ(x.elements(), 6);
}

}  // namespace
}  // namespace tenon

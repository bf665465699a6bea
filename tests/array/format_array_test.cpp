// Tensors as text: golden texts, as NumPy would lay them out.
#include "array/format_array.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace tenon {
namespace {

HostArray counting(const Shape& shape) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(shape.elements()));
  std::iota(values.begin(), values.end(), 0);
  return HostArray::from<std::int64_t>(shape, std::span<const std::int64_t>(values));
}

TEST(FormatArray, AScalarIsItsValue) {
  EXPECT_EQ(format_array(HostArray::full(DType::f32, {}, 2.5)), "2.5");
  EXPECT_EQ(format_array(HostArray::full(DType::i64, {}, -7)), "-7");
  EXPECT_EQ(format_array(HostArray::full(DType::boolean, {}, 1)), "true");
}

TEST(FormatArray, WholeFloatsKeepAPoint) { EXPECT_EQ(format_array(HostArray::from<float>({3}, {1, 2, 30})), "[ 1.0  2.0 30.0]"); }

TEST(FormatArray, ColumnsAreAlignedAndRowsBracketed) {
  EXPECT_EQ(format_array(HostArray::from<float>({2, 2}, {1, -2.5F, 3, 40})), "[[ 1.0 -2.5]\n [ 3.0 40.0]]");
  EXPECT_EQ(format_array(counting({2, 2, 2})), "[[[0 1]\n  [2 3]]\n\n [[4 5]\n  [6 7]]]");
}

TEST(FormatArray, FloatsShowSixDigitsOfTheLargest) {
  EXPECT_EQ(format_array(HostArray::from<float>({2}, {1.0F / 3, 0.1F})), "[0.333333 0.100000]");
  EXPECT_EQ(format_array(HostArray::from<float>({2}, {1234.5678F, 0.25F})), "[1234.5677    0.2500]");
}

TEST(FormatArray, SixteenBitFloatsShowFiveDigits) {
  EXPECT_EQ(format_array(HostArray::full(DType::bf16, {}, -1.265625)), "-1.2656");
  EXPECT_EQ(format_array(HostArray::full(DType::bfloat8_b, {2}, 0.5)), "[0.5 0.5]");
}

TEST(FormatArray, VeryLargeAndVerySmallUseAnExponent) {
  EXPECT_EQ(format_array(HostArray::from<float>({2}, {1e10F, 1})), "[1.0e+10 1.0e+00]");
  EXPECT_EQ(format_array(HostArray::from<double>({2}, {1.5e-7, 2})), "[1.5e-07 2.0e+00]");
}

TEST(FormatArray, NaNAndInfinitiesAreWords) {
  EXPECT_EQ(format_array(HostArray::from<float>({3}, {NAN, INFINITY, -INFINITY})), "[ nan  inf -inf]");
  EXPECT_EQ(format_array(HostArray::from<float>({2}, {NAN, 1.25F})), "[ nan 1.25]");
}

TEST(FormatArray, SixtyFourBitIntegersAreExact) {
  EXPECT_EQ(format_array(HostArray::from<std::int64_t>({1}, {9007199254740993})), "[9007199254740993]");
  EXPECT_EQ(format_array(HostArray::from<std::uint64_t>({1}, {18446744073709551615ULL})), "[18446744073709551615]");
}

TEST(FormatArray, EmptyTensorsAreEmptyBrackets) {
  EXPECT_EQ(format_array(HostArray::zeros(DType::f32, {0})), "[]");
  EXPECT_EQ(format_array(HostArray::zeros(DType::f32, {3, 0})), "[]");
}

TEST(FormatArray, LargeTensorsAreAbbreviated) {
  EXPECT_EQ(format_array(counting({1001})), "[   0    1    2 ...  998  999 1000]");
  EXPECT_EQ(format_array(counting({100, 100})),
            "[[   0    1    2 ...   97   98   99]\n"
            " [ 100  101  102 ...  197  198  199]\n"
            " [ 200  201  202 ...  297  298  299]\n"
            " ...\n"
            " [9700 9701 9702 ... 9797 9798 9799]\n"
            " [9800 9801 9802 ... 9897 9898 9899]\n"
            " [9900 9901 9902 ... 9997 9998 9999]]");
  EXPECT_EQ(format_array(counting({1000})).find("..."), std::string::npos);
}

TEST(FormatArray, LongRowsAreWrappedToTheWidth) {
  EXPECT_EQ(format_array(counting({12}), {.width = 20}), "[ 0  1  2  3  4  5\n  6  7  8  9 10 11]");
}

}  // namespace
}  // namespace tenon

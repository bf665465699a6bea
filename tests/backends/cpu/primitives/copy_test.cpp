#include <gtest/gtest.h>

#include <cstdlib>

#include "backends/cpu/plain.h"

namespace tenon::cpu {
namespace {

using plain::permuted, plain::with_pools;

template <class T>
void expect_copied(const View& source) {
  const std::vector<T> expected = plain::elements<T>(source);
  with_pools([&](ThreadPool& pool) {
    // Sentinels on both sides: nothing else may be written.
    std::vector<T> memory(expected.size() + 128, T{77});
    copy(pool, source, dense_target(memory.data() + 64, source.dtype, source.shape));
    ASSERT_TRUE(std::equal(expected.begin(), expected.end(), memory.begin() + 64)) << to_string(source.shape);
    for (std::size_t i = 0; i < 64; ++i) {
      ASSERT_EQ(memory[i], T{77});
      ASSERT_EQ(memory[memory.size() - 1 - i], T{77});
    }
  });
}

template <class T>
class Copy : public testing::Test {};
using ElementTypes = testing::Types<std::uint8_t, std::int16_t, float, double>;
TYPED_TEST_SUITE(Copy, ElementTypes);

TYPED_TEST(Copy, OfADenseTensorIsTheTensor) {
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{7}, Shape{0, 3}, Shape{3, 5, 2}, Shape{300, 401}}) {
    const auto values = plain::numbers<TypeParam>(shape.elements() + 1);
    expect_copied<TypeParam>(plain::view(values, shape));
  }
}

TYPED_TEST(Copy, TransposesPlanesOfAnySize) {
  for (const auto& [rows, cols] :
       {std::pair{1, 9}, {9, 1}, {2, 3}, {16, 16}, {17, 33}, {64, 65}, {3, 1000}, {1000, 3}, {257, 300}}) {
    const auto values = plain::numbers<TypeParam>(rows * cols);
    expect_copied<TypeParam>(permuted(plain::view(values, {rows, cols}), {1, 0}));
  }
}

TYPED_TEST(Copy, PermutesAxes) {
  const auto values = plain::numbers<TypeParam>(6 * 7 * 20 * 9);
  const View x = plain::view(values, {6, 7, 20, 9});
  expect_copied<TypeParam>(permuted(x, {0, 2, 1, 3}));
  expect_copied<TypeParam>(permuted(x, {0, 1, 3, 2}));
  expect_copied<TypeParam>(permuted(x, {3, 2, 1, 0}));
  expect_copied<TypeParam>(permuted(x, {0, 3, 1, 2}));
  expect_copied<TypeParam>(permuted(x, {2, 0, 3, 1}));
}

TYPED_TEST(Copy, RepeatsBroadcastAxes) {
  const auto values = plain::numbers<TypeParam>(300);
  View x = plain::view(values, {5, 300});
  x.strides[0] = 0;
  expect_copied<TypeParam>(x);
  x = plain::view(values, {300, 70});
  x.strides = {1, 0};
  expect_copied<TypeParam>(x);
  x = plain::view(values, {4, 30, 3});
  x.strides = {0, 1, 0};
  expect_copied<TypeParam>(x);
  x.strides = {};
  expect_copied<TypeParam>(x);
}

TYPED_TEST(Copy, ReadsStepsAndReversedAxes) {
  const auto values = plain::numbers<TypeParam>(120 * 100);
  View x = plain::view(values, {40, 25});
  x.strides = {300, 4};
  expect_copied<TypeParam>(x);
  x.strides = {4, 300};
  x.shape = Shape{25, 40};
  expect_copied<TypeParam>(x);
  x.data = values.data() + values.size() - 1;
  x.shape = Shape{120, 100};
  x.strides = {-100, -1};
  expect_copied<TypeParam>(x);
  x.data = values.data() + 99;
  x.strides = {100, -1};
  expect_copied<TypeParam>(x);
  expect_copied<TypeParam>(permuted(x, {1, 0}));
}

TYPED_TEST(Copy, ReadsEveryStepAndRepeatsElements) {
  const auto values = plain::numbers<TypeParam>(90 * 800);
  for (const std::int64_t step : {-3, -1, 2, 3, 4, 5, 8})
    for (const std::int64_t cols : {1, 7, 33, 100}) {
      View x = plain::view(values, {41, cols});
      x.strides = {801, step};
      x.data = values.data() + (step < 0 ? 799 : 1);
      expect_copied<TypeParam>(x);
    }
  for (const std::int64_t times : {2, 3, 4, 5, 16, 17, 31, 70}) {
    View x = plain::view(values, {300, times});
    x.strides = {1, 0};
    expect_copied<TypeParam>(x);
    x.strides = {2, 0};
    expect_copied<TypeParam>(x);
  }
}

TYPED_TEST(Copy, OfShortRunsIsExact) {
  const auto values = plain::numbers<TypeParam>(60 * 1000);
  for (const std::int64_t run : {2, 3, 4, 6, 8, 12, 24, 100})
    for (const std::int64_t gap : {0, 1, 2, 4}) {
      View x = plain::view(values, {9, 50, run});
      x.strides = {run + gap, 9 * (run + gap), 1};
      expect_copied<TypeParam>(x);
      x.data = values.data() + 1;
      expect_copied<TypeParam>(x);
    }
}

TYPED_TEST(Copy, TransposesPlanesThatAreSmallOrOdd) {
  const auto values = plain::numbers<TypeParam>(5 * 150 * 170);
  for (const std::int64_t rows : {2, 3, 4, 5, 12, 24, 70, 150})
    for (const std::int64_t cols : {3, 8, 9, 24, 65, 170}) {
      const View x = plain::view(values, {5, rows, cols});
      expect_copied<TypeParam>(permuted(x, {0, 2, 1}));
      expect_copied<TypeParam>(permuted(x, {2, 0, 1}));
      expect_copied<TypeParam>(permuted(x, {2, 1, 0}));
    }
}

TEST(CopyTo, AStridedTargetLeavesTheGapsAlone) {
  const auto values = plain::numbers<float>(30 * 20);
  std::vector<float> memory(30 * 64, 9);
  with_pools([&](ThreadPool& pool) {
    Target to = dense_target(memory.data(), DType::f32, {30, 20});
    to.strides = {64, 2};
    copy(pool, plain::view(values, {30, 20}), to);
    for (std::size_t r = 0; r < 30; ++r)
      for (std::size_t c = 0; c < 64; ++c)
        ASSERT_EQ(memory[r * 64 + c], c < 40 && c % 2 == 0 ? values[r * 20 + c / 2] : 9) << r << ", " << c;
  });
}

TEST(CopyBeyondTheCaches, TransposesAndRunsAreStillExact) {
  const std::int64_t n = 2600;  // 27 MB in and out each
  const auto values = plain::numbers<float>(n * n);
  ThreadPool pool(2);
  std::vector<float> out;
  const View x = plain::view(values, {n, n});
  ASSERT_TRUE(beyond_cache(std::size_t{1} << 40));
  ASSERT_FALSE(beyond_cache(1 << 16));
  copy(pool, permuted(x, {1, 0}), plain::target(out, {n, n}));
  bool equal = true;
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j)
      equal = equal && out[static_cast<std::size_t>(j * n + i)] == values[static_cast<std::size_t>(i * n + j)];
  EXPECT_TRUE(equal);
  copy(pool, x, plain::target(out, {n, n}));
  EXPECT_TRUE(out == values);
}

TEST(Fill, WritesTheValueInEveryType) {
  with_pools([&](ThreadPool& pool) {
    std::vector<float> floats;
    fill(pool, plain::target(floats, {3, 700}), 2.5);
    EXPECT_TRUE(std::all_of(floats.begin(), floats.end(), [](float x) { return x == 2.5f; }));
    std::vector<std::int64_t> integers;
    fill(pool, plain::target(integers, {100'000}), -7);
    EXPECT_TRUE(std::all_of(integers.begin(), integers.end(), [](std::int64_t x) { return x == -7; }));
    std::vector<std::uint8_t> flags;
    const Target to = plain::target(flags, {33});
    fill(pool, {to.data, DType::boolean, to.shape, to.strides}, 1);
    EXPECT_TRUE(std::all_of(flags.begin(), flags.end(), [](std::uint8_t x) { return x == 1; }));
  });
}

}  // namespace
}  // namespace tenon::cpu

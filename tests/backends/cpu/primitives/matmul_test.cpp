#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backends/cpu/plain.h"

namespace tenon::cpu {
namespace {

using plain::permuted, plain::with_pools;

// Rows x inner times inner x cols, whatever the views' strides; sums in double, integers wrapping.
template <class T>
std::vector<T> product(const View& a, const View& b, const Shape& out) {
  std::vector<T> result(static_cast<std::size_t>(out.elements()));
  const int rank = out.rank();
  plain::for_each_index(out, [&](const std::vector<std::int64_t>& index, std::size_t n) {
    std::vector<std::int64_t> left = index, right = index;
    const auto r = static_cast<std::size_t>(rank - 2), c = r + 1;
    double sum = 0;
    std::uint64_t wrapped = 0;
    for (std::int64_t k = 0; k < a.shape[rank - 1]; ++k) {
      left[c] = k;
      right[r] = k;
      const T x = plain::at<T>(a, left), y = plain::at<T>(b, right);
      sum += static_cast<double>(x) * static_cast<double>(y);
      if constexpr (std::is_integral_v<T>) wrapped += static_cast<std::uint64_t>(x) * static_cast<std::uint64_t>(y);
    }
    if constexpr (std::is_integral_v<T>)
      result[n] = static_cast<T>(wrapped);
    else
      result[n] = static_cast<T>(sum);
  });
  return result;
}

// Multiplies the logical matrices a [.., m, k] and b [.., k, n], handed over as |attr| says.
template <class T>
void expect_product(const View& a, const View& b, MatMulAttr attr, const Shape& out) {
  const std::vector<T> expected = product<T>(a, b, out);
  const auto flipped = [](View x) {
    const auto r = static_cast<std::size_t>(x.shape.rank() - 2);
    const std::int64_t rows = x.shape[x.shape.rank() - 2], cols = x.shape[x.shape.rank() - 1];
    x.shape = x.shape.with(x.shape.rank() - 2, cols).with(x.shape.rank() - 1, rows);
    std::swap(x.strides[r], x.strides[r + 1]);
    return x;
  };
  const View left = attr.transpose_a ? flipped(a) : a, right = attr.transpose_b ? flipped(b) : b;
  ASSERT_TRUE(is_blas_layout(left));
  ASSERT_TRUE(is_blas_layout(right));
  const double unit = std::numeric_limits<T>::epsilon();
  const double limit = 16 * unit * std::sqrt(static_cast<double>(a.shape[a.shape.rank() - 1]) + 1);
  with_pools([&](ThreadPool& pool) {
    // What was there before must not matter.
    std::vector<T> memory(expected.size() + 32, std::is_integral_v<T> ? T{55} : std::numeric_limits<T>::quiet_NaN());
    matmul(pool, left, right, attr, dense_target(memory.data() + 16, dtype_of<T>, out));
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(static_cast<double>(memory[i + 16]), static_cast<double>(expected[i]), limit)
          << to_string(a.shape) << " x " << to_string(b.shape) << " at " << i << " with " << pool.threads() << " threads";
    if constexpr (std::is_integral_v<T>) {
      ASSERT_EQ(memory[15], T{55});
      ASSERT_EQ(memory[memory.size() - 16], T{55});
    } else {
      ASSERT_TRUE(std::isnan(memory[15]) && std::isnan(memory[memory.size() - 16]));
    }
  });
}

template <class T>
class MatMul : public testing::Test {};
using ProductTypes = testing::Types<float, double, std::int8_t, std::uint16_t, std::int32_t, std::int64_t, std::uint64_t>;
TYPED_TEST_SUITE(MatMul, ProductTypes);

TYPED_TEST(MatMul, HasTheSizesAndTransposesOfTheGraph) {
  constexpr int sizes[][3] = {{1, 1, 1},   {2, 2, 2},  {3, 5, 7},   {1, 40, 33},  {40, 33, 1},  {1, 300, 1},
                              {6, 16, 16}, {7, 3, 17}, {31, 64, 9}, {64, 64, 64}, {65, 40, 90}, {90, 300, 20}};
  for (const auto& [m, k, n] : sizes)
    for (const bool ta : {false, true})
      for (const bool tb : {false, true}) {
        const auto a = plain::numbers<TypeParam>(m * k, 1), b = plain::numbers<TypeParam>(k * n, 2);
        const View left = ta ? permuted(plain::view(a, {k, m}), {1, 0}) : plain::view(a, {m, k});
        const View right = tb ? permuted(plain::view(b, {n, k}), {1, 0}) : plain::view(b, {k, n});
        expect_product<TypeParam>(left, right, {ta, tb}, {m, n});   // stored transposed, and said so
        expect_product<TypeParam>(left, right, {!ta, tb}, {m, n});  // as a view
      }
}

TYPED_TEST(MatMul, RunsOverBatchesAlsoBroadcastOnes) {
  const auto a = plain::numbers<TypeParam>(3 * 4 * 5 * 6, 3), b = plain::numbers<TypeParam>(6 * 7, 4);
  const View left = plain::view(a, {3, 4, 5, 6});
  View right = plain::view(b, {3, 4, 6, 7});
  right.strides = {0, 0, 7, 1};
  expect_product<TypeParam>(left, right, {}, {3, 4, 5, 7});
  const auto big = plain::numbers<TypeParam>(2 * 70 * 70, 5);
  expect_product<TypeParam>(plain::view(big, {2, 70, 70}), plain::view(big, {2, 70, 70}), {}, {2, 70, 70});
}

TYPED_TEST(MatMul, ReadsRowsThatLieApart) {
  const auto a = plain::numbers<TypeParam>(50 * 100), b = plain::numbers<TypeParam>(100 * 90);
  View left = plain::view(a, {50, 60}), right = plain::view(b, {60, 41});
  left.strides = {100, 1};
  right.strides = {90, 1};
  expect_product<TypeParam>(left, right, {}, {50, 41});
}

TYPED_TEST(MatMul, OfNothingIsZero) {
  const std::vector<TypeParam> nothing(1);
  ThreadPool pool(2);
  std::vector<TypeParam> out(6, TypeParam{3});
  matmul(pool, plain::view(nothing, {2, 0}), plain::view(nothing, {0, 3}), {},
         dense_target(out.data(), dtype_of<TypeParam>, {2, 3}));
  for (const TypeParam x : out) EXPECT_EQ(x, TypeParam{});
  matmul(pool, plain::view(nothing, {0, 4}), plain::view(nothing, {4, 0}), {},
         dense_target(out.data(), dtype_of<TypeParam>, {0, 0}));
}

TEST(MatMulOfFloats, InfinitiesAndNaNsComeThrough) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const std::int64_t n : {1, 2, 5, 40, 70}) {
    std::vector<float> a(static_cast<std::size_t>(n * n)), b(static_cast<std::size_t>(n * n));
    a[0] = inf;  // times zero
    std::vector<float> out;
    ThreadPool pool(2);
    matmul(pool, plain::view(a, {n, n}), plain::view(b, {n, n}), {}, plain::target(out, {n, n}));
    for (std::size_t i = 0; i < out.size(); ++i)
      ASSERT_EQ(std::isnan(out[i]), i < static_cast<std::size_t>(n)) << n << " at " << i;
    // A row and a column vector: the special cases.
    matmul(pool, plain::view(a, {1, n}), plain::view(b, {n, n}), {}, plain::target(out, {1, n}));
    for (const float x : out) ASSERT_TRUE(std::isnan(x));
    matmul(pool, plain::view(a, {n, n}), plain::view(b, {n, 1}), {}, plain::target(out, {n, 1}));
    for (std::size_t i = 0; i < out.size(); ++i) ASSERT_EQ(std::isnan(out[i]), i == 0);
  }
}

TEST(MatMulOfFloats, AreTheSameForAnyNumberOfThreads) {
  constexpr int sizes[][3] = {{64, 130, 48},  {130, 16, 513},  {300, 48, 17},  {7, 700, 300},   {1, 4000, 700},
                              {700, 4000, 1}, {400, 100, 400}, {1, 70'001, 1}, {5, 131'072, 1}, {1, 99'999, 3}};
  for (const auto& [m, k, n] : sizes) {
    const auto a = plain::numbers<float>(m * k, 1), b = plain::numbers<float>(k * n, 2);
    std::vector<float> first;
    for (const int threads : {1, 2, 3, 5}) {
      ThreadPool pool(threads);
      std::vector<float> out;
      matmul(pool, plain::view(a, {m, k}), plain::view(b, {n, k}), {false, true}, plain::target(out, {m, n}));
      if (first.empty()) first = out;
      EXPECT_TRUE(out == first) << m << " x " << k << " x " << n << " with " << threads << " threads";
    }
  }
}

TEST(MatMulOfFloats, LongInnerSumsStayAccurate) {
  const std::int64_t n = 100'000;
  const std::vector<float> ones(static_cast<std::size_t>(n), 0.1f);
  std::vector<float> out;
  ThreadPool pool(2);
  matmul(pool, plain::view(ones, {1, n}), plain::view(ones, {n, 1}), {}, plain::target(out, {1, 1}));
  const double expected = static_cast<double>(n) * static_cast<double>(0.1f) * static_cast<double>(0.1f);
  EXPECT_NEAR(out[0], expected, 1e-6 * expected);
}

TEST(MatMulOfFloats, LongRowsAreDividedAmongThreads) {
  const std::int64_t depth = 3 * 32 * 1024 + 77;
  const std::vector<float> a = plain::numbers<float>(2 * depth), b = plain::numbers<float>(depth, 2);
  double expected[2] = {};
  for (std::size_t i = 0; i < a.size(); ++i)
    expected[i / static_cast<std::size_t>(depth)] += static_cast<double>(a[i]) * static_cast<double>(b[i % b.size()]);
  std::vector<float> first;
  with_pools([&](ThreadPool& pool) {
    std::vector<float> out;
    matmul(pool, plain::view(a, {2, depth}), plain::view(b, {depth, 1}), {}, plain::target(out, {2, 1}));
    for (std::size_t i = 0; i < 2; ++i) ASSERT_NEAR(static_cast<double>(out[i]), expected[i], 1e-3) << pool.threads();
    if (first.empty()) first = out;
    ASSERT_EQ(out, first) << pool.threads();
  });
}

TEST(MatMulOfFloats, OfManyNarrowMatricesAreThoseOfEach) {
  for (const std::int64_t n : {1, 3, 16, 17, 31, 32, 33})
    for (const std::int64_t m : {1, 2, 5, 15}) {
      const Shape left{9, m, 21}, right{9, 21, n};
      const std::vector<float> a = plain::numbers<float>(left.elements()), b = plain::numbers<float>(right.elements(), 2);
      expect_product<float>(plain::view(a, left), plain::view(b, right), {}, {9, m, n});
      const std::vector<float> turned = plain::numbers<float>(right.elements(), 3);
      expect_product<float>(plain::view(a, left), permuted(plain::view(turned, {9, n, 21}), {0, 2, 1}), {false, true}, {9, m, n});
    }
}

TEST(BlasLayout, NeedsAUnitStrideAndLinesApart) {
  const std::vector<float> memory(100);
  View x = plain::view(memory, {4, 5});
  EXPECT_TRUE(is_blas_layout(x));
  x.strides = {1, 4};
  EXPECT_TRUE(is_blas_layout(x));
  x.strides = {10, 2};
  EXPECT_FALSE(is_blas_layout(x));
  x.strides = {0, 1};
  EXPECT_FALSE(is_blas_layout(x));
  x.strides = {2, 1};
  EXPECT_FALSE(is_blas_layout(x));
  x.strides = {-5, 1};
  EXPECT_FALSE(is_blas_layout(x));
  x.shape = Shape{1, 5};
  x.strides = {0, 3};
  EXPECT_TRUE(is_blas_layout(x));
}

}  // namespace
}  // namespace tenon::cpu

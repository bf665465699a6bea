#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backends/cpu/plain.h"

namespace tenon::cpu {
namespace {

using plain::permuted, plain::with_pools;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

template <class T>
class Scan : public testing::Test {};
using ScanTypes = testing::Types<float, double, std::int64_t, std::uint64_t, std::int8_t>;
TYPED_TEST_SUITE(Scan, ScanTypes);

TYPED_TEST(Scan, SumsAndMultipliesAlongEveryAxis) {
  for (const Shape& shape : {Shape{1}, Shape{9}, Shape{3, 4}, Shape{2, 150, 3}, Shape{4, 5, 70}, Shape{0, 3}, Shape{3, 0}})
    for (int axis = 0; axis < shape.rank(); ++axis)
      for (const bool product : {false, true}) {
        const auto values = plain::numbers<TypeParam>(shape.elements());
        const View x = plain::view(values, shape);
        std::vector<TypeParam> expected(values.size());
        plain::for_each_index(shape, [&](std::vector<std::int64_t> index, std::size_t n) {
          const std::int64_t last = index[static_cast<std::size_t>(axis)];
          double running = product ? 1 : 0;
          std::uint64_t wrapped = product ? 1 : 0;
          for (std::int64_t i = 0; i <= last; ++i) {
            index[static_cast<std::size_t>(axis)] = i;
            const TypeParam value = plain::at<TypeParam>(x, index);
            running = product ? running * static_cast<double>(value) : running + static_cast<double>(value);
            const auto bits = static_cast<std::uint64_t>(value);
            wrapped = product ? wrapped * bits : wrapped + bits;
          }
          if constexpr (std::is_integral_v<TypeParam>)
            expected[n] = static_cast<TypeParam>(wrapped);
          else
            expected[n] = static_cast<TypeParam>(running);
        });
        with_pools([&](ThreadPool& pool) {
          std::vector<TypeParam> out;
          cumulative(pool, x, {axis, product}, plain::target(out, shape));
          for (std::size_t i = 0; i < out.size(); ++i)
            ASSERT_NEAR(static_cast<double>(out[i]), static_cast<double>(expected[i]), 1e-13)
                << to_string(shape) << " axis " << axis << " at " << i;
        });
      }
}

TEST(Cumulative, ReadsTransposedViews) {
  const auto values = plain::numbers<double>(6 * 5);
  ThreadPool pool(2);
  std::vector<double> out;
  cumulative(pool, permuted(plain::view(values, {6, 5}), {1, 0}), {1, false}, plain::target(out, {5, 6}));
  for (std::size_t r = 0; r < 5; ++r) {
    double sum = 0;
    for (std::size_t c = 0; c < 6; ++c) {
      sum += values[c * 5 + r];
      EXPECT_NEAR(out[r * 6 + c], sum, 1e-15);
    }
  }
}

TEST(Cumulative, InfinityStaysAndBecomesNaNOnlyWhenItMust) {
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<double> values{1, inf, 5, -inf, 2};
  ThreadPool pool(1);
  std::vector<double> out;
  cumulative(pool, plain::view(values, {5}), {0, false}, plain::target(out, {5}));
  EXPECT_EQ(out[1], inf);
  EXPECT_EQ(out[2], inf);
  EXPECT_TRUE(std::isnan(out[3]));
  EXPECT_TRUE(std::isnan(out[4]));
}

TEST(Cumulative, ProductsOfFloatsComeBackFromFarBelowTheRangeOfDoubles) {
  std::vector<float> values(603, 1e-10f);
  std::fill(values.begin() + 300, values.begin() + 600, 1e10f);
  values[602] = std::numeric_limits<float>::infinity();
  ThreadPool pool(1);
  std::vector<float> out;
  cumulative(pool, plain::view(values, {603}), {0, true}, plain::target(out, {603}));
  EXPECT_FLOAT_EQ(out[2], 1e-30f);
  for (std::size_t i = 5; i < 595; ++i) ASSERT_EQ(out[i], 0.0f) << i;
  EXPECT_NEAR(out[599], 1.0f, 1e-4f);
  EXPECT_NEAR(out[601], 1e-20f, 1e-24f);
  EXPECT_EQ(out[602], std::numeric_limits<float>::infinity());
}

TEST(Cumulative, LongSumsOfFloatsDoNotDrift) {
  const std::int64_t n = 1'000'000;
  const std::vector<float> values(static_cast<std::size_t>(n), 0.1f);
  ThreadPool pool(2);
  std::vector<float> out;
  cumulative(pool, plain::view(values, {n}), {0, false}, plain::target(out, {n}));
  const double expected = static_cast<double>(0.1f) * static_cast<double>(n);
  EXPECT_NEAR(out.back(), expected, expected * 1e-7);
}

template <class T>
void expect_long_sums(std::int64_t n, T infinity) {
  std::vector<T> values = plain::numbers<T>(n);
  if (infinity != 0) values[static_cast<std::size_t>(n / 2)] = infinity;
  std::vector<T> first;
  with_pools([&](ThreadPool& pool) {
    std::vector<T> out;
    cumulative(pool, plain::view(values, {n}), {0, false}, plain::target(out, {n}));
    long double sum = 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
      sum += static_cast<long double>(values[i]);
      if (std::isinf(sum))
        ASSERT_EQ(out[i], static_cast<T>(sum)) << i;
      else
        ASSERT_NEAR(static_cast<double>(out[i]), static_cast<double>(sum),
                    1e-13 + static_cast<double>(std::numeric_limits<T>::epsilon()) * static_cast<double>(std::abs(sum)))
            << n << " at " << i;
    }
    if (first.empty()) first = out;
    ASSERT_TRUE(first == out) << "with " << pool.threads() << " threads";
  });
}
TEST(Cumulative, LongLanesAreSummedInPartsWithTheSameResultForAnyNumberOfThreads) {
  for (const std::int64_t n : {32'768, 32'769, 65'536, 100'003, 262'151}) {
    expect_long_sums<float>(n, 0);
    expect_long_sums<double>(n, 0);
    expect_long_sums<float>(n, std::numeric_limits<float>::infinity());
    expect_long_sums<double>(n, -std::numeric_limits<double>::infinity());
  }
}

template <class T>
std::vector<std::int64_t> plain_arg(const View& x, int axis, bool largest) {
  std::vector<std::int64_t> result;
  const Shape kept = x.shape.with(axis, 1);
  plain::for_each_index(kept, [&](std::vector<std::int64_t> index, std::size_t) {
    T best = plain::at<T>(x, index);
    std::int64_t where = 0;
    for (std::int64_t i = 1; i < x.shape[axis]; ++i) {
      index[static_cast<std::size_t>(axis)] = i;
      const T value = plain::at<T>(x, index);
      if (best == best && (value != value || (largest ? value > best : value < best))) {
        best = value;
        where = i;
      }
    }
    result.push_back(where);
  });
  return result;
}

template <class T>
class ArgReduce : public testing::Test {};
using ArgTypes = testing::Types<float, double, std::uint8_t, std::int32_t, std::int64_t, std::uint64_t>;
TYPED_TEST_SUITE(ArgReduce, ArgTypes);

TYPED_TEST(ArgReduce, FindsTheFirstExtremeAlongEveryAxis) {
  for (const Shape& shape :
       {Shape{1}, Shape{2}, Shape{17}, Shape{5000}, Shape{7, 40}, Shape{3, 200, 5}, Shape{2, 3, 4, 90}, Shape{0, 4}}) {
    const auto values = plain::numbers<TypeParam>(shape.elements(), 5);
    const View x = plain::view(values, shape);
    for (int axis = 0; axis < shape.rank(); ++axis) {
      if (shape[axis] == 0) continue;
      for (const bool largest : {false, true})
        with_pools([&](ThreadPool& pool) {
          std::vector<std::int64_t> out;
          arg_reduce(pool, x, {axis, largest}, plain::target(out, shape.with(axis, 1)));
          EXPECT_EQ(out, (plain_arg<TypeParam>(x, axis, largest))) << to_string(shape) << " axis " << axis;
        });
    }
  }
}

TEST(ArgReduceOfFloats, TheFirstNaNIsTheExtreme) {
  for (const std::int64_t n : {3, 40, 3000})
    for (const std::int64_t where : {std::int64_t{0}, n / 2, n - 1}) {
      auto values = plain::numbers<float>(n);
      values[static_cast<std::size_t>(where)] = kNaN;
      values.back() = kNaN;
      ThreadPool pool(2);
      std::vector<std::int64_t> out;
      for (const bool largest : {false, true}) {
        arg_reduce(pool, plain::view(values, {n}), {0, largest}, plain::target(out, {1}));
        EXPECT_EQ(out[0], where);
        arg_reduce(pool, plain::view(values, {n, 1}), {0, largest}, plain::target(out, {1, 1}));
        EXPECT_EQ(out[0], where);
      }
    }
}

TEST(ArgReduceOfFloats, InfinitiesEverywhereStillGiveTheFirst) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> low(100, -inf), high(100, inf);
  ThreadPool pool(1);
  std::vector<std::int64_t> out;
  for (const bool largest : {false, true})
    for (const auto* values : {&low, &high}) {
      arg_reduce(pool, plain::view(*values, {100}), {0, largest}, plain::target(out, {1}));
      EXPECT_EQ(out[0], 0);
    }
}

TEST(Iota, CountsAlongOneAxis) {
  with_pools([&](ThreadPool& pool) {
    std::vector<std::int64_t> out;
    iota(pool, {1}, plain::target(out, {2, 3, 2}));
    EXPECT_EQ(out, (std::vector<std::int64_t>{0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2}));
    iota(pool, {0}, plain::target(out, {4}));
    EXPECT_EQ(out, (std::vector<std::int64_t>{0, 1, 2, 3}));
    iota(pool, {0}, plain::target(out, {0, 3}));
  });
}

TEST(Iota, CountsOnOverTheChunksOfThreads) {
  with_pools([&](ThreadPool& pool) {
    std::vector<std::int64_t> out;
    iota(pool, {1}, plain::target(out, {3, 50'000}));
    for (std::size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], static_cast<std::int64_t>(i % 50'000)) << i;
  });
}

}  // namespace
}  // namespace tenon::cpu

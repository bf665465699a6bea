#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "backends/cpu/plain.h"

namespace tenon::cpu {
namespace {

template <class T>
void expect_sorted(const View& x, int axis, bool descending) {
  std::vector<std::int64_t> expected(static_cast<std::size_t>(x.shape.elements()));
  const Strides strides = contiguous_strides(x.shape);
  plain::for_each_index(x.shape.with(axis, 1), [&](std::vector<std::int64_t> index, std::size_t) {
    const auto a = static_cast<std::size_t>(axis);
    std::vector<T> lane;
    for (std::int64_t i = 0; i < x.shape[axis]; ++i) {
      index[a] = i;
      lane.push_back(plain::at<T>(x, index));
    }
    std::vector<std::int64_t> order(lane.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](std::int64_t i, std::int64_t j) {
      const T left = lane[static_cast<std::size_t>(i)], right = lane[static_cast<std::size_t>(j)];
      if ((left != left) != (right != right)) return left == left;
      if (left < right || left > right) return descending ? left > right : left < right;
      return i < j;  // stable
    });
    for (std::int64_t i = 0; i < x.shape[axis]; ++i) {
      index[a] = i;
      std::int64_t offset = 0;
      for (std::size_t d = 0; d < index.size(); ++d) offset += index[d] * strides[d];
      expected[static_cast<std::size_t>(offset)] = order[static_cast<std::size_t>(i)];
    }
  });
  plain::with_pools([&](ThreadPool& pool) {
    std::vector<std::byte> scratch(arg_sort_scratch_bytes(pool, x, axis) + 64);
    auto* aligned = reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(scratch.data()) + 63) / 64 * 64);
    std::vector<std::int64_t> out;
    arg_sort(pool, x, {axis, descending}, plain::target(out, x.shape), {aligned, arg_sort_scratch_bytes(pool, x, axis)});
    ASSERT_TRUE(out == expected) << to_string(x.shape) << " axis " << axis << " threads " << pool.threads();
  });
}

template <class T>
class ArgSort : public testing::Test {};
using SortTypes =
    testing::Types<float, double, std::uint8_t, std::int8_t, std::int16_t, std::uint32_t, std::int64_t, std::uint64_t>;
TYPED_TEST_SUITE(ArgSort, SortTypes);

TYPED_TEST(ArgSort, IsStableAlongEveryAxisInBothDirections) {
  for (const Shape& shape :
       {Shape{1}, Shape{2}, Shape{300}, Shape{4000}, Shape{5, 7}, Shape{3, 700, 2}, Shape{0, 2}, Shape{2, 0}}) {
    auto values = plain::numbers<TypeParam>(shape.elements(), 9);
    if constexpr (std::is_signed_v<TypeParam>)
      for (std::size_t i = 0; i < values.size(); i += 3) values[i] = static_cast<TypeParam>(-values[i]);
    for (std::size_t i = 0; i + 5 < values.size(); i += 5) values[i] = values[i + 5];  // ties
    for (int axis = 0; axis < shape.rank(); ++axis)
      for (const bool descending : {false, true}) expect_sorted<TypeParam>(plain::view(values, shape), axis, descending);
  }
}

TYPED_TEST(ArgSort, OrdersManyShortLanesOfEveryLength) {
  for (std::int64_t n = 1; n <= 66; ++n) {
    std::vector<TypeParam> values = plain::numbers<TypeParam>(35 * n, static_cast<std::uint32_t>(n));
    for (std::size_t i = 0; i + 5 < values.size(); i += 5) values[i] = values[i + 5];  // ties
    if constexpr (std::is_floating_point_v<TypeParam>) {
      for (std::size_t i = 3; i < values.size(); i += 11) values[i] = std::numeric_limits<TypeParam>::quiet_NaN();
      for (std::size_t i = 1; i < values.size(); i += 7) values[i] = i % 2 == 0 ? TypeParam{0} : -TypeParam{0};
    }
    expect_sorted<TypeParam>(plain::view(values, {35, n}), 1, n % 2 == 0);
    expect_sorted<TypeParam>(plain::view(values, {5, n, 7}), 1, n % 2 == 1);
  }
}

TYPED_TEST(ArgSort, OrdersTheLimitsOfItsType) {
  using Limits = std::numeric_limits<TypeParam>;
  const std::vector<TypeParam> values{Limits::max(), TypeParam{1},  Limits::lowest(),
                                      TypeParam{0},  Limits::max(), Limits::lowest()};
  for (const bool descending : {false, true}) expect_sorted<TypeParam>(plain::view(values, {6}), 0, descending);
}

TEST(ArgSortOfFloats, PutsNaNLastAndTakesBothZerosForEqual) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  std::vector<float> values{nan, 0.0f, -0.0f, inf, -nan, -inf, -0.0f, 0.0f, 1.5f, 1e-45f, -1e-45f};
  for (const bool descending : {false, true}) expect_sorted<float>(plain::view(values, {11}), 0, descending);
  while (values.size() < 3000) values.push_back(values[values.size() % 11]);
  for (const bool descending : {false, true}) expect_sorted<float>(plain::view(values, {3000}), 0, descending);
}

TEST(ArgSortOfFloats, ALongLaneIsSortedByAllThreads) {
  auto values = plain::numbers<float>(70'000, 3);
  for (std::size_t i = 0; i + 9 < values.size(); i += 9) values[i] = values[i + 9];
  expect_sorted<float>(plain::view(values, {70'000}), 0, true);
  const auto wide = plain::numbers<std::int64_t>(70'000, 4);
  expect_sorted<std::int64_t>(plain::view(wide, {70'000}), 0, false);
}

TEST(ArgSortOfFloats, ReadsTransposedViews) {
  const auto values = plain::numbers<double>(40 * 30);
  expect_sorted<double>(plain::permuted(plain::view(values, {40, 30}), {1, 0}), 1, false);
  expect_sorted<double>(plain::permuted(plain::view(values, {40, 30}), {1, 0}), 0, true);
}

TEST(ArgSortOfLongKeys, WhoseLeadingBitsAreEqualForFewOrForAll) {
  for (const std::int64_t n : {1000, 70'000}) {
    std::vector<double> values(static_cast<std::size_t>(n));
    const auto draw = [&](double first, double width) {
      std::uint64_t state = 12345;
      for (double& value : values) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        value = first + width * (static_cast<double>(state >> 11) * 0x1p-53);
      }
    };
    draw(0, 1);
    expect_sorted<double>(plain::view(values, {n}), 0, false);
    draw(0, 1);
    values[3] = std::numeric_limits<double>::quiet_NaN();
    values[5] = -values[5];
    expect_sorted<double>(plain::view(values, {n}), 0, true);
    draw(1, 0x1p-30);  // all share the leading bits of the window
    values[7] = -1e300;
    expect_sorted<double>(plain::view(values, {n}), 0, false);
    std::fill(values.begin(), values.end(), 2.5);
    expect_sorted<double>(plain::view(values, {n}), 0, true);
  }
}

}  // namespace
}  // namespace tenon::cpu

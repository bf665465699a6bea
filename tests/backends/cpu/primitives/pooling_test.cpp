#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backends/cpu/plain.h"

namespace tenon::cpu {
namespace {

// One result after the other, straight from the definition.
template <class T>
std::vector<T> plain_window(const View& x, const WindowAttr& attr, const Shape& out) {
  std::vector<T> result(static_cast<std::size_t>(out.elements()));
  const int axes = out.rank() - 2;
  std::vector<std::int64_t> sizes(attr.size.begin(), attr.size.begin() + axes);
  const Shape taps{std::span<const std::int64_t>(sizes)};
  plain::for_each_index(out, [&](const std::vector<std::int64_t>& place, std::size_t n) {
    T best = std::is_integral_v<T> ? std::numeric_limits<T>::lowest() : -std::numeric_limits<T>::infinity();
    double sum = 0;
    std::uint64_t wrapped = 0;
    plain::for_each_index(taps, [&](const std::vector<std::int64_t>& tap, std::size_t) {
      std::vector<std::int64_t> index = place;
      for (std::size_t d = 0; d < tap.size(); ++d) {
        index[d + 2] = place[d + 2] * attr.stride[d] - attr.pad_low[d] + tap[d] * attr.dilation[d];
        if (index[d + 2] < 0 || index[d + 2] >= x.shape[static_cast<int>(d) + 2]) return;
      }
      const T value = plain::at<T>(x, index);
      if (best == best && !(value <= best)) best = value;
      sum += static_cast<double>(value);
      if constexpr (std::is_integral_v<T>) wrapped += static_cast<std::uint64_t>(value);
    });
    if (attr.max)
      result[n] = best;
    else if constexpr (std::is_integral_v<T>)
      result[n] = static_cast<T>(wrapped);
    else
      result[n] = static_cast<T>(sum);
  });
  return result;
}

Shape pooled(const Shape& x, const WindowAttr& attr) {
  std::vector<std::int64_t> dims{x[0], x[1]};
  for (int i = 2; i < x.rank(); ++i) {
    const auto d = static_cast<std::size_t>(i - 2);
    dims.push_back((x[i] + attr.pad_low[d] + attr.pad_high[d] - (attr.size[d] - 1) * attr.dilation[d] - 1) / attr.stride[d] + 1);
  }
  return Shape(std::span<const std::int64_t>(dims));
}

template <class T>
void expect_pooled(const View& x, WindowAttr attr) {
  const Shape shape = pooled(x.shape, attr);
  for (const bool max : {true, false}) {
    attr.max = max;
    const std::vector<T> expected = plain_window<T>(x, attr, shape);
    plain::with_pools([&](ThreadPool& pool) {
      std::vector<T> out;
      window(pool, x, attr, plain::target(out, shape));
      for (std::size_t i = 0; i < out.size(); ++i) {
        if (expected[i] != expected[i]) {
          ASSERT_NE(out[i], out[i]) << to_string(x.shape) << " at " << i;
        } else if (out[i] != expected[i]) {  // infinities have no difference
          ASSERT_NEAR(static_cast<double>(out[i]), static_cast<double>(expected[i]), 1e-6) << to_string(x.shape) << " at " << i;
        }
      }
    });
  }
}

template <class T>
class Window : public testing::Test {};
using WindowTypes = testing::Types<float, double, std::int64_t, std::uint64_t, std::int8_t>;
TYPED_TEST_SUITE(Window, WindowTypes);

TYPED_TEST(Window, SlidesOverOneTwoAndThreeAxes) {
  const auto values = plain::numbers<TypeParam>(2 * 3 * 6 * 7 * 8);
  expect_pooled<TypeParam>(plain::view(values, {2, 3, 50}), {.size = {3, 1, 1}});
  expect_pooled<TypeParam>(plain::view(values, {2, 3, 50}),
                           {.size = {4, 1, 1}, .stride = {3, 1, 1}, .pad_low = {2, 0, 0}, .pad_high = {3, 0, 0}});
  expect_pooled<TypeParam>(plain::view(values, {2, 3, 9, 11}), {.size = {2, 2, 1}, .stride = {2, 2, 1}});
  expect_pooled<TypeParam>(
      plain::view(values, {2, 3, 9, 11}),
      {.size = {3, 2, 1}, .stride = {1, 2, 1}, .dilation = {2, 3, 1}, .pad_low = {1, 2, 0}, .pad_high = {0, 1, 0}});
  expect_pooled<TypeParam>(plain::view(values, {2, 3, 6, 7, 8}),
                           {.size = {2, 3, 3}, .stride = {2, 1, 2}, .pad_low = {1, 1, 1}, .pad_high = {1, 1, 1}});
}

TYPED_TEST(Window, MayCoverTheWholeImage) {
  const auto values = plain::numbers<TypeParam>(2 * 2 * 20 * 31);
  expect_pooled<TypeParam>(plain::view(values, {2, 2, 20, 31}), {.size = {20, 31, 1}});
  expect_pooled<TypeParam>(plain::view(values, {2, 2, 20, 31}),
                           {.size = {3, 31, 1}, .pad_low = {0, 5, 0}, .pad_high = {0, 2, 0}});
  expect_pooled<TypeParam>(plain::view(values, {2, 2, 620}),
                           {.size = {30, 1, 1}, .stride = {100, 1, 1}, .dilation = {3, 1, 1}, .pad_low = {7, 0, 0}});
}

TYPED_TEST(Window, HandlesRowsLongerThanABlockOfPlaces) {
  const auto values = plain::numbers<TypeParam>(2 * 3000);
  expect_pooled<TypeParam>(plain::view(values, {1, 2, 3000}), {.size = {5, 1, 1}, .pad_low = {2, 0, 0}, .pad_high = {2, 0, 0}});
}

TEST(WindowOfFloats, ANaNStaysInEveryWindowThatHoldsIt) {
  auto values = plain::numbers<float>(1 * 1 * 12 * 20);
  values[5 * 20 + 7] = std::numeric_limits<float>::quiet_NaN();
  values[0] = -std::numeric_limits<float>::infinity();
  expect_pooled<float>(plain::view(values, {1, 1, 12, 20}), {.size = {3, 3, 1}});
  expect_pooled<float>(plain::view(values, {1, 1, 12, 20}), {.size = {12, 20, 1}});
}

TEST(WindowOfFloats, ReadsPermutedViews) {
  const auto values = plain::numbers<float>(2 * 9 * 10 * 3);  // channels last
  expect_pooled<float>(plain::permuted(plain::view(values, {2, 9, 10, 3}), {0, 3, 1, 2}),
                       {.size = {3, 3, 1}, .stride = {2, 1, 1}});
}

}  // namespace
}  // namespace tenon::cpu

#include "backends/cpu/primitives/sorting/selection.h"

#include <gtest/gtest.h>

#include <limits>

#include "backends/cpu/plain.h"

namespace tenon::cpu {
namespace {

// As a part of arg_sort().
template <class T>
void expect_part_of_order(const View& x, const TopKAttr& attr) {
  ThreadPool single(1);
  std::vector<std::byte> sort_scratch(arg_sort_scratch_bytes(single, x, attr.axis) + 64);
  const auto aligned = [](std::vector<std::byte>& memory) {
    return reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(memory.data()) + 63) / 64 * 64);
  };
  std::vector<std::int64_t> sorted;
  arg_sort(single, x, {attr.axis, attr.descending}, plain::target(sorted, x.shape),
           {aligned(sort_scratch), sort_scratch.size() - 64});
  View order = plain::view(sorted, x.shape);
  const Shape shape = x.shape.with(attr.axis, attr.count);
  order.data = sorted.data() + attr.first * order.strides[static_cast<std::size_t>(attr.axis)];
  order.shape = shape;
  const std::vector<std::int64_t> expected = plain::elements<std::int64_t>(order);
  plain::with_pools([&](ThreadPool& pool) {
    std::vector<std::byte> scratch(select_scratch_bytes(pool, x, attr) + 64);
    std::vector<std::int64_t> out;
    select(pool, x, attr, plain::target(out, shape), {aligned(scratch), select_scratch_bytes(pool, x, attr)});
    ASSERT_TRUE(out == expected) << to_string(x.shape) << " axis " << attr.axis << " from " << attr.first << " count "
                                 << attr.count << " threads " << pool.threads();
  });
}

template <class T>
class Selection : public testing::Test {};
using Types = testing::Types<float, double, std::uint8_t, std::int16_t, std::int64_t>;
TYPED_TEST_SUITE(Selection, Types);

TYPED_TEST(Selection, IsPartOfTheSortedOrder) {
  for (const Shape& shape :
       {Shape{1}, Shape{700}, Shape{9000}, Shape{5, 1000}, Shape{3, 1500, 2}, Shape{30, 9}, Shape{4, 64, 5}}) {
    auto values = plain::numbers<TypeParam>(shape.elements(), 5);
    for (std::size_t i = 0; i + 5 < values.size(); i += 5) values[i] = values[i + 5];  // ties
    for (int axis = 0; axis < shape.rank(); ++axis)
      for (const bool descending : {false, true}) {
        const std::int64_t n = shape[axis];
        for (const auto& [first, count] : {std::pair<std::int64_t, std::int64_t>{0, 1},
                                           {0, std::min<std::int64_t>(n, 50)},
                                           {n / 2, 1},
                                           {(n - 1) / 2, std::min<std::int64_t>(2, n - (n - 1) / 2)},
                                           {n - 1, 1},
                                           {0, n}})
          expect_part_of_order<TypeParam>(plain::view(values, shape), {axis, first, count, descending});
      }
  }
}

TEST(SelectionOfFloats, PutsNaNLastAndTakesBothZerosForEqual) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  for (const std::size_t period : {std::size_t{2}, std::size_t{11}}) {
    std::vector<float> values{nan, 0.0f, -0.0f, inf, -nan, -inf, -0.0f, 0.0f, 1.5f, 1e-45f, -1e-45f};
    values.resize(period, nan);
    while (values.size() < 3000) values.push_back(period == 2 ? nan : values[values.size() % 11]);
    values.back() = 7;
    for (const bool descending : {false, true})
      for (const std::int64_t first : {0, 1500, 2990})
        expect_part_of_order<float>(plain::view(values, {3000}), {0, first, 10, descending});
  }
}

TEST(SelectionOfFloats, FindsElementsThatComeInTheWrongOrder) {
  std::vector<float> rising(5000);
  for (std::size_t i = 0; i < rising.size(); ++i) rising[i] = static_cast<float>(i);
  for (const bool descending : {false, true}) expect_part_of_order<float>(plain::view(rising, {5000}), {0, 0, 100, descending});
}

}  // namespace
}  // namespace tenon::cpu

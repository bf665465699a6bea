#include <gtest/gtest.h>

#include "backends/cpu/plain.h"
#include "tenon/error.h"

namespace tenon::cpu {
namespace {

using plain::permuted, plain::with_pools;

std::vector<std::int64_t> some_indices(std::int64_t n, std::int64_t extent, std::uint32_t seed = 3) {
  std::vector<std::int64_t> indices = plain::numbers<std::int64_t>(n, seed);
  for (std::int64_t& i : indices) i = i % (2 * extent) - extent;
  return indices;
}

std::int64_t from_start(std::int64_t index, std::int64_t extent) { return index < 0 ? index + extent : index; }

template <class T>
void expect_taken(const View& x, int axis, const View& indices) {
  std::vector<std::int64_t> dims(x.shape.begin(), x.shape.begin() + axis);
  dims.insert(dims.end(), indices.shape.begin(), indices.shape.end());
  dims.insert(dims.end(), x.shape.begin() + axis + 1, x.shape.end());
  const Shape shape{std::span<const std::int64_t>(dims)};
  with_pools([&](ThreadPool& pool) {
    std::vector<T> out;
    take(pool, x, indices, axis, plain::target(out, shape));
    plain::for_each_index(shape, [&](const std::vector<std::int64_t>& index, std::size_t n) {
      const auto middle = index.begin() + axis, after = middle + indices.shape.rank();
      std::vector<std::int64_t> from(index.begin(), middle);
      from.push_back(from_start(plain::at<std::int64_t>(indices, {middle, after}), x.shape[axis]));
      from.insert(from.end(), after, index.end());
      ASSERT_EQ(out[n], plain::at<T>(x, from)) << to_string(x.shape) << " axis " << axis << " at " << n;
    });
  });
}

TEST(Take, PicksSlicesAlongEveryAxis) {
  const auto values = plain::numbers<float>(4 * 5 * 6);
  const auto bytes = plain::numbers<std::uint8_t>(4 * 5 * 6);
  for (int axis = 0; axis < 3; ++axis) {
    const Shape shape{4, 5, 6};
    const auto indices = some_indices(6, shape[axis]);
    expect_taken<float>(plain::view(values, shape), axis, plain::view(indices, {6}));
    expect_taken<float>(plain::view(values, shape), axis, plain::view(indices, {2, 3}));
    expect_taken<float>(plain::view(values, shape), axis, plain::view(indices, {}));
    expect_taken<float>(plain::view(values, shape), axis, permuted(plain::view(indices, {2, 3}), {1, 0}));
    expect_taken<std::uint8_t>(plain::view(bytes, shape), axis, plain::view(indices, {6}));
    expect_taken<float>(permuted(plain::view(values, {6, 5, 4}), {2, 1, 0}), axis, plain::view(indices, {6}));
  }
}

TEST(Take, OfManyRowsIsSharedOut) {
  const auto values = plain::numbers<float>(100 * 64);
  const auto indices = some_indices(3000, 100);
  expect_taken<float>(plain::view(values, {100, 64}), 0, plain::view(indices, {3000}));
}

TEST(Take, NamesTheIndexThatIsOutside) {
  const auto values = plain::numbers<float>(12);
  ThreadPool pool(2);
  for (const std::int64_t bad :
       {std::int64_t{4}, std::int64_t{-5}, std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()}) {
    const std::vector<std::int64_t> indices{0, bad};
    std::vector<float> out;
    const Target to = plain::target(out, {2, 3});
    try {
      take(pool, plain::view(values, {4, 3}), plain::view(indices, {2}), 0, to);
      FAIL() << bad;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::out_of_range);
      EXPECT_NE(std::string(e.what()).find(std::to_string(bad)), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find("4"), std::string::npos);
    }
    for (const float x : out) EXPECT_EQ(x, 0) << "nothing is written when an index is bad";
  }
}

TEST(Gather, ReadsFarAlongAnAxisInBlocksOfColumns) {
  const Shape shape{9000, 70};  // an axis whose reach is beyond the L2 cache
  const auto values = plain::numbers<float>(shape.elements());
  const auto indices = some_indices(shape.elements(), shape[0]);
  with_pools([&](ThreadPool& pool) {
    std::vector<float> out;
    gather(pool, plain::view(values, shape), plain::view(indices, shape), 0, plain::target(out, shape));
    for (std::size_t i = 0; i < out.size(); ++i)
      ASSERT_EQ(out[i], values[static_cast<std::size_t>(from_start(indices[i], shape[0])) * 70 + i % 70]) << i;
  });
}

TEST(Gather, ReadsOneElementPerIndex) {
  const auto values = plain::numbers<double>(6 * 7 * 8);
  const View x = plain::view(values, {6, 7, 8});
  for (int axis = 0; axis < 3; ++axis) {
    const Shape shape{4, 5, 6};  // smaller than x on every axis
    const auto indices = some_indices(shape.elements(), x.shape[axis]);
    const View at = plain::view(indices, shape);
    for (const View& source : {x, permuted(plain::view(values, {8, 7, 6}), {2, 1, 0})})
      with_pools([&](ThreadPool& pool) {
        std::vector<double> out;
        gather(pool, source, at, axis, plain::target(out, shape));
        plain::for_each_index(shape, [&](std::vector<std::int64_t> index, std::size_t n) {
          index[static_cast<std::size_t>(axis)] = from_start(indices[n], x.shape[axis]);
          ASSERT_EQ(out[n], plain::at<double>(source, index)) << "axis " << axis << " at " << n;
        });
      });
  }
  const std::vector<std::int64_t> bad{8};
  std::vector<double> out;
  ThreadPool pool(1);
  EXPECT_THROW(gather(pool, x, plain::view(bad, {1, 1, 1}), 2, plain::target(out, {1, 1, 1})), Error);
}

template <class T>
class Scatter : public testing::Test {};
using ScatterTypes = testing::Types<float, double, std::int8_t, std::uint16_t, std::int64_t>;
TYPED_TEST_SUITE(Scatter, ScatterTypes);

template <class T>
void expect_scattered(const Shape& shape, const Shape& index_shape, int axis, bool add) {
  const auto before = plain::numbers<T>(shape.elements(), 1);
  const auto updates = plain::numbers<T>(index_shape.elements(), 2);
  const auto indices = some_indices(index_shape.elements(), shape[axis]);
  const Strides strides = contiguous_strides(shape);
  std::vector<T> expected = before;
  plain::for_each_index(index_shape, [&](std::vector<std::int64_t> index, std::size_t n) {
    index[static_cast<std::size_t>(axis)] = from_start(indices[n], shape[axis]);
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < 3; ++d) offset += index[d] * strides[d];
    T& place = expected[static_cast<std::size_t>(offset)];
    place = static_cast<T>(add ? place + updates[n] : updates[n]);
  });
  // The same tensor, stored as it is and with its axes in the other order.
  std::vector<T> stored(before.size());
  const Shape reversed{shape[2], shape[1], shape[0]};
  const View other = permuted(plain::view(stored, reversed), {2, 1, 0});
  plain::for_each_index(shape, [&](std::vector<std::int64_t> index, std::size_t n) {
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < 3; ++d) offset += index[d] * other.strides[d];
    stored[static_cast<std::size_t>(offset)] = before[n];
  });
  for (const View& x : {plain::view(before, shape), other})
    with_pools([&](ThreadPool& pool) {
      std::vector<T> out;
      scatter(pool, x, plain::view(indices, index_shape), plain::view(updates, index_shape), {axis, add},
              plain::target(out, shape));
      ASSERT_TRUE(out == expected) << "axis " << axis << " add " << add << " threads " << pool.threads();
    });
}

TYPED_TEST(Scatter, WritesOrAddsInIndexOrder) {
  const Shape shape{6, 7, 90};
  for (int axis = 0; axis < 3; ++axis)
    for (const bool add : {false, true}) {
      expect_scattered<TypeParam>(shape, {5, 7, 80}, axis, add);
      expect_scattered<TypeParam>(shape, shape.with(axis, 5), axis, add);  // updates for every lane
      expect_scattered<TypeParam>(shape, shape.with(axis, 100), axis, add);
    }
}

TEST(ScatterOfOneValue, BroadcastUpdatesAreRead) {
  const std::vector<std::int64_t> indices{1, 3, -1, 1};
  const std::vector<std::int32_t> one{1};
  const std::vector<std::int32_t> zeros(5);
  std::vector<std::int32_t> out;
  View updates = plain::view(one, {4});
  updates.strides[0] = 0;
  ThreadPool pool(1);
  scatter(pool, plain::view(zeros, {5}), plain::view(indices, {4}), updates, {0, true}, plain::target(out, {5}));
  EXPECT_EQ(out, (std::vector<std::int32_t>{0, 2, 0, 1, 1}));
}

TEST(ScatterOfOneValue, BoolsAreOred) {
  const std::vector<std::int64_t> indices{0, 0, 1};
  const std::vector<std::uint8_t> updates{1, 1, 0};
  const std::vector<std::uint8_t> before{0, 1, 0};
  std::vector<std::uint8_t> out(3);
  ThreadPool pool(1);
  scatter(pool, dense_view(before.data(), DType::boolean, {3}), plain::view(indices, {3}),
          dense_view(updates.data(), DType::boolean, {3}), {0, true}, dense_target(out.data(), DType::boolean, {3}));
  EXPECT_EQ(out, (std::vector<std::uint8_t>{1, 1, 0}));
}

TEST(ScatterOfOneValue, AnIndexOutsideIsRefused) {
  const std::vector<float> before{9, 9, 9}, updates{1, 2, 3};
  for (const std::int64_t bad : {std::int64_t{3}, std::int64_t{-4}, std::numeric_limits<std::int64_t>::min()}) {
    const std::vector<std::int64_t> indices{0, 1, bad};
    std::vector<float> out;
    ThreadPool pool(1);
    EXPECT_THROW(scatter(pool, plain::view(before, {3}), plain::view(indices, {3}), plain::view(updates, {3}), {0, false},
                         plain::target(out, {3})),
                 Error);
  }
}

}  // namespace
}  // namespace tenon::cpu

#include "tenon/array/shape.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "tenon/error.h"

namespace tenon {
namespace {

template <class Action>
ErrorCode code_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::ok;
}

TEST(Shape, AScalarHasOneElementAndNoAxes) {
  const Shape scalar;
  EXPECT_EQ(scalar.rank(), 0);
  EXPECT_EQ(scalar.elements(), 1);
  EXPECT_EQ(to_string(scalar), "[]");
}

TEST(Shape, CountsElements) {
  EXPECT_EQ(Shape({2, 3, 4}).elements(), 24);
  EXPECT_EQ(Shape({2, 0, 4}).elements(), 0);
  EXPECT_EQ(to_string(Shape({2, 3})), "[2, 3]");
}

TEST(Shape, RefusesNegativeExtentsAndTooManyAxes) {
  EXPECT_EQ(code_of([] { Shape({2, -1}); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([] { Shape(std::vector<std::int64_t>(17, 1)); }), ErrorCode::invalid_argument);
  EXPECT_EQ(Shape(std::vector<std::int64_t>(16, 1)).rank(), kMaxRank);
}

TEST(Shape, RefusesMoreThanTwoToTheForty) {
  EXPECT_EQ(Shape({std::int64_t{1} << 20, std::int64_t{1} << 20}).elements(), kMaxElements);
  EXPECT_EQ(code_of([] { Shape({(std::int64_t{1} << 20) + 1, std::int64_t{1} << 20}); }), ErrorCode::resource_exhausted);
}

TEST(Shape, ProductsThatWouldOverflowAreRefusedToo) {
  constexpr std::int64_t big = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(code_of([] { Shape({big, big, big}); }), ErrorCode::resource_exhausted);
  EXPECT_EQ(code_of([] { Shape({big, 2, 0}); }), ErrorCode::resource_exhausted);
}

TEST(Shape, WithReplacesOneExtent) {
  EXPECT_EQ(Shape({2, 3, 4}).with(1, 7), Shape({2, 7, 4}));
  EXPECT_EQ(Shape({2, 3, 4}).with(1, 0).elements(), 0);
  EXPECT_EQ(code_of([] { Shape({2, 3}).with(0, -2); }), ErrorCode::invalid_argument);
}

TEST(Shape, EqualityLooksAtRankAndExtents) {
  EXPECT_EQ(Shape({2, 3}), Shape({2, 3}));
  EXPECT_FALSE(Shape({2, 3}) == Shape({3, 2}));
  EXPECT_FALSE(Shape({2, 3}) == Shape({2, 3, 1}));
}

TEST(Broadcast, FollowsNumPy) {
  EXPECT_EQ(broadcast({2, 3}, {3}), Shape({2, 3}));
  EXPECT_EQ(broadcast({2, 1}, {1, 5}), Shape({2, 5}));
  EXPECT_EQ(broadcast({}, {4}), Shape({4}));
  EXPECT_EQ(broadcast({1}, {0}), Shape({0}));
  EXPECT_EQ(broadcast({8, 1, 6, 1}, {7, 1, 5}), Shape({8, 7, 6, 5}));
}

TEST(Broadcast, NamesBothShapesWhenTheyDoNotMatch) {
  try {
    broadcast({2, 3}, {4});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_NE(std::string(error.what()).find("[2, 3] and [4]"), std::string::npos) << error.what();
  }
  EXPECT_EQ(code_of([] { broadcast({0}, {3}); }), ErrorCode::invalid_argument);
}

TEST(Broadcast, OfOneShapeToAnotherIsOneWay) {
  EXPECT_TRUE(broadcastable({3}, {2, 3}));
  EXPECT_TRUE(broadcastable({}, {2, 3}));
  EXPECT_TRUE(broadcastable({1, 3}, {0, 3}));
  EXPECT_FALSE(broadcastable({2, 3}, {3}));
  EXPECT_FALSE(broadcastable({2}, {1}));
}

TEST(Axis, CountsFromTheEndWhenNegative) {
  EXPECT_EQ(normalize_axis(1, 3), 1);
  EXPECT_EQ(normalize_axis(-1, 3), 2);
  EXPECT_EQ(normalize_axis(-3, 3), 0);
  EXPECT_EQ(code_of([] { normalize_axis(3, 3); }), ErrorCode::out_of_range);
  EXPECT_EQ(code_of([] { normalize_axis(-4, 3); }), ErrorCode::out_of_range);
  EXPECT_EQ(code_of([] { normalize_axis(0, 0); }), ErrorCode::out_of_range);
  EXPECT_EQ(code_of([] { normalize_axis(std::numeric_limits<std::int64_t>::min(), 3); }), ErrorCode::out_of_range);
}

TEST(Strides, AreRowMajor) {
  const Strides strides = contiguous_strides({2, 3, 4});
  EXPECT_EQ(strides[0], 12);
  EXPECT_EQ(strides[1], 4);
  EXPECT_EQ(strides[2], 1);
  EXPECT_EQ(strides[3], 0);
}

}  // namespace
}  // namespace tenon

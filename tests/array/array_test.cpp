#include "tenon/array.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tenon/error.h"

namespace tenon {
namespace {

using enum DType;

template <class Action>
ErrorCode code_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::ok;
}

TEST(HostArray, DefaultIsAnEmptyFloatVector) {
  const HostArray array;
  EXPECT_EQ(array.dtype(), f32);
  EXPECT_EQ(array.shape(), Shape({0}));
  EXPECT_EQ(array.bytes(), 0u);
  EXPECT_TRUE(array.to_doubles().empty());
  EXPECT_EQ(array.cast(i32).dtype(), i32);
}

TEST(HostArray, HoldsTheValuesItWasMadeFrom) {
  const HostArray array = HostArray::from<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(array.elements(), 6);
  EXPECT_EQ(array.bytes(), 24u);
  EXPECT_EQ(array.value(4), 5);
  EXPECT_EQ(array.view<float>()[5], 6.0f);
}

TEST(HostArray, ZerosAndFullFillEveryElement) {
  for (DType dtype : all_dtypes()) {
    EXPECT_EQ(HostArray::zeros(dtype, {3, 5}).to_doubles(), std::vector<double>(15, 0.0)) << name(dtype);
    EXPECT_EQ(HostArray::full(dtype, {3, 5}, 1).to_doubles(), std::vector<double>(15, 1.0)) << name(dtype);
  }
  EXPECT_EQ(HostArray::full(u8, {2}, 300).to_doubles(), std::vector<double>(2, 255.0));
  EXPECT_EQ(HostArray::full(i32, {}, -2.9).value(0), -2);
  EXPECT_TRUE(std::isnan(HostArray::full(f16, {1}, std::nan("")).value(0)));
}

TEST(HostArray, WrongByteCountsAreRefused) {
  EXPECT_EQ(code_of([] { HostArray::from<float>({2}, {1, 2, 3}); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([] { HostArray::from_bytes(bfloat8_b, {1}, {}); }), ErrorCode::invalid_argument);
}

TEST(HostArray, CopiesShareBytesUntilOneIsWritten) {
  HostArray a = HostArray::from<std::int32_t>({3}, {1, 2, 3});
  const HostArray b = a;
  EXPECT_EQ(a.data(), b.data());
  a.mutable_view<std::int32_t>()[0] = 9;
  EXPECT_NE(a.data(), b.data());
  EXPECT_EQ(a.value(0), 9);
  EXPECT_EQ(b.value(0), 1);
}

TEST(HostArray, ASoleOwnerWritesInPlace) {
  HostArray a = HostArray::zeros(f32, {4});
  const std::byte* before = a.data();
  EXPECT_EQ(a.mutable_data(), before);
}

TEST(HostArray, BorrowedMemoryIsNeverWrittenAndFreedWithTheLastCopy) {
  auto owner = std::make_shared<std::vector<float>>(std::vector<float>{1, 2});
  const std::weak_ptr<std::vector<float>> alive = owner;
  {
    HostArray a = HostArray::borrow(f32, {2}, owner->data(), owner);
    const HostArray copy = a;
    EXPECT_EQ(static_cast<const void*>(a.data()), owner->data());
    a.mutable_view<float>()[0] = 7;
    EXPECT_EQ((*owner)[0], 1.0f);
    owner.reset();
    EXPECT_FALSE(alive.expired());
    EXPECT_EQ(copy.value(1), 2);
  }
  EXPECT_TRUE(alive.expired());
  EXPECT_EQ(code_of([] { HostArray::borrow(f32, {2}, nullptr, nullptr); }), ErrorCode::invalid_argument);
}

TEST(HostArray, AViewOfAnotherTypeIsRefused) {
  const HostArray a = HostArray::zeros(f32, {2});
  EXPECT_EQ(code_of([&] { (void)a.view<double>(); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([&] { (void)a.view<std::int32_t>(); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([] { (void)HostArray::zeros(f16, {2}).view<std::uint16_t>(); }), ErrorCode::invalid_argument);
}

TEST(HostArray, BoolIsViewedAsBytesToo) {
  const HostArray a = HostArray::from<bool>({3}, {true, false, true});
  EXPECT_EQ(a.view<std::uint8_t>()[2], 1);
  EXPECT_TRUE(a.view<bool>()[0]);
  EXPECT_EQ(code_of([] { (void)HostArray::zeros(u8, {1}).view<bool>(); }), ErrorCode::invalid_argument);
}

TEST(HostArray, BoolBytesAreZeroOrOneWhateverCameIn) {
  const std::byte bytes[] = {std::byte{0}, std::byte{2}, std::byte{255}};
  const HostArray a = HostArray::from_bytes(boolean, {3}, bytes);
  EXPECT_EQ(a.view<std::uint8_t>()[1], 1);
  EXPECT_EQ(a.view<std::uint8_t>()[2], 1);
}

TEST(HostArray, ReshapeSharesBytes) {
  const HostArray a = HostArray::from<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  const HostArray b = a.reshape({3, 2});
  EXPECT_EQ(b.data(), a.data());
  EXPECT_EQ(b.shape(), Shape({3, 2}));
  EXPECT_EQ(code_of([&] { a.reshape({4}); }), ErrorCode::invalid_argument);
}

TEST(HostArray, ReshapeOfABlockFormatKeepsTheValuesItCan) {
  std::vector<float> values(64);
  for (std::size_t i = 0; i < 64; ++i) values[i] = static_cast<float>(i % 8);
  const HostArray a = HostArray::from<float>({2, 32}, values).cast(bfloat8_b);
  const HostArray b = a.reshape({64});
  EXPECT_EQ(b.dtype(), bfloat8_b);
  EXPECT_EQ(b.bytes(), storage_bytes(bfloat8_b, {64}));
  EXPECT_EQ(b.to_doubles(), a.to_doubles());
}

TEST(HostArray, CastToItsOwnTypeCostsNothing) {
  const HostArray a = HostArray::zeros(f32, {4});
  EXPECT_EQ(a.cast(f32).data(), a.data());
}

TEST(HostArray, SmallWholeNumbersSurviveACastBetweenAnyTwoTypes) {
  const HostArray ones = HostArray::from<std::uint8_t>({2, 3}, {0, 1, 1, 0, 0, 1});
  for (DType from : all_dtypes())
    for (DType to : all_dtypes()) {
      const HostArray out = ones.cast(from).cast(to);
      EXPECT_EQ(out.dtype(), to);
      EXPECT_EQ(out.shape(), ones.shape());
      EXPECT_EQ(out.to_doubles(), ones.to_doubles()) << name(from) << " to " << name(to);
    }
}

TEST(HostArray, ToDoublesIsExactForNarrowTypes) {
  const HostArray a = HostArray::from<float>({3}, {0.1f, -65504.0f, 1e-7f});
  EXPECT_EQ(a.to_doubles()[0], static_cast<double>(0.1f));
  EXPECT_EQ(a.cast(f16).value(1), -65504);
  EXPECT_EQ(a.cast(f16).value(2), 0x1p-23);
}

TEST(HostArray, AnIndexOutsideIsRefused) {
  const HostArray a = HostArray::zeros(f32, {4});
  EXPECT_EQ(code_of([&] { (void)a.value(4); }), ErrorCode::out_of_range);
  EXPECT_EQ(code_of([&] { (void)a.value(-1); }), ErrorCode::out_of_range);
}

TEST(HostArray, ArraysWithoutElementsHaveAPointerThatMayBePassedOn) {
  for (DType dtype : all_dtypes()) {
    HostArray a = HostArray::zeros(dtype, {0, 3});
    EXPECT_NE(a.data(), nullptr);
    EXPECT_EQ(a.bytes(), 0u);
    EXPECT_NE(a.mutable_data(), nullptr);
    EXPECT_EQ(a.cast(bfloat8_b).cast(f64).shape(), Shape({0, 3}));
  }
}

}  // namespace
}  // namespace tenon

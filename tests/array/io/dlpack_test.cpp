#include "tenon/array/dlpack.h"

#include <gtest/gtest.h>

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
    EXPECT_NE(error.hint(), "") << error.what();
    return error.code();
  }
  return ErrorCode::ok;
}

// A tensor of another library, which counts how often it is freed.
struct Foreign {
  std::vector<float> values{1, 2, 3, 4, 5, 6};
  std::vector<std::int64_t> shape{2, 3};
  std::vector<std::int64_t> strides{3, 1};
  int freed = 0;
  dlpack::ManagedTensor managed{};
  dlpack::ManagedTensorVersioned versioned{};

  Foreign() {
    managed.tensor = {values.data(), {dlpack::kCpu, 0}, 2, {dlpack::kFloat, 32, 1}, shape.data(), strides.data(), 0};
    managed.manager_context = this;
    managed.deleter = [](dlpack::ManagedTensor* self) { ++static_cast<Foreign*>(self->manager_context)->freed; };
    versioned.version = {1, 0};
    versioned.tensor = managed.tensor;
    versioned.manager_context = this;
    versioned.deleter = [](dlpack::ManagedTensorVersioned* self) { ++static_cast<Foreign*>(self->manager_context)->freed; };
  }
};

TEST(DlpackExport, DescribesTypeShapeAndStrides) {
  dlpack::ManagedTensor* tensor = to_dlpack(HostArray::from<float>({2, 3}, {1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(tensor->tensor.device.type, 1);
  EXPECT_EQ(tensor->tensor.ndim, 2);
  EXPECT_EQ(tensor->tensor.dtype.code, dlpack::kFloat);
  EXPECT_EQ(tensor->tensor.dtype.bits, 32);
  EXPECT_EQ(tensor->tensor.dtype.lanes, 1);
  EXPECT_EQ(tensor->tensor.shape[1], 3);
  EXPECT_EQ(tensor->tensor.strides[0], 3);
  EXPECT_EQ(tensor->tensor.byte_offset, 0u);
  EXPECT_EQ(static_cast<float*>(tensor->tensor.data)[5], 6.0f);
  tensor->deleter(tensor);
}

TEST(DlpackExport, AMovedArrayIsNotCopied) {
  HostArray array = HostArray::zeros(f32, {4});
  const void* data = array.data();
  dlpack::ManagedTensor* tensor = to_dlpack(std::move(array));
  EXPECT_EQ(tensor->tensor.data, data);
  tensor->deleter(tensor);
}

TEST(DlpackExport, TheOldFormNeverExposesSharedBytesToWriting) {
  const HostArray array = HostArray::zeros(f32, {4});
  dlpack::ManagedTensor* tensor = to_dlpack(array);
  static_cast<float*>(tensor->tensor.data)[0] = 9;
  EXPECT_EQ(array.value(0), 0);
  tensor->deleter(tensor);
}

TEST(DlpackExport, TheVersionedFormSharesBytesReadOnly) {
  HostArray array = HostArray::zeros(f32, {4});
  dlpack::ManagedTensorVersioned* shared = to_dlpack_versioned(array);
  EXPECT_EQ(shared->version.major, 1u);
  EXPECT_EQ(shared->tensor.data, array.data());
  EXPECT_EQ(shared->flags, dlpack::kReadOnly);
  shared->deleter(shared);
  dlpack::ManagedTensorVersioned* own = to_dlpack_versioned(std::move(array));
  EXPECT_EQ(own->flags, 0u);
  own->deleter(own);
}

TEST(DlpackExport, BytesLiveUntilTheDeleterRuns) {
  dlpack::ManagedTensorVersioned* tensor = nullptr;
  {
    const HostArray array = HostArray::full(i64, {3}, 5);
    tensor = to_dlpack_versioned(array);
  }
  EXPECT_EQ(static_cast<std::int64_t*>(tensor->tensor.data)[2], 5);
  tensor->deleter(tensor);
}

TEST(DlpackExport, BlockFormatsCannotBeDescribed) {
  EXPECT_EQ(code_of([] { to_dlpack(HostArray::zeros(bfloat8_b, {2})); }), ErrorCode::unimplemented);
  EXPECT_EQ(code_of([] { to_dlpack_versioned(HostArray::zeros(bfloat4_b, {2})); }), ErrorCode::unimplemented);
}

TEST(Dlpack, EveryTypeGoesThereAndBack) {
  for (DType dtype : all_dtypes()) {
    if (is_block(dtype)) continue;
    for (const Shape& shape : {Shape{}, Shape{0, 2}, Shape{7}, Shape{2, 3, 4}}) {
      const HostArray array = HostArray::full(dtype, shape, 1);
      for (const HostArray& back : {from_dlpack(to_dlpack(array)), from_dlpack(to_dlpack_versioned(array))}) {
        EXPECT_EQ(back.dtype(), dtype);
        EXPECT_EQ(back.shape(), shape);
        EXPECT_EQ(back.to_doubles(), array.to_doubles());
      }
    }
  }
}

TEST(DlpackImport, BorrowsRowMajorTensorsAndFreesThemOnceWithTheLastCopy) {
  Foreign foreign;
  {
    const HostArray array = from_dlpack(&foreign.managed);
    EXPECT_EQ(static_cast<const void*>(array.data()), foreign.values.data());
    const HostArray copy = array;
    EXPECT_EQ(copy.to_doubles(), (std::vector<double>{1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(foreign.freed, 0);
  }
  EXPECT_EQ(foreign.freed, 1);
}

TEST(DlpackImport, NeverWritesToTheTensor) {
  Foreign foreign;
  HostArray array = from_dlpack(&foreign.versioned);
  array.mutable_view<float>()[0] = 9;
  EXPECT_EQ(foreign.values[0], 1.0f);
  EXPECT_EQ(foreign.freed, 1) << "the copy needs the tensor no more";
}

TEST(DlpackImport, NullStridesMeanRowMajor) {
  Foreign foreign;
  foreign.managed.tensor.strides = nullptr;
  EXPECT_EQ(from_dlpack(&foreign.managed).to_doubles(), (std::vector<double>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(foreign.freed, 1);
}

TEST(DlpackImport, OtherStridesAreCopiedToRowMajorAndFreedAtOnce) {
  Foreign foreign;
  foreign.shape = {3, 2};
  foreign.strides = {1, 3};
  const HostArray array = from_dlpack(&foreign.managed);
  EXPECT_EQ(foreign.freed, 1);
  EXPECT_EQ(array.shape(), Shape({3, 2}));
  EXPECT_EQ(array.to_doubles(), (std::vector<double>{1, 4, 2, 5, 3, 6}));
}

TEST(DlpackImport, NegativeAndZeroStridesWork) {
  Foreign reversed;
  reversed.shape = {2, 3};
  reversed.strides = {0, -1};
  reversed.managed.tensor.byte_offset = 2 * sizeof(float);
  EXPECT_EQ(from_dlpack(&reversed.managed).to_doubles(), (std::vector<double>{3, 2, 1, 3, 2, 1}));
}

TEST(DlpackImport, StridesOfAxesOfOneElementDoNotMatter) {
  Foreign foreign;
  foreign.shape = {1, 6};
  foreign.strides = {999, 1};
  const HostArray array = from_dlpack(&foreign.managed);
  EXPECT_EQ(static_cast<const void*>(array.data()), foreign.values.data());
}

TEST(DlpackImport, BoolsAreCopiedAndMadeZeroOrOne) {
  Foreign foreign;
  std::vector<std::uint8_t> bytes{0, 1, 2, 255, 0, 7};
  foreign.managed.tensor.data = bytes.data();
  foreign.managed.tensor.dtype = {dlpack::kBool, 8, 1};
  const HostArray array = from_dlpack(&foreign.managed);
  EXPECT_EQ(foreign.freed, 1);
  EXPECT_EQ(array.view<std::uint8_t>()[3], 1);
}

TEST(DlpackImport, UnalignedTensorsAreCopied) {
  Foreign foreign;
  std::vector<std::byte> bytes(25);
  foreign.managed.tensor.data = bytes.data();
  foreign.managed.tensor.byte_offset = 1;
  const HostArray array = from_dlpack(&foreign.managed);
  EXPECT_NE(array.data(), bytes.data() + 1);
  EXPECT_EQ(array.value(5), 0);
}

TEST(DlpackImport, PinnedHostMemoryIsBorrowed) {
  for (const std::int32_t type : {3, 11}) {
    Foreign foreign;
    foreign.managed.tensor.device = {type, 0};
    const void* const data = foreign.managed.tensor.data;
    EXPECT_EQ(from_dlpack(&foreign.managed).data(), data);
  }
}

TEST(DlpackImport, RefusalsFreeTheTensorOnce) {
  const auto refused = [](auto change) {
    Foreign foreign;
    change(foreign.managed.tensor);
    const ErrorCode code = code_of([&] { from_dlpack(&foreign.managed); });
    EXPECT_EQ(foreign.freed, 1);
    return code;
  };
  EXPECT_EQ(refused([](dlpack::Tensor& t) { t.device.type = 2; }), ErrorCode::unimplemented);
  EXPECT_EQ(refused([](dlpack::Tensor& t) { t.dtype.lanes = 4; }), ErrorCode::unimplemented);
  EXPECT_EQ(refused([](dlpack::Tensor& t) { t.dtype = {dlpack::kComplex, 64, 1}; }), ErrorCode::unimplemented);
  EXPECT_EQ(refused([](dlpack::Tensor& t) { t.dtype.bits = 8; }), ErrorCode::unimplemented);
  EXPECT_EQ(refused([](dlpack::Tensor& t) { t.ndim = kMaxRank + 1; }), ErrorCode::invalid_argument);
  EXPECT_EQ(refused([](dlpack::Tensor& t) { t.ndim = -1; }), ErrorCode::invalid_argument);
  EXPECT_EQ(refused([](dlpack::Tensor& t) { t.shape = nullptr; }), ErrorCode::invalid_argument);
  EXPECT_EQ(refused([](dlpack::Tensor& t) { t.data = nullptr; }), ErrorCode::invalid_argument);
  EXPECT_EQ(refused([](dlpack::Tensor& t) { t.shape[0] = -2; }), ErrorCode::invalid_argument);
  EXPECT_EQ(refused([](dlpack::Tensor& t) { t.strides[0] = INT64_MAX; }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([] { from_dlpack(static_cast<dlpack::ManagedTensor*>(nullptr)); }), ErrorCode::invalid_argument);
}

TEST(DlpackImport, AnotherMajorVersionIsFreedAndNotLookedAt) {
  Foreign foreign;
  foreign.versioned.version = {2, 0};
  foreign.versioned.tensor.shape = reinterpret_cast<std::int64_t*>(8);  // whoever reads it crashes
  EXPECT_EQ(code_of([&] { from_dlpack(&foreign.versioned); }), ErrorCode::unimplemented);
  EXPECT_EQ(foreign.freed, 1);
}

TEST(DlpackImport, ATensorWithoutADeleterIsFine) {
  Foreign foreign;
  foreign.managed.deleter = nullptr;
  EXPECT_EQ(from_dlpack(&foreign.managed).value(0), 1);
}

}  // namespace
}  // namespace tenon

// Memory exchanged with other libraries of the process, on a driver of the test's own: addresses, lifetimes, order of streams.
#include <gtest/gtest.h>

#include "backends/cuda/fake_driver.h"
#include "hal/memory_exchange.h"
#include "tenon/error.h"
#include "tenon/expression.h"

namespace tenon::cuda {
namespace {

class CudaExchange : public testing::Test {
 protected:
  std::unique_ptr<OpenDevice> open() { return open_with(fake.table(), FakeDriver::card(), {}, fake.how()); }
  static MemoryExchange& exchange(OpenDevice& device) { return dynamic_cast<MemoryExchange&>(device); }
  static RawStream stream(std::intptr_t number) { return reinterpret_cast<RawStream>(number); }
  static TensorType type() { return {DType::f32, {64}}; }
  static constexpr std::intptr_t kOurs = 1;  // the fake's first stream, which is the device's

  FakeDriver fake;
};

TEST_F(CudaExchange, ALentBufferHasTheAddressThatKernelsUse) {
  const auto device = open();
  const std::shared_ptr<Buffer> buffer = device->upload(HostArray::full(DType::f32, {64}, 3));
  const auto lent = exchange(*device).lend(buffer, kDefaultStream);
  EXPECT_EQ(reinterpret_cast<DevicePointer>(lent.address), static_cast<DeviceBuffer&>(*buffer).address());
  EXPECT_EQ(static_cast<const float*>(lent.address)[63], 3);
  EXPECT_EQ(exchange(*device).place().type, dlpack::kCuda);
  EXPECT_EQ(exchange(*device).place().id, 0);
}

TEST_F(CudaExchange, TheReceiversStreamWaitsForOursAndOursForItsDefaultStreamAtTheEnd) {
  const auto device = open();
  const std::shared_ptr<Buffer> buffer = device->upload(HostArray::full(DType::f32, {64}, 3));
  fake.ordered.clear();
  {
    const auto lent = exchange(*device).lend(buffer, 77);
  }
  ASSERT_EQ(fake.ordered.size(), 1u);
  EXPECT_EQ(fake.ordered[0], std::pair(stream(kOurs), stream(77)));
  EXPECT_EQ(fake.synchronized, 1) << "that stream may be gone, so that only waiting for all is safe";
  fake.ordered.clear();
  {
    const auto lent = exchange(*device).lend(buffer, kDefaultStream);
  }
  ASSERT_EQ(fake.ordered.size(), 2u);
  EXPECT_EQ(fake.synchronized, 1);
  fake.ordered.clear();
  const auto lent = exchange(*device).lend(buffer, kNoStream);
  EXPECT_TRUE(fake.ordered.empty());
}

TEST_F(CudaExchange, LentMemoryAndTheContextOutliveClosing) {
  auto device = open();
  std::shared_ptr<Buffer> buffer = device->upload(HostArray::full(DType::f32, {64}, 3));
  auto lent = exchange(*device).lend(buffer, kDefaultStream);
  buffer.reset();
  device->close();
  device.reset();
  EXPECT_EQ(fake.contexts, 1);
  EXPECT_EQ(static_cast<const float*>(lent.address)[0], 3);
  lent = {};
  EXPECT_EQ(fake.contexts, 0);
  EXPECT_TRUE(fake.memory.empty());
}

TEST_F(CudaExchange, AdoptedMemoryIsUsedInPlaceAndGoesBackToItsOwner) {
  auto device = open();
  alignas(256) float theirs[64] = {};
  auto owner = std::make_shared<int>(0);
  fake.ordered.clear();
  std::shared_ptr<Buffer> buffer = exchange(*device).adopt(type(), theirs, owner, kDefaultStream);
  ASSERT_TRUE(buffer);
  ASSERT_EQ(fake.ordered.size(), 1u);
  EXPECT_EQ(fake.ordered[0], std::pair(stream(kDefaultStream), stream(kOurs)));
  const auto program = device->compile(parse_expression("a + 1", {{"a", DType::f32, {64}}}));
  const auto result = device->allocate(type());
  program->run({buffer.get()}, {result.get()});
  EXPECT_EQ(fake.launches.at(0).arguments[0], reinterpret_cast<DevicePointer>(&theirs[0]));
  auto lent = exchange(*device).lend(buffer, kDefaultStream);
  EXPECT_EQ(lent.address, &theirs[0]);
  buffer.reset();
  device->close();
  EXPECT_EQ(owner.use_count(), 2) << "the borrower still has it";
  lent = {};
  EXPECT_EQ(owner.use_count(), 1);
}

TEST_F(CudaExchange, MemoryThatKernelsCannotReadAsTheyDoTheirOwnIsNotAdopted) {
  const auto device = open();
  alignas(256) float theirs[65] = {};
  EXPECT_EQ(exchange(*device).adopt(type(), theirs + 1, std::make_shared<int>(0), kDefaultStream), nullptr);
}

}  // namespace
}  // namespace tenon::cuda

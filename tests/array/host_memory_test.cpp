#include "array/host_memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tenon/array.h"
#include "tenon/error.h"

namespace tenon {
namespace {

namespace hm = host_memory;

class HostMemory : public testing::Test {
 protected:
  void SetUp() override { hm::trim(); }
  void TearDown() override {
    hm::set_kept_limit(limit_);
    hm::trim();
  }
  std::size_t limit_ = static_cast<std::size_t>(hm::statistics().kept_limit_bytes);
};

bool aligned(const void* p, std::size_t to) { return reinterpret_cast<std::uintptr_t>(p) % to == 0; }

TEST_F(HostMemory, BlocksAreAlignedAndWritable) {
  for (std::size_t bytes : {0, 1, 63, 64, 1000, 65535, 65536, 70001, 1 << 20, (2 << 20) - 1, 2 << 20, (2 << 20) + 1, 5 << 20}) {
    void* block = hm::allocate(bytes);
    EXPECT_TRUE(aligned(block, hm::class_bytes(bytes) >= hm::kMappedFrom ? hm::kMappedFrom : hm::kAlignment)) << bytes;
    std::memset(block, 0xa5, bytes);
    hm::release(block, bytes);
  }
}

TEST_F(HostMemory, ALargeBlockIsReusedForItsSizeClass) {
  for (std::size_t bytes : {std::size_t{72} << 10, std::size_t{112} << 10, std::size_t{3} << 20}) {
    void* first = hm::allocate(bytes);
    hm::release(first, bytes);
    const std::uint64_t reuses = hm::statistics().reuses;
    void* second = hm::allocate(bytes - bytes / 100);
    EXPECT_EQ(second, first) << bytes;
    EXPECT_EQ(hm::statistics().reuses, reuses + 1);
    hm::release(second, bytes - bytes / 100);
  }
}

TEST_F(HostMemory, AFreshResultOfAnEarlierSizeTouchesNoNewMemory) {
  const std::byte* before = HostArray::empty(DType::f32, {1 << 20}).data();
  EXPECT_EQ(HostArray::empty(DType::f32, {1 << 20}).data(), before);
}

TEST_F(HostMemory, SizeClassesWasteAtMostAnEighth) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 100000; ++i) {
    const std::size_t bytes = hm::kPooledFrom + (random() >> (20 + random() % 30));
    const std::size_t size = hm::class_bytes(bytes);
    ASSERT_GE(size, bytes);
    ASSERT_LE(size - bytes, bytes / 8);
    ASSERT_EQ(hm::class_bytes(size), size);
  }
}

TEST_F(HostMemory, KeptBytesStayWithinTheLimitAndTheOldestGoesFirst) {
  constexpr std::size_t kOne = 256 << 10;
  hm::set_kept_limit(2 * kOne);
  void* a = hm::allocate(kOne);
  void* b = hm::allocate(kOne);
  void* c = hm::allocate(2 * kOne);
  hm::release(a, kOne);
  hm::release(b, kOne);
  EXPECT_EQ(hm::statistics().kept_bytes, 2 * kOne);
  hm::release(c, 2 * kOne);
  EXPECT_EQ(hm::statistics().kept_bytes, 2 * kOne);
  EXPECT_EQ(hm::statistics().kept_blocks, 1u);
  hm::set_kept_limit(0);
  EXPECT_EQ(hm::statistics().kept_bytes, 0u);
}

TEST_F(HostMemory, TrimGivesEverythingBack) {
  hm::release(hm::allocate(4 << 20), 4 << 20);
  EXPECT_GT(hm::statistics().kept_bytes, 0u);
  hm::trim();
  EXPECT_EQ(hm::statistics().kept_bytes, 0u);
  EXPECT_EQ(hm::statistics().kept_blocks, 0u);
}

TEST_F(HostMemory, StatisticsCountWhatIsInUse) {
  const hm::Statistics before = hm::statistics();
  {
    const HostArray a = HostArray::zeros(DType::f32, {1000});
    const HostArray copy = a;
    const hm::Statistics during = hm::statistics();
    EXPECT_EQ(during.in_use_bytes, before.in_use_bytes + 4000);
    EXPECT_EQ(during.allocations, before.allocations + 1);
    EXPECT_EQ(during.allocated_bytes, before.allocated_bytes + 4000);
  }
  EXPECT_EQ(hm::statistics().in_use_bytes, before.in_use_bytes);
}

TEST_F(HostMemory, MoreThanTheMachineHasIsRefusedWithTheSizeInTheSentence) {
  try {
    HostArray::empty(DType::f64, {1000000000000});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::resource_exhausted);
    EXPECT_NE(std::string(error.what()).find("7450.6 GiB"), std::string::npos) << error.what();
    EXPECT_FALSE(error.hint().empty());
  }
  const std::uint64_t in_use = hm::statistics().in_use_bytes;
  EXPECT_THROW(hm::allocate(~std::size_t{0}), Error);
  EXPECT_EQ(hm::statistics().in_use_bytes, in_use);
}

TEST_F(HostMemory, ThreadsNeverShareABlock) {
  std::vector<std::thread> threads;
  std::atomic<int> clashes{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t, &clashes] {
      std::mt19937 random(static_cast<unsigned>(t));
      for (int i = 0; i < 2000; ++i) {
        const std::size_t bytes = hm::kPooledFrom + random() % (256 << 10);
        auto* block = static_cast<unsigned char*>(hm::allocate(bytes));
        block[0] = block[bytes - 1] = static_cast<unsigned char>(t);
        std::this_thread::yield();
        if (block[0] != t || block[bytes - 1] != t) ++clashes;
        hm::release(block, bytes);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(clashes, 0);
}

// An array that dies after main must find the pool alive.
HostArray& dies_late() {
  static HostArray array = HostArray::zeros(DType::f32, {1 << 16});
  return array;
}
TEST_F(HostMemory, ArraysOfStaticDurationMayOutliveMain) { EXPECT_EQ(dies_late().elements(), 1 << 16); }

}  // namespace
}  // namespace tenon

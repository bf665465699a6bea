#include "server/compute/freed_memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace tenon::server {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

// Small blocks, every other one of which is freed and the last one kept: a heap that does not shrink by itself.
std::vector<std::unique_ptr<char[]>> fragmented(std::size_t blocks) {
  constexpr std::size_t kBlock = 32 << 10;
  std::vector<std::unique_ptr<char[]>> all;
  for (std::size_t i = 0; i < blocks; ++i) {
    all.push_back(std::make_unique<char[]>(kBlock));
    std::memset(all.back().get(), 1, kBlock);
  }
  for (std::size_t i = 0; i + 1 < blocks; ++i)
    if (i % 64 != 0) all[i] = nullptr;
  return all;
}

TEST(FreedMemory, GoesBackToTheSystem) {
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  GTEST_SKIP() << "sanitizers have an allocator of their own";
#endif
#endif
  FreedMemory freed;
  std::vector<std::unique_ptr<char[]>> kept;
  std::thread([&] { kept = fragmented(4096); }).join();  // 128 MiB in the heap of a thread
  const std::uint64_t before = FreedMemory::resident_bytes();
  ASSERT_GT(before, 100 * kMiB);
  EXPECT_FALSE(freed.is_wanted(before, 64 * kMiB)) << "all of it is in use";
  ASSERT_TRUE(freed.is_wanted(0, 64 * kMiB));
  EXPECT_FALSE(freed.is_wanted(0, 64 * kMiB)) << "one at a time";
  freed.trim();
  EXPECT_LT(FreedMemory::resident_bytes(), before - 64 * kMiB);
  EXPECT_FALSE(freed.is_wanted(0, 64 * kMiB)) << "nothing has grown since";
}

}  // namespace
}  // namespace tenon::server

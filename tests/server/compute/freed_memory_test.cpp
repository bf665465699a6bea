#include "server/compute/memory/freed_memory.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace tenon::server {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kMiB = 1 << 20;

// Sanitizers have an allocator of their own.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SKIP_WITH_SANITIZERS() GTEST_SKIP()
#endif
#endif
#ifndef SKIP_WITH_SANITIZERS
#define SKIP_WITH_SANITIZERS() (void)0
#endif

using Blocks = std::vector<std::unique_ptr<char[]>>;

// Most of them are freed and the last one is kept: a heap that does not shrink by itself.
void leave_holes(Blocks& all) {
  for (std::size_t i = 0; i + 1 < all.size(); ++i)
    if (i % 64 != 0) all[i] = nullptr;
}

Blocks fragmented(std::size_t blocks, bool has_holes = true) {
  constexpr std::size_t kBlock = 32 << 10;
  Blocks all;
  for (std::size_t i = 0; i < blocks; ++i) {
    all.push_back(std::make_unique<char[]>(kBlock));
    std::memset(all.back().get(), 1, kBlock);
  }
  if (has_holes) leave_holes(all);
  return all;
}

TEST(FreedMemory, GoesBackToTheSystem) {
  SKIP_WITH_SANITIZERS();
  FreedMemory freed;
  Blocks kept;
  std::thread([&] { kept = fragmented(4096); }).join();  // 128 MiB in the heap of a thread
  const std::uint64_t before = FreedMemory::resident_bytes();
  ASSERT_GT(before, 100 * kMiB);
  const FreedMemory::Time start{};
  EXPECT_FALSE(freed.is_wanted(before, 64 * kMiB, start)) << "all of it is in use";
  ASSERT_TRUE(freed.is_wanted(0, 64 * kMiB, start));
  EXPECT_FALSE(freed.is_wanted(0, 64 * kMiB, start + 1h)) << "one at a time";
  freed.trim();
  EXPECT_LT(FreedMemory::resident_bytes(), before - 64 * kMiB);
  EXPECT_FALSE(freed.is_wanted(0, kMiB, start + 500ms)) << "once a second at most";
}

TEST(FreedMemory, WhatIsFreedAfterATrimGoesBackToo) {
  SKIP_WITH_SANITIZERS();
  FreedMemory freed;
  Blocks kept;
  std::thread([&] { kept = fragmented(4096, false); }).join();
  const FreedMemory::Time start{};
  ASSERT_TRUE(freed.is_wanted(0, 64 * kMiB, start));
  freed.trim();
  const std::uint64_t before = FreedMemory::resident_bytes();
  leave_holes(kept);  // the process does not grow by this
  ASSERT_TRUE(freed.is_wanted(0, 64 * kMiB, start + FreedMemory::kLongest));
  freed.trim();
  EXPECT_LT(FreedMemory::resident_bytes(), before - 64 * kMiB);
}

TEST(FreedMemory, TrimsThatDoNotHelpBecomeRare) {
  SKIP_WITH_SANITIZERS();
  FreedMemory freed;
  FreedMemory::Time now{};
  int trims = 0;
  for (int second = 0; second < 100; ++second, now += 1s)
    if (freed.is_wanted(0, kMiB, now)) {
      freed.trim();
      ++trims;
    }
  EXPECT_GE(trims, 5);
  EXPECT_LE(trims, 12) << "a limit of 1 MiB is always exceeded, and nothing can be given back";
}

TEST(FreedMemory, LargeBlocksLeaveNoHoles) {
  SKIP_WITH_SANITIZERS();
  const pid_t child = fork();  // the settings are for a whole process
  if (child == 0) {
    FreedMemory::tame_heaps();
    const std::uint64_t before = FreedMemory::resident_bytes();
    for (int i = 0; i < 4; ++i) {  // by default this raises the threshold to 8 MiB
      volatile char* const block = new char[8 << 20];
      block[0] = 1;
      delete[] block;
    }
    Blocks kept;
    for (std::size_t i = 0; i < 64; ++i) {
      auto large = std::make_unique<char[]>(4 << 20);
      std::memset(large.get(), 1, 4 << 20);
      kept.push_back(std::make_unique<char[]>(64));  // after it: the heap cannot shrink below
      kept.push_back(std::move(large));
    }
    std::erase_if(kept, [i = 0](const auto&) mutable { return i++ % 2 == 1; });
    _exit(FreedMemory::resident_bytes() < before + 64 * kMiB ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "256 MiB of freed blocks are still there";
}

}  // namespace
}  // namespace tenon::server

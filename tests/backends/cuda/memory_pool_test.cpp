#include "backends/cuda/memory/memory_pool.h"

#include <gtest/gtest.h>
#include <algorithm>

#include <limits>
#include <set>

namespace tenon::cuda {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

// A card of |capacity| bytes that only counts.
struct Card {
  std::uint64_t capacity = std::uint64_t{1} << 40, used = 0, limit = std::numeric_limits<std::uint64_t>::max();
  DevicePointer next = 0x10000000;
  std::map<DevicePointer, std::uint64_t> taken;
  int calls = 0;

  MemoryPool::Source source() {
    return {.take = [this](std::uint64_t bytes) -> std::optional<DevicePointer> {
              ++calls;
              if (used + bytes > capacity) return std::nullopt;
              const DevicePointer address = next;
              next += bytes + kMiB;
              taken[address] = bytes;
              used += bytes;
              return address;
            },
            .give_back =
                [this](DevicePointer address) {
                  used -= taken.at(address);
                  taken.erase(address);
                },
            .limit_bytes = [this] { return limit; }};
  }
};

TEST(MemoryPool, ABlockIsAtLeastAsLargeAsAskedForAndAtMostAQuarterLarger) {
  Card card;
  MemoryPool pool(card.source());
  for (std::uint64_t bytes = 1; bytes < 64 * kMiB; bytes = bytes * 5 / 4 + 1) {
    const auto block = pool.allocate(bytes);
    ASSERT_TRUE(block);
    EXPECT_GE(block->bytes, bytes);
    const std::uint64_t step = bytes > MemoryPool::kLargestSmall ? 2 * kMiB : 512;
    EXPECT_LE(block->bytes, bytes + bytes / 4 + step);
    EXPECT_EQ(block->address % 256, 0u);
  }
}

TEST(MemoryPool, BlocksInUseDoNotOverlap) {
  Card card;
  MemoryPool pool(card.source());
  std::map<DevicePointer, std::uint64_t> used;
  for (int i = 0; i < 2000; ++i) {
    const auto block = pool.allocate(static_cast<std::uint64_t>(i * 37 % 9000));
    ASSERT_TRUE(block);
    const auto after = used.lower_bound(block->address);
    const DevicePointer end_before = after == used.begin() ? 0 : std::prev(after)->first + std::prev(after)->second;
    ASSERT_LE(end_before, block->address);
    ASSERT_TRUE(after == used.end() || block->address + block->bytes <= after->first);
    used[block->address] = block->bytes;
  }
}

TEST(MemoryPool, ABlockGivenBackIsHandedOutAgainWithoutTheDriver) {
  Card card;
  MemoryPool pool(card.source());
  for (const std::uint64_t bytes : {std::uint64_t{4096}, 100 * kMiB}) {
    const auto first = pool.allocate(bytes);
    pool.give_back(*first);
    const int calls = card.calls;
    const auto second = pool.allocate(bytes);
    EXPECT_EQ(second->address, first->address);
    EXPECT_EQ(card.calls, calls);
  }
}

TEST(MemoryPool, BlocksComeInTheOrderOfTheirAddressesHoweverTheyWereGivenBack) {
  Card card;
  MemoryPool pool(card.source());
  for (const std::uint64_t bytes : {std::uint64_t{4096}, 100 * kMiB}) {
    std::vector<MemoryPool::Block> blocks;
    for (int i = 0; i < 4; ++i) blocks.push_back(*pool.allocate(bytes));
    std::ranges::sort(blocks, {}, &MemoryPool::Block::address);
    for (const int i : {2, 0, 3, 1}) pool.give_back(blocks[static_cast<std::size_t>(i)]);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(pool.allocate(bytes)->address, blocks[static_cast<std::size_t>(i)].address);
  }
}

TEST(MemoryPool, WhatNobodyUsesMakesRoomForWhatDoesNotFit) {
  Card card;
  card.capacity = 100 * kMiB;
  MemoryPool pool(card.source());
  pool.give_back(*pool.allocate(60 * kMiB));
  const auto small = pool.allocate(1000);
  pool.give_back(*small);
  EXPECT_TRUE(pool.allocate(90 * kMiB));
  EXPECT_FALSE(pool.allocate(20 * kMiB));
  EXPECT_EQ(card.taken.size(), 1u) << "the slab nobody used went back as well";
}

TEST(MemoryPool, ASlabWithOneBlockInUseStays) {
  Card card;
  MemoryPool pool(card.source());
  const auto used = pool.allocate(1000), unused = pool.allocate(1000);
  pool.give_back(*unused);
  pool.trim();
  EXPECT_EQ(card.used, MemoryPool::kSlabBytes);
  pool.give_back(*used);
  pool.trim();
  EXPECT_EQ(card.used, 0u);
  EXPECT_EQ(pool.held_bytes(), 0u);
  EXPECT_TRUE(pool.allocate(1000)) << "trimming forgets no class";
}

TEST(MemoryPool, WhatIsKeptStaysWithinTheLimitEvenWhenTheCardHasMore) {
  Card card;
  card.limit = 50 * kMiB;
  MemoryPool pool(card.source());
  pool.give_back(*pool.allocate(40 * kMiB));
  EXPECT_TRUE(pool.allocate(30 * kMiB));
  EXPECT_LE(card.used, card.limit);
}

TEST(MemoryPool, ClosingFreesEverythingAndIgnoresWhatComesLater) {
  Card card;
  MemoryPool pool(card.source());
  const auto block = pool.allocate(10 * kMiB), small = pool.allocate(10);
  pool.close();
  EXPECT_EQ(card.used, 0u);
  pool.give_back(*block);
  pool.give_back(*small);
  EXPECT_FALSE(pool.allocate(10));
}

TEST(MemoryPool, WhatIsLentOutlivesClosingAndIsFreedWhenItComesBack) {
  Card card;
  MemoryPool pool(card.source());
  const auto large = pool.allocate(10 * kMiB), small = pool.allocate(10), other = pool.allocate(20 * kMiB);
  for (const auto& block : {large, small, small}) pool.lend(*block);
  pool.close();
  EXPECT_EQ(card.used, 10 * kMiB + MemoryPool::kSlabBytes) << "only " << other->bytes << " bytes were not lent";
  pool.take_back(*large);
  pool.take_back(*small);
  EXPECT_EQ(card.used, MemoryPool::kSlabBytes);
  pool.take_back(*small);
  EXPECT_EQ(card.used, 0u);
}

TEST(MemoryPool, WhatComesBackWhileThePoolIsOpenIsUsedAgain) {
  Card card;
  MemoryPool pool(card.source());
  const auto block = pool.allocate(10 * kMiB);
  pool.lend(*block);
  pool.take_back(*block);
  pool.give_back(*block);
  EXPECT_EQ(pool.allocate(10 * kMiB)->address, block->address);
  pool.close();
  EXPECT_EQ(card.used, 0u);
}

TEST(MemoryPool, MemoryOfALostCardIsNotFreed) {
  Card card;
  MemoryPool pool(card.source());
  pool.allocate(10 * kMiB);
  pool.abandon();
  EXPECT_GT(card.used, 0u);
}

}  // namespace
}  // namespace tenon::cuda

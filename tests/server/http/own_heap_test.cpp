#include "server/http/own_heap.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <thread>
#include <vector>

namespace tenon::server {
namespace {

using Block = std::unique_ptr<char[]>;

std::vector<Block> blocks_of_another_thread(int count, std::size_t bytes) {
  std::vector<Block> blocks;
  std::thread([&] {
    for (int i = 0; i < count; ++i) blocks.push_back(std::make_unique<char[]>(bytes));
  }).join();
  return blocks;
}

TEST(OwnHeap, WhatTheThreadFreesIsWhatItAllocatesNext) {
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  GTEST_SKIP() << "the sanitizer has its own operator new";
#endif
#endif
  std::vector<Block> blocks = blocks_of_another_thread(50, 20'000);
  std::set<char*> freed;
  for (const Block& block : blocks) freed.insert(block.get());
  const OwnHeap heap;
  const std::size_t before = heap.kept_bytes();
  blocks.clear();
  EXPECT_GE(heap.kept_bytes(), before + 50u * 16'000);
  for (int i = 0; i < 50; ++i) {
    blocks.push_back(std::make_unique<char[]>(16'000));
    EXPECT_TRUE(freed.contains(blocks.back().get()));
  }
}

TEST(OwnHeap, KeepsNeitherLargeBlocksNorTooMany) {
  std::vector<Block> large = blocks_of_another_thread(4, 1 << 20), many = blocks_of_another_thread(400, 40'000);
  const OwnHeap heap;
  large.clear();
  EXPECT_LT(heap.kept_bytes(), OwnHeap::kLargest);
  many.clear();
  EXPECT_LE(heap.kept_bytes(), OwnHeap::kMostBytes);
}

TEST(OwnHeap, EverySizeHasRoom) {
  const OwnHeap heap;
  for (int round = 0; round < 2; ++round)
    for (std::size_t bytes = 0; bytes < 200'000; bytes = bytes < 2000 ? bytes + 1 : bytes + bytes / 7) {
      const auto block = std::make_unique<char[]>(bytes);  // zeroes all of it; AddressSanitizer looks on
      EXPECT_NE(block.get(), nullptr) << bytes;
    }
}

}  // namespace
}  // namespace tenon::server

#include "base/threads/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "eventually.h"
#include "tenon/error.h"

namespace tenon {
namespace {

TEST(ThreadPool, RunsEveryChunkExactlyOnce) {
  for (int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (std::int64_t chunks : {0, 1, 2, 3, 7, 64, 1000}) {
      std::vector<std::atomic<int>> calls(static_cast<std::size_t>(chunks));
      pool.for_each(chunks, [&](std::int64_t chunk, int) { ++calls[static_cast<std::size_t>(chunk)]; });
      for (const auto& count : calls) EXPECT_EQ(count, 1);
    }
  }
}

TEST(ThreadPool, ManyShortLoopsInARowLoseNothing) {
  ThreadPool pool(4);
  std::vector<std::int64_t> plain(5);
  for (int round = 0; round < 20'000; ++round)
    pool.for_each(5, [&](std::int64_t chunk, int) { ++plain[static_cast<std::size_t>(chunk)]; });
  for (const std::int64_t count : plain) EXPECT_EQ(count, 20'000);
}

TEST(ThreadPool, WhatBodiesWriteIsVisibleAfterTheLoop) {
  ThreadPool pool(3);
  for (int round = 1; round <= 2000; ++round) {
    std::vector<int> values(17);
    pool.for_each(17, [&](std::int64_t chunk, int) { values[static_cast<std::size_t>(chunk)] = round; });
    EXPECT_EQ(std::accumulate(values.begin(), values.end(), 0), 17 * round);
  }
}

TEST(ThreadPool, WorkerNumbersAreUniqueAmongRunningBodies) {
  ThreadPool pool(4);
  std::vector<std::atomic<int>> running(4);
  std::atomic<bool> clash = false, beyond = false;
  for (int round = 0; round < 200; ++round)
    pool.for_each(64, [&](std::int64_t, int worker) {
      if (worker < 0 || worker >= 4) {
        beyond = true;
        return;
      }
      auto& mine = running[static_cast<std::size_t>(worker)];
      if (++mine != 1) clash = true;
      --mine;
    });
  EXPECT_FALSE(clash);
  EXPECT_FALSE(beyond);
}

TEST(ThreadPool, AllThreadsTakePartWhenChunksNeedEachOther) {
  ThreadPool pool(3);
  std::atomic<int> arrived = 0;
  // Each body waits for the two others: this ends only if three threads run them at one time.
  pool.for_each(3, [&](std::int64_t, int) {
    ++arrived;
    EXPECT_TRUE(test::eventually(std::chrono::seconds(60), [&] { return arrived == 3; }));
  });
  EXPECT_EQ(arrived, 3);
}

TEST(ThreadPool, TheCallerIsWorkerZero) {
  ThreadPool pool(3);
  const auto caller = std::this_thread::get_id();
  std::atomic<bool> wrong = false;
  for (int round = 0; round < 100; ++round)
    pool.for_each(9, [&](std::int64_t, int worker) {
      if ((worker == 0) != (std::this_thread::get_id() == caller)) wrong = true;
    });
  EXPECT_FALSE(wrong);
}

TEST(ThreadPool, TheFirstExceptionReachesTheCallerAndThePoolStaysUsable) {
  for (int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    for (int round = 0; round < 200; ++round) {
      EXPECT_THROW(pool.for_each(50,
                                 [&](std::int64_t chunk, int) {
                                   if (chunk == round % 50) throw std::runtime_error("chunk");
                                 }),
                   std::runtime_error);
      std::atomic<int> calls = 0;
      pool.for_each(20, [&](std::int64_t, int) { ++calls; });
      EXPECT_EQ(calls, 20);
    }
  }
}

TEST(ThreadPool, ChunksAfterAnExceptionAreSkipped) {
  ThreadPool pool(2);
  std::atomic<int> calls = 0;
  EXPECT_THROW(pool.for_each(1'000'000,
                             [&](std::int64_t, int) {
                               ++calls;
                               throw std::runtime_error("at once");
                             }),
               std::runtime_error);
  EXPECT_LE(calls, 2);
}

TEST(ThreadPool, ALoopInsideALoopRunsInItsOwnThread) {
  ThreadPool pool(4);
  std::atomic<int> calls = 0;
  std::atomic<bool> moved = false;
  pool.for_each(8, [&](std::int64_t, int) {
    const auto outer = std::this_thread::get_id();
    pool.for_each(8, [&](std::int64_t, int worker) {
      ++calls;
      if (worker != 0 || std::this_thread::get_id() != outer) moved = true;
    });
  });
  EXPECT_EQ(calls, 64);
  EXPECT_FALSE(moved);
}

TEST(ThreadPool, CallersSideBySideEachGetTheirLoopDone) {
  ThreadPool pool(3);
  std::vector<std::int64_t> sums(4);
  std::vector<std::thread> callers;
  for (std::size_t caller = 0; caller < sums.size(); ++caller)
    callers.emplace_back([&, caller] {
      for (int round = 0; round < 500; ++round) {
        std::atomic<std::int64_t> sum = 0;
        pool.for_each(10, [&](std::int64_t chunk, int) { sum += chunk; });
        sums[caller] += sum;
      }
    });
  for (auto& caller : callers) caller.join();
  for (const std::int64_t sum : sums) EXPECT_EQ(sum, 45 * 500);
}

TEST(ThreadPool, ConstBodiesAreAccepted) {
  ThreadPool pool(2);
  std::atomic<int> calls = 0;
  const auto body = [&calls](std::int64_t, int) { ++calls; };
  pool.for_each(6, body);
  EXPECT_EQ(calls, 6);
}

TEST(ThreadPool, AtLeastTheCallerIsThere) {
  ThreadPool pool(0);
  EXPECT_EQ(pool.threads(), 1);
  int calls = 0;
  pool.for_each(3, [&](std::int64_t, int worker) { calls += worker == 0; });
  EXPECT_EQ(calls, 3);
}

TEST(ThreadPool, TheProcessHasOnePool) {
  EXPECT_EQ(&process_pool(), &process_pool());
  EXPECT_GE(process_pool().threads(), 1);
}

}  // namespace
}  // namespace tenon

#include "tenon/backend/memory_budget.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>
#include <vector>

#include "tenon/error.h"

namespace tenon {
namespace {

TEST(MemoryBudget, ShareIsGivenBackWhenDropped) {
  auto budget = MemoryBudget::make("sim:0", 100);
  {
    const MemoryBudget::Share share = budget->reserve(60);
    EXPECT_EQ(budget->used_bytes(), 60u);
  }
  EXPECT_EQ(budget->used_bytes(), 0u);
  EXPECT_EQ(budget->peak_bytes(), 60u);
}

TEST(MemoryBudget, ReservationBeyondItNamesBudgetUsedAndAsked) {
  auto budget = MemoryBudget::make("sim:0", 3 * 1024);
  const MemoryBudget::Share share = budget->reserve(2 * 1024);
  try {
    budget->reserve(1025);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::resource_exhausted);
    const std::string text = error.what();
    EXPECT_NE(text.find("sim:0"), std::string::npos) << text;
    EXPECT_NE(text.find("2.00 KiB"), std::string::npos) << text;
    EXPECT_NE(text.find("3.00 KiB"), std::string::npos) << text;
    EXPECT_NE(text.find("1.00 KiB are needed"), std::string::npos) << text;
  }
  EXPECT_EQ(budget->used_bytes(), 2u * 1024);
}

TEST(MemoryBudget, HugeRequestsDoNotWrapRound) {
  auto budget = MemoryBudget::make("sim:0", 100);
  const MemoryBudget::Share share = budget->reserve(50);
  EXPECT_THROW(budget->reserve(~std::uint64_t{0} - 10), Error);
}

TEST(MemoryBudget, MovedShareIsGivenBackOnce) {
  auto budget = MemoryBudget::make("sim:0", 100);
  MemoryBudget::Share first = budget->reserve(40);
  MemoryBudget::Share second = std::move(first);
  first = budget->reserve(10);
  EXPECT_EQ(budget->used_bytes(), 50u);
  second = MemoryBudget::Share();
  EXPECT_EQ(budget->used_bytes(), 10u);
}

TEST(MemoryBudget, SixteenThreadsNeverExceedIt) {
  constexpr std::uint64_t kLimit = 1000;
  auto budget = MemoryBudget::make("sim:0", kLimit);
  std::atomic<std::uint64_t> held{0};
  std::atomic<int> refused{0};
  std::atomic<bool> exceeded{false};
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 16; ++seed)
    threads.emplace_back([&, seed] {
      std::mt19937 random(seed);
      for (int i = 0; i < 5000; ++i) {
        const std::uint64_t bytes = random() % 200;
        try {
          const MemoryBudget::Share share = budget->reserve(bytes);
          if (held.fetch_add(bytes) + bytes > kLimit) exceeded = true;
          held.fetch_sub(bytes);
        } catch (const Error&) {
          ++refused;
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(exceeded);
  EXPECT_LE(budget->peak_bytes(), kLimit);
  EXPECT_EQ(budget->used_bytes(), 0u);
}

}  // namespace
}  // namespace tenon

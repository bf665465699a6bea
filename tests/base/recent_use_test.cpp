#include "base/threads/recent_use.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

using namespace std::chrono_literals;
constexpr RecentUse::Time kStart{};

TEST(RecentUse, AddsUpAndIsForgottenSlowly) {
  RecentUse use;
  use.add("a", 100ms, kStart);
  use.add("a", 200ms, kStart);
  EXPECT_EQ(use.of("a", kStart), 300ms);
  EXPECT_EQ(use.of("a", kStart + 5s), 200ms);
  EXPECT_EQ(use.of("a", kStart + 1h), 0ms);
  EXPECT_EQ(use.of("b", kStart), 0ms);
}

TEST(RecentUse, NobodyIsBehindForLong) {
  RecentUse use;
  use.add("a", 1h, kStart);
  EXPECT_EQ(use.of("a", kStart), RecentUse::kMost);
}

TEST(RecentUse, NobodyUsesNothing) {
  RecentUse use;
  use.add("", 1s, kStart);
  EXPECT_EQ(use.of("", kStart), 0ms);
}

TEST(RecentUse, ClientsOfWhomNothingIsLeftTakeNoMemory) {
  RecentUse use;
  for (int i = 0; i < 100'000; ++i) use.add("client " + std::to_string(i), 1ms, kStart + i * 1ms);
  EXPECT_LT(use.clients(), 500u);
}

}  // namespace
}  // namespace tenon

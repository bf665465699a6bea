#include "eventually.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace tenon::test {
namespace {

TEST(Eventually, IsTrueOnceAnotherThreadMakesTheConditionTrue) {
  std::atomic<bool> is_done{false};
  std::jthread other([&] { is_done = true; });
  EXPECT_TRUE(eventually(60s, [&] { return is_done.load(); }));
}

TEST(Eventually, AsksAgainUntilTheConditionHolds) {
  int asked = 0;
  EXPECT_TRUE(eventually(60s, [&] { return ++asked == 150; }));
  EXPECT_EQ(asked, 150);
}

TEST(Eventually, AsksOnceWithoutTimeToWait) {
  int asked = 0;
  EXPECT_FALSE(eventually(0s, [&] { return ++asked == 2; }));
  EXPECT_EQ(asked, 1);
}

TEST(Eventually, FailsAfterTheLimitAndSaysWhatWasAwaited) {
  EXPECT_NONFATAL_FAILURE(EXPECT_TRUE(eventually(1ms, [] { return 2 < 1; })), "eventually(1ms, [] { return 2 < 1; })");
  EXPECT_NONFATAL_FAILURE(EXPECT_TRUE(eventually(1ms, [] { return 2 < 1; })), "still false after 1 ms");
}

}  // namespace
}  // namespace tenon::test

#include "server/watch/hold_history.h"

#include <gtest/gtest.h>

namespace tenon::server {
namespace {

using namespace std::chrono_literals;

DeviceStatus held_by(const std::string& who, double seconds, bool is_here = false) {
  DeviceStatus status;
  status.device.id = "sim:0";
  status.users.push_back({who, true, is_here, seconds});
  status.users.push_back({"pid 9", false, false, 1});
  return status;
}

TEST(HoldHistory, AHoldLastsUntilItIsNotSeenAnyMore) {
  HoldHistory history;
  const HoldHistory::Time start{1'000'000s};
  history.observe(std::vector{held_by("pid 7", 3)}, start);
  history.observe(std::vector{held_by("pid 7", 4)}, start + 1s);
  ASSERT_EQ(history.holds().size(), 1u);
  EXPECT_EQ(history.holds()[0].begin, start - 3s);
  EXPECT_FALSE(history.holds()[0].end);
  history.observe({}, start + 2s);
  ASSERT_EQ(history.holds().size(), 1u);
  EXPECT_EQ(history.holds()[0].end, start + 2s);
}

TEST(HoldHistory, TheSameProcessMayHoldAgain) {
  HoldHistory history;
  const HoldHistory::Time start{1'000'000s};
  history.observe(std::vector{held_by("pid 7", 10)}, start);
  history.observe(std::vector{held_by("pid 7", 0)}, start + 5s);
  ASSERT_EQ(history.holds().size(), 2u);
  EXPECT_TRUE(history.holds()[0].end);
  EXPECT_FALSE(history.holds()[1].end);
}

TEST(HoldHistory, OwnLeasesAreEventsAndNotHolds) {
  HoldHistory history;
  history.observe(std::vector{held_by("this process", 1, true)}, HoldHistory::Time{1s});
  EXPECT_TRUE(history.holds().empty());
}

}  // namespace
}  // namespace tenon::server

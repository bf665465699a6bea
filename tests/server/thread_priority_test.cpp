#include "server/compute/thread_priority.h"

#include <gtest/gtest.h>

#include <thread>

namespace tenon::server {
namespace {

TEST(ThreadPriority, ThreadsThatAPreferredThreadStartsAreNotPreferred) {
  std::thread([] {
    const int before = own_nice();
    set_own_nice(-3);
    if (own_nice() == before) GTEST_SKIP() << "this user may not prefer threads";
    EXPECT_EQ(own_nice(), -3);
    std::thread([] { EXPECT_EQ(own_nice(), 0); }).join();
  }).join();
}

TEST(ThreadPriority, EverybodyMayGiveWay) {
  std::thread([] {
    set_own_nice(7);
    EXPECT_EQ(own_nice(), 7);
  }).join();
}

}  // namespace
}  // namespace tenon::server

// Waiting in tests for what another thread or process does, with a limit: a test that waits for nothing fails and says what it
// waited for, instead of standing still until somebody ends it.
//
//   ASSERT_TRUE(eventually(60s, [&] { return machine.state() == DeviceState::ready; }));
//
// The limit is for a fault, not for a slow machine: choose it far beyond what the wait can take. Where threads are still to be
// joined, EXPECT_TRUE lets the test go on and end them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace tenon::test {

using namespace std::chrono_literals;

// Whether |condition| becomes true within |limit|. Asks it often at first, then every five milliseconds, and at least once after
// the limit, so that a process that was not scheduled for all that time does not report a fault.
template <class Condition>
bool becomes_true(std::chrono::milliseconds limit, Condition condition) {
  constexpr int kYields = 100;
  constexpr std::chrono::microseconds kLongestPause = 5ms;
  const auto end = std::chrono::steady_clock::now() + limit;
  std::chrono::microseconds pause = 20us;
  for (int asked = 0;; ++asked) {
    const bool is_last = std::chrono::steady_clock::now() >= end;
    if (condition()) return true;
    if (is_last) return false;
    if (asked < kYields) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(pause);
      pause = std::min(pause * 2, kLongestPause);
    }
  }
}

// The same for EXPECT_TRUE and ASSERT_TRUE, which print the condition as it is written.
template <class Condition>
::testing::AssertionResult eventually(std::chrono::milliseconds limit, Condition condition) {
  if (becomes_true(limit, condition)) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "still false after " << limit.count() << " ms";
}

}  // namespace tenon::test

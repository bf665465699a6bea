#include "base/threads/fork_mutex.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "base/system/sanitizers.h"
#include "base/threads/fork_section.h"

namespace tenon {
namespace {

// What waitpid() says of a child that calls |body|; a child that hangs is killed by its alarm.
template <class Body>
int child(const Body& body) {
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(20);
    body();
    _exit(0);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  return status;
}

TEST(ForkMutex, IsFreeInAChildWhoeverHeldIt) {
  ForkMutex outer, inner;
  std::atomic<bool> is_over = false;
  // Both orders, and mutexes that come and go while others are held.
  std::thread one([&] {
    while (!is_over) {
      const std::lock_guard first(outer);
      const std::lock_guard second(inner);
      const auto passing = std::make_unique<ForkMutex>();
    }
  });
  std::thread other([&] {
    while (!is_over) {
      const std::unique_lock first(inner);
      const std::unique_lock second(outer, std::try_to_lock);
    }
  });
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(child([&] {
                const std::lock_guard first(inner);
                const std::lock_guard second(outer);
              }),
              0);
  is_over = true;
  one.join();
  other.join();
  const std::lock_guard still_usable(outer);
}

TEST(SectionMutex, IsFreeInAChildWhoeverHeldIt) {
  SectionMutex outer, inner;
  std::atomic<bool> is_over = false;
  const auto work = [&](SectionMutex& first, SectionMutex& second) {
    while (!is_over) {
      const std::unique_lock one(first);
      const std::unique_lock other(second, std::try_to_lock);
    }
  };
  std::thread one([&] { work(outer, inner); }), other([&] { work(inner, outer); });
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(child([&] {
                const std::lock_guard first(inner);
                const std::lock_guard second(outer);
              }),
              0);
  is_over = true;
  one.join();
  other.join();
}

TEST(ForkSection, AThreadMayForkWithinOne) {
  const ForkSection section;
  EXPECT_EQ(child([] { const ForkSection inner; }), 0);
}

// Takes long enough for a fork to come while it is made.
int slow_value() {
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  return 7;
}
int static_value() {
  static const int value = slow_value();
  return value;
}

#if !TENON_THREAD_SANITIZER
TEST(ForkSection, AForkWaitsForAStaticValueThatAnotherThreadIsMaking) {
  std::thread maker([] { static_value(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(child([] { _exit(static_value() == 7 ? 0 : 1); }), 0);
  maker.join();
}
#endif

}  // namespace
}  // namespace tenon

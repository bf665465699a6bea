// ManualClock: a clock whose time stands still until a test moves it.
//
// A thread that waits for a deadline of this clock looks at it about once in a millisecond of real time, and the clock remembers
// who looked: settle() waits until a thread has done all that it does at the present time. So a test can assert that
// something has *not* happened yet.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "eventually.h"

namespace tenon::test {

class ManualClock final : public Clock {
 public:
  Time now() const noexcept override { return Time(Duration(now_.load())); }
  Duration wait_limit(Time deadline) const noexcept override {
    const std::lock_guard lock(mutex_);
    Look& look = looks_[std::this_thread::get_id()];
    ++look.count;
    look.deadline = deadline;
    return deadline <= now() ? Duration::zero() : std::chrono::milliseconds(1);
  }

  void advance(Duration by) { now_ += by.count(); }
  // Waits until |thread| has looked at the clock twice, and so has gone through one whole wait with what has happened until now,
  // and waits for a later time.
  ::testing::AssertionResult settle(std::thread::id thread) const {
    const std::uint64_t before = look_of(thread).count;
    return eventually(std::chrono::minutes(1), [&] {
      const Look look = look_of(thread);
      return look.count > before + 1 && look.deadline > now();
    });
  }

 private:
  struct Look {
    std::uint64_t count = 0;
    Time deadline{};
  };
  Look look_of(std::thread::id thread) const {
    const std::lock_guard lock(mutex_);
    return looks_[thread];
  }

  std::atomic<Duration::rep> now_{std::chrono::duration_cast<Duration>(std::chrono::hours(1)).count()};
  mutable std::mutex mutex_;
  mutable std::map<std::thread::id, Look> looks_;
};

}  // namespace tenon::test

// Clock: the current time, for code that waits for deadlines. A test passes a clock of its own and moves its time.
//
// A wait is a loop: look at now(), block for at most wait_limit(deadline), look again. It may wake early at any time.
// Thread safety: all calls may run concurrently.
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>

namespace tenon {

class Clock {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;
  static constexpr Time kNever = Time::max();

  virtual ~Clock() = default;
  virtual Time now() const noexcept { return std::chrono::steady_clock::now(); }
  // How long a thread that waits for |deadline| may block before it looks at now() again.
  virtual Duration wait_limit(Time deadline) const noexcept {
    return std::clamp<Duration>(deadline - now(), Duration::zero(), std::chrono::hours(1));
  }

  static std::shared_ptr<const Clock> system() {
    static const auto clock = std::make_shared<const Clock>();
    return clock;
  }
  static double seconds_between(Time from, Time to) { return std::chrono::duration<double>(to - from).count(); }
  // |seconds| of 1e9 and more are 1e9, so that a time plus a duration stays far from kNever.
  static Duration duration(double seconds) {
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(std::min(seconds, 1e9)));
  }
};

}  // namespace tenon

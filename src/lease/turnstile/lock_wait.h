// LockWait: a blocking lock request that ends at a deadline or when asked to stop.
//
// The kernel's only way out of a blocking lock request is a signal. One POSIX timer, aimed at the waiting thread, sends it: armed
// with the deadline, or at once by whoever asks to stop. A signal that arrives just before the request is made would be lost, so
// the timer goes on, every millisecond, until the wait is over. Nothing runs while nothing is due: a wait costs no wake-ups.
//
// The signal is a real-time one that the program does not use, with a handler that does nothing; it is unblocked in the waiting
// thread for as long as the wait lasts.
//
// Lifetime: for one thread, which made it; on the stack around the wait. Timers exist only once a request really blocks.
#pragma once

#include <time.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <optional>
#include <stop_token>

namespace tenon {

class LockWait {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Outcome { done, timed_out, stopped };

  LockWait(std::optional<Clock::time_point> deadline, std::stop_token stop);
  ~LockWait();
  LockWait(const LockWait&) = delete;
  LockWait& operator=(const LockWait&) = delete;

  // Makes |request|, which returns 0 or an errno, again and again while that is EINTR. Throws for any other errno.
  Outcome run(const std::function<int()>& request);

 private:
  void arm();

  std::optional<Clock::time_point> deadline_;
  std::stop_token stop_;
  bool is_armed_ = false;
  timer_t timer_{};
  sigset_t previous_mask_{};
  std::optional<std::stop_callback<std::function<void()>>> on_stop_;
};

}  // namespace tenon

// LockWait: a blocking lock request that ends at a deadline or on a stop request.
//
// Only a signal can interrupt a blocking lock request. A POSIX timer aimed at the waiting thread sends it: armed with the
// deadline, or at once by a stop request. A signal that arrives just before the lock request would be lost, so the timer repeats
// it every millisecond until the wait is over. Nothing runs before the timer fires: a wait causes no wake-ups.
//
// The signal is a real-time signal that the program does not use, with an empty handler; it is unblocked in the waiting thread
// during the wait.
//
// Lifetime: used by the thread that creates it, on the stack around the wait. A timer is created only if a request blocks.
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

  // Repeats |request|, which returns 0 or an errno, while it returns EINTR. Throws for any other errno.
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

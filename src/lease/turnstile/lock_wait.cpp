#include "lease/turnstile/lock_wait.h"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "base/threads/fork_mutex.h"
#include "tenon/error.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

namespace tenon {
namespace {

constexpr long kResendNs = 1'000'000;

extern "C" void tenon_end_lock_wait(int) {}

// The signal that ends waits: the highest real-time one that nobody has a handler for. Looked at again for every wait, as a
// program may claim it later.
int interrupt_signal() {
  static auto& mutex = *new ForkMutex;
  static int chosen = 0;
  const std::lock_guard lock(mutex);
  struct sigaction action{};
  if (chosen != 0 && sigaction(chosen, nullptr, &action) == 0 && action.sa_handler == tenon_end_lock_wait) return chosen;
  for (int candidate = SIGRTMAX; candidate >= SIGRTMIN; --candidate) {
    if (sigaction(candidate, nullptr, &action) != 0 || (action.sa_flags & SA_SIGINFO) != 0 || action.sa_handler != SIG_DFL)
      continue;
    action = {};
    action.sa_handler = tenon_end_lock_wait;  // without SA_RESTART: the request must fail with EINTR
    sigemptyset(&action.sa_mask);
    if (sigaction(candidate, &action, nullptr) == 0) return chosen = candidate;
  }
  throw Error(ErrorCode::resource_exhausted, "no real-time signal is available for ending waits for a device");
}

}  // namespace

LockWait::LockWait(std::optional<Clock::time_point> deadline, std::stop_token stop)
    : deadline_(deadline),
      stop_(std::move(stop)) {}

LockWait::~LockWait() {
  if (!is_armed_) return;
  // First no more stop requests, then no more signals, then the mask: the next system call of this thread is not disturbed.
  on_stop_.reset();
  timer_delete(timer_);
  pthread_sigmask(SIG_SETMASK, &previous_mask_, nullptr);
}

void LockWait::arm() {
  if (is_armed_ || (!deadline_ && !stop_.stop_possible())) return;
  const int signal = interrupt_signal();
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = signal;
  event.sigev_notify_thread_id = gettid();
  if (timer_create(CLOCK_MONOTONIC, &event, &timer_) != 0)
    throw Error(ErrorCode::resource_exhausted, fmt::format("cannot create a timer for the wait: {}", std::strerror(errno)));
  sigset_t only{};
  sigemptyset(&only);
  sigaddset(&only, signal);
  pthread_sigmask(SIG_UNBLOCK, &only, &previous_mask_);
  is_armed_ = true;
  if (deadline_) {
    const auto at =
        std::max<std::int64_t>(1, std::chrono::duration_cast<std::chrono::nanoseconds>(deadline_->time_since_epoch()).count());
    const itimerspec when{{0, kResendNs}, {static_cast<time_t>(at / 1'000'000'000), static_cast<long>(at % 1'000'000'000)}};
    timer_settime(timer_, TIMER_ABSTIME, &when, nullptr);
  }
  if (stop_.stop_possible())
    on_stop_.emplace(stop_, [this] {
      const itimerspec now{{0, kResendNs}, {0, 1}};
      timer_settime(timer_, 0, &now, nullptr);
    });
}

LockWait::Outcome LockWait::run(const std::function<int()>& request) {
  arm();
  for (;;) {
    if (stop_.stop_requested()) return Outcome::stopped;
    if (deadline_ && Clock::now() >= *deadline_) return Outcome::timed_out;
    const int error = request();
    if (error == 0) return Outcome::done;
    if (error != EINTR)
      throw Error(error == ENOLCK ? ErrorCode::resource_exhausted : ErrorCode::unknown,
                  fmt::format("cannot wait for the device's lock: {}", std::strerror(error)));
  }
}

}  // namespace tenon

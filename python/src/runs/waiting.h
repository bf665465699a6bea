// Work that may wait or compute: the GIL is released, and Ctrl-C ends it.
//
// Thread safety: any thread may call wait(); only the main thread receives Ctrl-C, as everywhere in Python.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "gil.h"
#include "tenon/error.h"
#include "tenon/manager.h"

namespace tenon::python {

namespace nb = nanobind;

// One wait. The work passes its token on, and calls may_wait() when it begins to wait for something other than this CPU.
class Waiting {
 public:
  Waiting();
  ~Waiting();
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  // Work on other threads than the main one cannot be interrupted; without a token it costs nothing to offer it.
  bool is_interruptible() const noexcept { return is_main_; }
  std::stop_token token() const noexcept { return stop_.get_token(); }
  std::stop_source& source() noexcept { return stop_; }
  // Ends the work for good, from any thread: it is not repeated, and its error is raised.
  void give_up() noexcept {
    is_given_up_ = true;
    stop_.request_stop();
  }
  bool is_given_up() const noexcept { return is_given_up_; }
  // From here on Ctrl-C requests the stop at once. Called without the GIL.
  void may_wait();
  // For a stage of a run: like may_wait() if the stage may take long; others look for a signal that came meanwhile.
  void at(const Progress& progress);

  // The first exception of a callback, which ends the work and is raised afterwards.
  void fail(nb::python_error error);
  // With the GIL: throws what a callback or the signal handler raised, if anything.
  void raise_pending();

 private:
  const bool is_main_;
  bool is_armed_ = false;
  std::optional<std::chrono::steady_clock::time_point> start_;  // of the first stage
  std::atomic<bool> is_given_up_ = false;
  std::stop_source stop_;
  std::optional<nb::python_error> error_;
};

// Passes a cancellation from elsewhere on to a wait, while it lives.
class Forward {
 public:
  Forward(const std::stop_token& from, Waiting& to) : callback_(from, Give{to}) {}

 private:
  struct Give {
    Waiting& to;
    void operator()() const noexcept { to.give_up(); }
  };
  std::stop_callback<Give> callback_;
};

// Runs |work(Waiting&)| without the GIL. Repeats it if a signal ended it whose Python handler raised nothing.
template <class Work>
void wait(const Work& work) {
  for (;;) {
    Waiting waiting;
    try {
      WithoutGil free;
      work(waiting);
    } catch (const Error& error) {
      waiting.raise_pending();
      if (error.code() == ErrorCode::cancelled && waiting.token().stop_requested() && !waiting.is_given_up()) continue;
      throw;
    }
    return;
  }
}

}  // namespace tenon::python

// Interrupt: Ctrl-C asks a command to stop in good order; a second one, or two seconds, stop it whatever it does.
//
// A process that is simply killed leaves its device in doubt for whoever comes next. While this lives, the first SIGINT or
// SIGTERM only sets the token, and says on standard error that it was heard. Threads started meanwhile do not see the signals.
#pragma once

#include <atomic>
#include <stop_token>
#include <thread>

#include "base/file_descriptor.h"

namespace tenon::cli {

class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  std::stop_token token() const { return stop_.get_token(); }
  // The exit status of a command that ended because of it: 130 for Ctrl-C, 143 for SIGTERM; 0 when there was none.
  int exit_status() const noexcept { return exit_status_; }

 private:
  void listen();

  std::stop_source stop_;
  std::atomic<int> exit_status_{0};
  FileDescriptor end_;
  std::thread listener_;
};

}  // namespace tenon::cli

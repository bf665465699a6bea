// Interrupt: Ctrl-C asks a command to stop in good order; a second one, or two seconds, stop it whatever it does.
//
// A process that is simply killed leaves its device dirty for the next user. While this lives, the first SIGINT or SIGTERM only
// sets the token, and says on standard error that it was heard, unless |may_end_now| says that no device would be left dirty. It
// does not matter which thread gets the signal. There is one Interrupt at a time. Once a signal came, the two
// seconds run on after this is gone: devices close when the process ends, and that may take longer.
//
//   Interrupt interrupt(nothing_needs_closing);
//   options.cancel = interrupt.token();
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <thread>

namespace tenon::cli {

class Interrupt {
 public:
  // |may_end_now| is asked when the first signal comes, from a thread of its own; none: never.
  explicit Interrupt(std::function<bool()> may_end_now = {});
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  std::stop_token token() const;
  // The exit status of a command that ended because of it: 130 for Ctrl-C, 143 for SIGTERM; 0 when there was none.
  int exit_status() const noexcept;

 private:
  struct State;

  std::shared_ptr<State> state_;
  std::thread listener_;
};

// Of the devices of process_manager(): what a command that uses them gives to its Interrupt.
bool nothing_needs_closing();

}  // namespace tenon::cli

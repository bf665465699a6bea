#include "cli/terminal/interrupt.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <utility>

#include "base/file_descriptor.h"
#include "tenon/manager.h"

namespace tenon::cli {
namespace {

// An operation cannot be broken off in the middle; one that takes longer than this is.
constexpr int kPatienceMilliseconds = 2000;

// Those that whoever started this process has not told it to ignore, as shells do with jobs in the background.
sigset_t interrupts() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM}) {
    struct sigaction now{};
    if (sigaction(signal, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) sigaddset(&set, signal);
  }
  return set;
}

void die_of(int signal) {
  const sigset_t set = interrupts();
  constexpr char kClearLine[] = "\r\033[K";
  [[maybe_unused]] const ssize_t written = isatty(STDERR_FILENO) ? write(STDERR_FILENO, kClearLine, sizeof kClearLine - 1) : 0;
  std::signal(signal, SIG_DFL);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  raise(signal);
}

}  // namespace

struct Interrupt::State {
  std::stop_source stop;
  std::atomic<int> exit_status{0};
  std::function<bool()> may_end_now;
  FileDescriptor end{eventfd(0, EFD_CLOEXEC)};

  void listen() {
    const sigset_t set = interrupts();
    const FileDescriptor signals(signalfd(-1, &set, SFD_CLOEXEC));
    for (;;) {
      pollfd fds[2] = {{signals.get(), POLLIN, 0}, {end.get(), POLLIN, 0}};
      const int ready = poll(fds, 2, exit_status == 0 ? -1 : kPatienceMilliseconds);
      if (ready < 0) continue;
      if (fds[1].revents) return;
      signalfd_siginfo info;
      if (ready > 0 && read(signals.get(), &info, sizeof info) != sizeof info) continue;
      const int signal = ready > 0 ? static_cast<int>(info.ssi_signo) : exit_status - 128;
      if (exit_status != 0 || (may_end_now && may_end_now())) die_of(signal);
      exit_status = 128 + signal;
      constexpr char kHeard[] = "\ntenon: stopping; press Ctrl-C again to stop at once\n";
      [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kHeard, sizeof kHeard - 1);
      stop.request_stop();
    }
  }
};

Interrupt::Interrupt(std::function<bool()> may_end_now) : state_(std::make_shared<State>()) {
  state_->may_end_now = std::move(may_end_now);
  const sigset_t set = interrupts();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  listener_ = std::thread([state = state_] { state->listen(); });
}

Interrupt::~Interrupt() {
  if (exit_status() != 0) {
    listener_.detach();
    return;
  }
  eventfd_write(state_->end.get(), 1);
  listener_.join();
  const sigset_t set = interrupts();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

std::stop_token Interrupt::token() const { return state_->stop.get_token(); }
int Interrupt::exit_status() const noexcept { return state_->exit_status; }

bool nothing_needs_closing() { return !process_manager().needs_closing(); }

}  // namespace tenon::cli

#include "cli/terminal/interrupt.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <utility>
#include <vector>

#include "base/system/file_descriptor.h"
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

// A signal may also be given to a thread that was there before and has not blocked it, such as one of a thread pool or of a
// library. It passes the signal on to whoever listens, through a pipe.
std::atomic<int> pass_on_to{-1};
void pass_on(int signal) {
  const int error = errno;
  const auto byte = static_cast<unsigned char>(signal);
  [[maybe_unused]] const ssize_t written = write(pass_on_to, &byte, 1);
  errno = error;
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
  FileDescriptor passed_on, pass_on_end;  // of the pipe
  std::vector<std::pair<int, struct sigaction>> before;

  State() {
    int ends[2] = {-1, -1};
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return;
    passed_on = FileDescriptor(ends[0]);
    pass_on_end = FileDescriptor(ends[1]);
  }

  void take_over() {
    pass_on_to = pass_on_end.get();
    const sigset_t set = interrupts();
    struct sigaction action{};
    action.sa_handler = pass_on;
    action.sa_flags = SA_RESTART;
    for (const int signal : {SIGINT, SIGTERM}) {
      struct sigaction old{};
      if (sigismember(&set, signal) == 1 && sigaction(signal, &action, &old) == 0) before.emplace_back(signal, old);
    }
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
  }
  void give_back() {
    for (const auto& [signal, old] : before) sigaction(signal, &old, nullptr);
    const sigset_t set = interrupts();
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  }

  // The signal that came, 0 for none.
  int read_signal(const FileDescriptor& signals, const pollfd (&fds)[3]) const {
    unsigned char byte = 0;
    if (fds[2].revents && read(passed_on.get(), &byte, 1) == 1) return byte;
    signalfd_siginfo info;
    if (fds[0].revents && read(signals.get(), &info, sizeof info) == sizeof info) return static_cast<int>(info.ssi_signo);
    return 0;
  }

  void listen() {
    const sigset_t set = interrupts();
    // A thread that has not blocked the signal may take it after poll() has seen it here: then it comes through the pipe, and
    // reading it here must not wait for another one.
    const FileDescriptor signals(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    for (;;) {
      pollfd fds[3] = {{signals.get(), POLLIN, 0}, {end.get(), POLLIN, 0}, {passed_on.get(), POLLIN, 0}};
      const int ready = poll(fds, 3, exit_status == 0 ? -1 : kPatienceMilliseconds);
      if (ready < 0) continue;
      if (fds[1].revents) return;
      const int signal = ready > 0 ? read_signal(signals, fds) : exit_status - 128;
      if (signal == 0) continue;
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
  state_->take_over();
  listener_ = std::thread([state = state_] { state->listen(); });
}

Interrupt::~Interrupt() {
  if (exit_status() != 0) {
    listener_.detach();
    return;
  }
  eventfd_write(state_->end.get(), 1);
  listener_.join();
  state_->give_back();
}

std::stop_token Interrupt::token() const { return state_->stop.get_token(); }
int Interrupt::exit_status() const noexcept { return state_->exit_status; }

bool nothing_needs_closing() { return !process_manager().needs_closing(); }

}  // namespace tenon::cli

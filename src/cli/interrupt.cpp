#include "cli/interrupt.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>

#include <csignal>

namespace tenon::cli {
namespace {

// An operation cannot be broken off in the middle; one that takes longer than this is.
constexpr int kPatienceMilliseconds = 2000;

sigset_t interrupts() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

}  // namespace

Interrupt::Interrupt() : end_(eventfd(0, EFD_CLOEXEC)) {
  const sigset_t set = interrupts();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  listener_ = std::thread([this] { listen(); });
}

Interrupt::~Interrupt() {
  eventfd_write(end_.get(), 1);
  listener_.join();
  const sigset_t set = interrupts();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

void Interrupt::listen() {
  const sigset_t set = interrupts();
  const FileDescriptor signals(signalfd(-1, &set, SFD_CLOEXEC));
  for (;;) {
    pollfd fds[2] = {{signals.get(), POLLIN, 0}, {end_.get(), POLLIN, 0}};
    const int ready = poll(fds, 2, exit_status_ == 0 ? -1 : kPatienceMilliseconds);
    if (ready < 0) continue;
    if (fds[1].revents) return;
    signalfd_siginfo info;
    if (ready > 0 && read(signals.get(), &info, sizeof info) != sizeof info) continue;
    const int signal = ready > 0 ? static_cast<int>(info.ssi_signo) : exit_status_ - 128;
    if (exit_status_ != 0) {
      std::signal(signal, SIG_DFL);
      pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
      raise(signal);
    }
    exit_status_ = 128 + signal;
    constexpr char kHeard[] = "\ntenon: stopping; once more to stop at once\n";
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kHeard, sizeof kHeard - 1);
    stop_.request_stop();
  }
}

}  // namespace tenon::cli

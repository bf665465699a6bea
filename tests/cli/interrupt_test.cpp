// Signals that another thread takes at the moment at which the listening thread has seen them.
#include "cli/terminal/interrupt.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "eventually.h"

namespace {

// What happens between poll() and the reading of what it saw.
std::atomic<void (*)()> after_poll{nullptr};
std::atomic<pthread_t> other_thread;

// The kernel gives the signal that poll() saw to a thread that has not blocked it.
void let_the_other_thread_take_it() {
  sigset_t terms;
  sigemptyset(&terms);
  sigaddset(&terms, SIGTERM);
  const timespec at_once{};
  if (sigtimedwait(&terms, nullptr, &at_once) != SIGTERM) return;
  after_poll = nullptr;
  pthread_kill(other_thread, SIGTERM);
}

}  // namespace

// In place of the C library's.
extern "C" int poll(pollfd* fds, nfds_t count, int milliseconds) {
  static auto* const real = reinterpret_cast<int (*)(pollfd*, nfds_t, int)>(dlsym(RTLD_NEXT, "poll"));
  const int ready = real(fds, count, milliseconds);
  if (void (*const then)() = after_poll.load(); then && ready > 0) then();
  return ready;
}

namespace tenon::cli {
namespace {

using namespace std::chrono_literals;

// Ends with status 0 if the signal was heard.
[[noreturn]] void hear_a_signal_that_another_thread_takes() {
  std::atomic<bool> is_there{false};
  std::thread([&] {
    other_thread = pthread_self();
    is_there = true;
    for (;;) pause();
  }).detach();
  while (!is_there) std::this_thread::yield();
  const Interrupt interrupt;
  after_poll = &let_the_other_thread_take_it;
  kill(getpid(), SIGTERM);
  const bool was_heard = test::becomes_true(20s, [&] { return interrupt.token().stop_requested(); });
  _exit(was_heard && interrupt.exit_status() == 128 + SIGTERM ? 0 : 1);
}

TEST(InterruptDeathTest, HearsASignalThatAnotherThreadTakesAfterItWasSeen) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(hear_a_signal_that_another_thread_takes(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace tenon::cli

#include "runs/waiting.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

#include <mutex>
#include <optional>
#include <thread>

#include "base/threads/fork_mutex.h"
#include "tenon/error.h"

namespace tenon::python {
namespace {

// Requests the stop of one wait of the main thread when SIGINT comes.
//
// Python's own handler only notes the signal and acts when the interpreter runs again, which it does not while C++ waits. So our
// handler takes its place for the time of the wait, calls it, and wakes a thread that may do what a handler must not.
class InterruptWatch {
 public:
  static InterruptWatch& instance() {
    static auto* const watch = new InterruptWatch;  // never destroyed: a wait may last until the process ends
    return *watch;
  }

  // False if SIGINT is ignored or has its default effect: then there is nothing to do.
  bool arm(std::stop_source* stop) {
    start();
    const std::lock_guard lock(mutex_);
    struct sigaction current{};
    if (sigaction(SIGINT, nullptr, &current) != 0 || (current.sa_flags & SA_SIGINFO) != 0) return false;
    if (current.sa_handler == SIG_DFL || current.sa_handler == SIG_IGN) return false;
    before_ = current;
    python_handler = current.sa_handler;
    struct sigaction ours = current;
    ours.sa_handler = &on_signal;
    stop_ = stop;
    return sigaction(SIGINT, &ours, nullptr) == 0;
  }

  void disarm() {
    const std::lock_guard lock(mutex_);
    stop_ = nullptr;
    struct sigaction current{};
    // Somebody else may have set a handler meanwhile.
    if (sigaction(SIGINT, nullptr, &current) == 0 && current.sa_handler == &on_signal) sigaction(SIGINT, &before_, nullptr);
  }

 private:
  static void on_signal(int signal) {
    python_handler(signal);
    sem_post(&arrived);
  }

  // The thread does not survive a fork; the child starts its own.
  void start() {
    const std::lock_guard lock(mutex_);
    if (owner_ == getpid()) return;
    owner_ = getpid();
    sem_init(&arrived, 0, 0);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);  // the thread inherits it: signals go to the main thread
    std::thread([this] { watch(); }).detach();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void watch() {
    for (;;) {
      while (sem_wait(&arrived) != 0) {
      }
      const std::lock_guard lock(mutex_);
      if (stop_) stop_->request_stop();
    }
  }

  static inline void (*volatile python_handler)(int) = nullptr;
  static inline sem_t arrived;

  ForkMutex mutex_;
  pid_t owner_ = 0;
  struct sigaction before_{};
  std::stop_source* stop_ = nullptr;
};

constexpr std::chrono::milliseconds kLookAfter{10};  // before that, looking for a signal would cost more than waiting for the end

// Asking the system each time would cost as much as a small program. A child forked from another thread than the main one goes
// without Ctrl-C during a wait.
bool is_main_thread() {
  thread_local const bool is_main = getpid() == gettid();
  return is_main;
}

}  // namespace

// One for each thread, unless a wait within a wait has it or a stop was requested.
thread_local std::stop_source spare_source{std::nostopstate};

Waiting::Waiting() : is_main_(is_main_thread()), stop_(std::nostopstate) {
  stop_.swap(spare_source);
  if (!stop_.stop_possible()) stop_ = std::stop_source();
}

Waiting::~Waiting() {
  if (is_armed_) InterruptWatch::instance().disarm();
  if (!stop_.stop_requested()) stop_.swap(spare_source);
}

void Waiting::may_wait() {
  if (!is_main_ || is_armed_) return;
  is_armed_ = InterruptWatch::instance().arm(&stop_);
  // A signal that came before it was armed.
  const WithGil held;
  if (held && PyErr_CheckSignals() != 0) fail(nb::python_error());
}

void Waiting::at(const Progress& progress) {
  if (!is_main_) return;
  if (is_armed_) return;
  // Stages that may take long, and that the library can end; of a computation only what is not computed at once (AtOnce).
  for (const char* const stage : {"queued", "opening", "compiling", "computing"})
    if (progress.stage == stage) return may_wait();
  const auto now = std::chrono::steady_clock::now();
  if (!start_) start_ = now;
  if (now - *start_ < kLookAfter) return;
  const WithGil held;
  if (held && PyErr_CheckSignals() != 0) fail(nb::python_error());
}

void Waiting::fail(nb::python_error error) {
  if (!error_) error_.emplace(std::move(error));
  stop_.request_stop();
}

void Waiting::raise_pending() {
  if (error_) throw nb::python_error(std::move(*error_));
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

}  // namespace tenon::python

#include "tenon/manager/prefetch.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

namespace tenon::detail {

struct PrefetchThread::State {
  State(Next function, std::size_t limit)
      : next(std::move(function)),
        buffer(limit == 0 ? 1 : limit),
        thread([this] { work(); }) {}
  ~State() {
    {
      const std::lock_guard lock(mutex);
      must_stop = true;
    }
    changed.notify_all();
    thread.join();
  }

  void work() {
    std::unique_lock lock(mutex);
    while (!must_stop) {
      changed.wait(lock, [this] { return must_stop || ready.size() < buffer; });
      if (must_stop) break;
      lock.unlock();
      std::shared_ptr<void> value;
      std::exception_ptr thrown;
      try {
        value = next();
      } catch (...) {
        thrown = std::current_exception();
      }
      lock.lock();
      if (!value) {
        error = thrown;
        break;
      }
      ready.push_back(std::move(value));
      changed.notify_all();
    }
    is_done = true;
    changed.notify_all();
  }

  const Next next;
  const std::size_t buffer;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::shared_ptr<void>> ready;
  bool is_done = false, must_stop = false;
  std::exception_ptr error;
  std::thread thread;  // last: it uses all of the above
};

PrefetchThread::PrefetchThread(Next next, std::size_t buffer) : state_(std::make_unique<State>(std::move(next), buffer)) {}
PrefetchThread::~PrefetchThread() = default;

std::shared_ptr<void> PrefetchThread::take() {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [this] { return !state_->ready.empty() || state_->is_done; });
  if (state_->ready.empty()) {
    if (state_->error) std::rethrow_exception(std::exchange(state_->error, nullptr));
    return nullptr;
  }
  std::shared_ptr<void> value = std::move(state_->ready.front());
  state_->ready.pop_front();
  lock.unlock();
  state_->changed.notify_all();
  return value;
}

}  // namespace tenon::detail

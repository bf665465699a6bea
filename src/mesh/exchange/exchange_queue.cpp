#include "mesh/exchange/exchange_queue.h"

#include <utility>

namespace tenon::mesh {

ExchangeQueue::~ExchangeQueue() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void ExchangeQueue::add(int value, std::function<Values()> exchange) {
  Task task{std::move(exchange), {}};
  received_[value] = task.received.get_future().share();
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  changed_.notify_all();
}

const ExchangeQueue::Received* ExchangeQueue::find(int value) const {
  const auto found = received_.find(value);
  return found == received_.end() ? nullptr : &found->second;
}

void ExchangeQueue::wait() const {
  for (const auto& [value, received] : received_) received.wait();
}

bool ExchangeQueue::is_idle() const {
  const std::lock_guard lock(mutex_);
  return tasks_.empty();
}

std::exception_ptr ExchangeQueue::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

void ExchangeQueue::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return is_ending_ || !tasks_.empty(); });
    if (is_ending_) return;
    Task& task = tasks_.front();  // add() moves no task
    std::exception_ptr error = error_;
    Values received;
    if (!error) {
      lock.unlock();
      try {
        received = task.exchange();
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
    }
    const bool is_first = error && !error_;
    error_ = error;
    // Whoever waits for the value may exchange itself as soon as it has it.
    Task done = std::move(task);
    tasks_.pop_front();
    if (error)
      done.received.set_exception(error);
    else
      done.received.set_value(std::move(received));
    if (is_first) {
      lock.unlock();
      on_failure_();
      lock.lock();
    }
  }
}

}  // namespace tenon::mesh

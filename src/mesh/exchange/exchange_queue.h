// ExchangeQueue: the exchanges of one device, one after the other on a thread of its own, while the device computes.
//
// The thread starts with the first exchange. When one has failed, all later ones fail with the same error, as the other
// devices no longer agree on what comes next.
// Thread safety: all but the destructor are for one thread.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "lease/storage.h"

namespace tenon::mesh {

class ExchangeQueue {
 public:
  using Values = std::vector<std::shared_ptr<Storage>>;
  using Received = std::shared_future<Values>;

  // |on_failure| is called once, on the thread of the queue.
  explicit ExchangeQueue(std::function<void()> on_failure) : on_failure_(std::move(on_failure)) {}
  // Waits for the exchange that is under way; those not begun are dropped.
  ~ExchangeQueue();

  void add(int value, std::function<Values()> exchange);
  // What add() was called with last for |value| returned; nothing if it was never called. Getting it throws what it threw.
  const Received* find(int value) const;
  // Until all exchanges are done, whether or not they failed.
  void wait() const;
  // Whether all exchanges are done: then the calling thread may exchange.
  bool is_idle() const;
  std::exception_ptr error() const;

 private:
  struct Task {
    std::function<Values()> exchange;
    std::promise<Values> received;
  };
  void work();

  const std::function<void()> on_failure_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;  // the first one is under way
  std::exception_ptr error_;
  bool is_ending_ = false;
  std::map<int, Received> received_;
  std::thread thread_;
};

}  // namespace tenon::mesh

#include "server/compute/task_pool.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>

namespace tenon::server {

void TaskPool::end() {
  std::map<std::string, Lane> dropped;  // their captures go outside the lock
  std::unique_lock lock(mutex_);
  is_ending_ = true;
  for (auto& [key, lane] : lanes_) dropped[key].tasks.swap(lane.tasks);
  ready_.clear();
  waiting_ = 0;
  wake_.notify_all();
  ended_.wait(lock, [&] { return threads_ == 0; });
}

bool TaskPool::may_run(const Lane& lane) const {
  return !lane.tasks.empty() && lane.running < std::max<std::size_t>(1, max_threads_ / 2);
}

void TaskPool::list(const std::string& key, Lane& lane) {
  if (lane.is_listed || !may_run(lane)) return;
  lane.is_listed = true;
  ready_.push_back(key);
}

bool TaskPool::submit(const std::string& key, Task task) {
  const std::lock_guard lock(mutex_);
  if (is_ending_ || waiting_ >= max_waiting_) return false;
  Lane& lane = lanes_[key];
  lane.tasks.push_back(std::move(task));
  ++waiting_;
  list(key, lane);
  if (idle_ > 0) {
    wake_.notify_one();
  } else if (threads_ < max_threads_ && !ready_.empty()) {
    ++threads_;
    try {
      std::thread([this] { work(); }).detach();
    } catch (const std::system_error&) {
      --threads_;
      if (threads_ == 0) {
        lane.tasks.pop_back();
        --waiting_;
        return false;
      }
    }
  }
  return true;
}

void TaskPool::work() {
  pthread_setname_np(pthread_self(), "tenon-worker");
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    const bool woken = wake_.wait_for(lock, std::chrono::seconds(10), [&] { return is_ending_ || !ready_.empty(); });
    --idle_;
    if (is_ending_ || !woken) break;
    const std::string key = std::move(ready_.front());
    ready_.pop_front();
    Lane& lane = lanes_.at(key);
    lane.is_listed = false;
    Task task = std::move(lane.tasks.front());
    lane.tasks.pop_front();
    --waiting_;
    ++lane.running;
    ++running_;
    list(key, lane);
    // submit() wakes one thread a task; a lane that was full when its tasks came has to be taken up by whoever is idle now.
    if (!ready_.empty() && idle_ > 0) wake_.notify_one();
    lock.unlock();
    task();
    task = nullptr;
    lock.lock();
    --running_;
    if (--lane.running == 0 && lane.tasks.empty()) {
      lanes_.erase(key);
    } else {
      list(key, lane);
    }
  }
  --threads_;
  ended_.notify_all();
}

std::size_t TaskPool::waiting() const {
  const std::lock_guard lock(mutex_);
  return waiting_;
}

std::size_t TaskPool::running() const {
  const std::lock_guard lock(mutex_);
  return running_;
}

}  // namespace tenon::server

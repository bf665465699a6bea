#include "server/compute/turns.h"

#include <pthread.h>

#include <algorithm>

#include "base/threads/stop_scope.h"

namespace tenon::server {
namespace {

constexpr std::chrono::milliseconds kTurn{20};
constexpr std::chrono::milliseconds kShort{100};
constexpr std::chrono::seconds kFurthestBehind{1};
// How soon a task that waits notices that it is cancelled.
constexpr std::chrono::milliseconds kLook{250};

bool must_stop() {
  const StopScope* const scope = StopScope::current();
  return scope && scope->is_met();
}

}  // namespace

bool Turns::may_compute(const Task& task) const {
  return others_ < most_ || (task.computed_ < kShort && short_ones_ < most_short_);
}

void Turns::hand_over() {
  for (auto at = waiting_.begin(); at != waiting_.end() && (others_ < most_ || short_ones_ < most_short_);) {
    Task& next = *at->second;
    if (!may_compute(next)) {
      ++at;
      continue;
    }
    at = waiting_.erase(at);
    next.is_short_ = next.computed_ < kShort && short_ones_ < most_short_;
    ++(next.is_short_ ? short_ones_ : others_);
    next.state_ = Task::State::computing;
    next.place_ = computing_.insert(computing_.end(), &next);
    next.changed_.notify_one();
  }
  waiting_count_.store(waiting_.size(), std::memory_order_relaxed);
}

void Turns::wait_for(std::unique_lock<std::mutex>& lock, Task& task) {
  task.state_ = Task::State::waiting;
  const Clock::time_point now = Clock::now();
  const auto place = waiting_.emplace(now + std::min<Clock::duration>(task.computed_, kFurthestBehind), &task);
  hand_over();
  const auto is_due = [&] { return task.state_ != Task::State::waiting; };
  while (!task.changed_.wait_for(lock, kLook, is_due)) {
    // What is left to do is little, and frees memory.
    if (!must_stop()) continue;
    task.state_ = Task::State::away;
    waiting_.erase(place);
    waiting_count_.store(waiting_.size(), std::memory_order_relaxed);
  }
  task.is_taken_away_.store(false, std::memory_order_relaxed);
  task.cpu_seen_ = {};
}

void Turns::stop(Task& task) {
  computing_.erase(task.place_);
  --(task.is_short_ ? short_ones_ : others_);
  task.state_ = Task::State::away;
}

void Turns::free(Task& task) {
  if (task.state_ == Task::State::computing) stop(task);
  hand_over();
}

void Turns::tick() {
  // The thread of all connections calls this.
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || waiting_.empty()) return;
  for (auto at = computing_.begin(); at != computing_.end();) {
    Task& task = **at++;
    timespec used{};
    clock_gettime(task.cpu_clock_, &used);
    const bool is_asleep = used.tv_sec == task.cpu_seen_.tv_sec && used.tv_nsec == task.cpu_seen_.tv_nsec;
    task.cpu_seen_ = used;
    if (!is_asleep) continue;
    stop(task);
    task.is_taken_away_.store(true, std::memory_order_relaxed);
  }
  hand_over();
}

Turns::Task::Task(Turns& turns) : turns_(turns) {
  pthread_getcpuclockid(pthread_self(), &cpu_clock_);
  take_again();
  set_current(this);
}

Turns::Task::~Task() {
  set_current(nullptr);
  give_back();
}

void Turns::Task::offer() noexcept {
  if (away_ > 0) return;
  const bool is_taken_away = is_taken_away_.load(std::memory_order_relaxed);
  if (!is_taken_away && turns_.waiting_count_.load(std::memory_order_relaxed) == 0) return;
  const Clock::time_point now = Clock::now();
  if (!is_taken_away && now - since_ < kTurn) return;
  {
    std::unique_lock lock(turns_.mutex_);
    computed_ += now - since_;
    if (state_ == State::computing) turns_.stop(*this);
    turns_.wait_for(lock, *this);
  }
  since_ = Clock::now();
}

void Turns::Task::give_back() noexcept {
  if (away_++ > 0) return;
  const std::lock_guard lock(turns_.mutex_);
  computed_ += Clock::now() - since_;
  turns_.free(*this);
}

void Turns::Task::take_again() noexcept {
  if (--away_ > 0) return;
  {
    std::unique_lock lock(turns_.mutex_);
    turns_.wait_for(lock, *this);
  }
  since_ = Clock::now();
}

}  // namespace tenon::server

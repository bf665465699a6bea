#include "server/compute/turns.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/threads/stop_scope.h"
#include "server/compute/thread_priority.h"

namespace tenon::server {
namespace {

constexpr std::chrono::milliseconds kTurn{20};
constexpr std::chrono::milliseconds kShort{100};
constexpr std::chrono::seconds kFurthestBehind{1};
// How soon a task that waits notices that it is cancelled.
constexpr std::chrono::milliseconds kLook{250};
// Added to the nice value of a thread, by the kind of its task.
constexpr std::array<int, Turns::kKinds> kNice{0, 5, 10};

bool must_stop() {
  const StopScope* const scope = StopScope::current();
  return scope && scope->is_met();
}

}  // namespace

RecentUse::Duration Turns::use_of(const Task& task, Clock::time_point now) const {
  RecentUse::Duration least = RecentUse::kMost;
  for (const std::string& client : task.clients_) least = std::min(least, use_.of(client, now));
  return least;
}

Turns::Kind Turns::kind_of(const Task& task, Clock::time_point now) const {
  if (task.computed_ >= kShort) return Kind::lasting;
  return task.computed_ + use_of(task, now) < kShort ? Kind::fresh : Kind::brief;
}

void Turns::hand_over() {
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    Task& next = *at->second;
    if (!has_room(next.kind_)) {
      ++at;
      continue;
    }
    at = waiting_.erase(at);
    ++computing(next.kind_);
    next.state_ = Task::State::computing;
    next.place_ = computing_.insert(computing_.end(), &next);
    next.changed_.notify_one();
  }
  waiting_count_.store(waiting_.size(), std::memory_order_relaxed);
  computing_count_.store(computing_.size(), std::memory_order_relaxed);
}

void Turns::join(Task& task) {
  task.state_ = Task::State::waiting;
  const Clock::time_point now = Clock::now();
  task.kind_ = kind_of(task, now);
  const auto behind = std::min<Clock::duration>(task.computed_ + use_of(task, now), kFurthestBehind);
  task.waits_at_ = waiting_.emplace(now + behind, &task);
  hand_over();
}

void Turns::wait_for(std::unique_lock<std::mutex>& lock, Task& task) {
  join(task);
  const auto is_due = [&] { return task.state_ != Task::State::waiting; };
  while (!task.changed_.wait_for(lock, kLook, is_due)) {
    // What is left to do is little, and frees memory.
    if (!must_stop()) continue;
    task.state_ = Task::State::away;
    waiting_.erase(task.waits_at_);
    waiting_count_.store(waiting_.size(), std::memory_order_relaxed);
  }
  task.is_taken_away_.store(false, std::memory_order_relaxed);
  task.set_priority(task.kind_);
  task.seen_ = {};
}

void Turns::stop(Task& task) {
  computing_.erase(task.place_);
  --computing(task.kind_);
  task.state_ = Task::State::away;
}

void Turns::count(Task& task, Clock::time_point now) {
  const Task::Duration used = task.cpu_time() - task.counted_;
  task.counted_ += used;
  task.computed_ += used;
  for (const std::string& client : task.clients_) use_.add(client, used / static_cast<int>(task.clients_.size()), now);
}

// One that computes, maybe for too long to be short.
void Turns::classify(Task& task, Clock::time_point now) {
  const Kind kind = kind_of(task, now);
  if (kind == task.kind_) return;
  --computing(task.kind_);
  ++computing(kind);  // more than there are turns, until it offers its own
  task.kind_ = kind;
  task.set_priority(kind);
}

void Turns::tick() {
  // The thread of all connections calls this.
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  const Clock::time_point now = Clock::now();
  for (auto at = computing_.begin(); at != computing_.end();) {
    Task& task = **at++;
    count(task, now);
    const bool is_asleep = task.counted_ == std::exchange(task.seen_, task.counted_);
    if (is_asleep && !waiting_.empty()) {
      stop(task);
      task.is_taken_away_.store(true, std::memory_order_relaxed);
      continue;
    }
    classify(task, now);
  }
  hand_over();
}

Turns::Task::Task(Turns& turns, std::string client)
    : turns_(turns),
      thread_(gettid()),
      nice_(turns.sets_priorities_ ? own_nice() : 0) {
  clients_.push_back(std::move(client));
  pthread_getcpuclockid(pthread_self(), &cpu_clock_);
  counted_ = cpu_time();
  take_again();
  set_current(this);
}

Turns::Task::~Task() {
  set_current(nullptr);
  give_back();
}

Turns::Task::Duration Turns::Task::cpu_time() const noexcept {
  timespec used{};
  clock_gettime(cpu_clock_, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

void Turns::Task::set_priority(Kind kind) noexcept {
  if (!turns_.sets_priorities_ || priority_ == kind) return;
  priority_ = kind;
  setpriority(PRIO_PROCESS, static_cast<id_t>(thread_), nice_ + kNice[static_cast<std::size_t>(kind)]);
}

void Turns::Task::offer() noexcept {
  if (away_ > 0) return;
  const Clock::time_point now = Clock::now();
  if (!is_taken_away_.load(std::memory_order_relaxed) && now - since_ < kTurn) return;
  {
    std::unique_lock lock(turns_.mutex_);
    turns_.count(*this, now);
    if (state_ == State::computing && turns_.waiting_.empty()) {
      turns_.classify(*this, now);
    } else {
      if (state_ == State::computing) turns_.stop(*this);
      turns_.wait_for(lock, *this);
    }
  }
  since_ = Clock::now();
}

void Turns::Task::give_back() noexcept {
  if (away_++ > 0) return;
  const std::lock_guard lock(turns_.mutex_);
  turns_.count(*this, Clock::now());
  if (state_ == State::computing) turns_.stop(*this);
  set_priority(Kind::fresh);  // it may have something that others wait for, a card for one
  turns_.hand_over();
}

void Turns::Task::work_for(std::vector<std::string> clients) {
  const std::lock_guard lock(turns_.mutex_);
  const Clock::time_point now = Clock::now();
  turns_.count(*this, now);
  clients_ = std::move(clients);
  if (state_ == State::computing) turns_.classify(*this, now);
}

void Turns::Task::work_also_for(const std::string& client) {
  const std::lock_guard lock(turns_.mutex_);
  if (std::find(clients_.begin(), clients_.end(), client) != clients_.end()) return;
  const Clock::time_point now = Clock::now();
  turns_.count(*this, now);
  clients_.push_back(client);
  if (state_ == State::computing) turns_.classify(*this, now);
  if (state_ != State::waiting) return;
  turns_.waiting_.erase(waits_at_);
  turns_.join(*this);
}

bool Turns::Task::is_crowded() const noexcept {
  return turns_.waiting_count_.load(std::memory_order_relaxed) > 0 ||
         turns_.computing_count_.load(std::memory_order_relaxed) >= turns_.most_[static_cast<std::size_t>(Kind::lasting)];
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

// Turns: lets few tasks compute at a time, and the others wait without a lock.
//
// Threads beyond the cores do not compute faster, but they are interrupted at any point, with a lock of the heap, say, that the
// thread of all connections then waits for. A task has a turn while a Turns::Task lives on its thread's stack. After 20 ms it
// lets others compute, at the next place where it holds no lock (Turn::offer). Who has computed least comes first: a task is
// behind those that come up to a second later if it, and its client lately, have computed for so long, so that short ones hardly
// wait, and long ones not for ever.
//
// There are as many turns as cores for each of three kinds of tasks, because some tasks have no such place for long: those of
// clients that have computed little lately, other short ones, and long ones. The system prefers the threads in this order, where
// it allows us to say so.
//
// Nobody can keep a turn by waiting for something else: tick() takes it from a thread that has used no CPU time since the last
// one. It also notices tasks that are no longer short.
//
// Lifetime: outlives its tasks. Thread safety: all calls may come from any thread; a Task is its thread's own.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/threads/recent_use.h"
#include "base/threads/turn.h"

namespace tenon::server {

class Turns {
 public:
  using Clock = std::chrono::steady_clock;
  class Task;
  enum class Kind : std::uint8_t { fresh, brief, lasting };
  static constexpr std::size_t kKinds = 3;

  // At a time, of each kind.
  explicit Turns(std::array<std::size_t, kKinds> most, bool sets_priorities = false)
      : most_(most),
        sets_priorities_(sets_priorities) {}
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  // A few times a second. Does nothing where it would have to wait for another thread.
  void tick();

  std::size_t waiting() const noexcept { return waiting_count_.load(std::memory_order_relaxed); }

 private:
  // All with mutex_ held.
  void hand_over();
  void join(Task& task);  // those that wait
  void wait_for(std::unique_lock<std::mutex>& lock, Task& task);
  void stop(Task& task);  // computing
  void count(Task& task, Clock::time_point now);
  void classify(Task& task, Clock::time_point now);
  RecentUse::Duration use_of(const Task& task, Clock::time_point now) const;
  Kind kind_of(const Task& task, Clock::time_point now) const;
  std::size_t& computing(Kind kind) { return computing_of_[static_cast<std::size_t>(kind)]; }
  bool has_room(Kind kind) const { return computing_of_[static_cast<std::size_t>(kind)] < most_[static_cast<std::size_t>(kind)]; }

  const std::array<std::size_t, kKinds> most_;
  const bool sets_priorities_;
  std::mutex mutex_;
  RecentUse use_;
  std::multimap<Clock::time_point, Task*> waiting_;  // by when it is their turn
  std::list<Task*> computing_;
  std::array<std::size_t, kKinds> computing_of_{};
  std::atomic<std::size_t> waiting_count_{0}, computing_count_{0};
};

// The constructor waits for a turn, the destructor gives it back.
class Turns::Task final : public Turn {
 public:
  // |client|: on whose behalf; "" for nobody's.
  explicit Task(Turns& turns, std::string client = {});
  ~Task();

  void offer() noexcept override;
  void give_back() noexcept override;
  void take_again() noexcept override;
  bool is_crowded() const noexcept override;

  // From now on the task works for all of |clients|, who are charged alike, and counts as one of the least busy of them.
  void work_for(std::vector<std::string> clients);
  // For one more, who has just come. May be called by another thread.
  void work_also_for(const std::string& client);
  // Of the calling thread; nullptr if it has none.
  static Task* of_this_thread() noexcept { return dynamic_cast<Task*>(current()); }

 private:
  friend class Turns;
  using Duration = RecentUse::Duration;
  Duration cpu_time() const noexcept;
  void set_priority(Kind kind) noexcept;

  Turns& turns_;
  const pid_t thread_;
  const int nice_;           // of the thread without a task
  Clock::time_point since_;  // when this turn began
  int away_ = 1;             // how many have given it back
  clockid_t cpu_clock_{};
  // With the mutex of |turns_| held.
  std::vector<std::string> clients_;
  std::condition_variable changed_;
  enum class State : std::uint8_t { away, waiting, computing } state_ = State::away;
  std::list<Task*>::iterator place_;
  std::multimap<Clock::time_point, Task*>::iterator waits_at_;
  Kind kind_ = Kind::fresh, priority_ = Kind::fresh;
  Duration counted_{};   // CPU time of the thread that is in |computed_|, or was used before
  Duration computed_{};  // also without a turn
  Duration seen_{};      // |counted_| at the last tick
  std::atomic<bool> is_taken_away_{false};
};

}  // namespace tenon::server

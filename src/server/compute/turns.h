// Turns: lets as many tasks compute at a time as there are cores, and the others wait without a lock.
//
// Threads beyond the cores do not compute faster, but they are interrupted at any point, with a lock of the heap, say, that the
// thread of all connections then waits for. A task has a turn while a Turns::Task lives on its thread's stack. After 20 ms it
// lets others compute, at the next place where it holds no lock (Turn::offer). Who has computed least comes first: a task is
// behind those that come up to a second later if it has computed for so long, so that short ones hardly wait, and long ones not
// for ever. For the first 100 ms of a task there are as many turns again: some tasks have no such place for long.
//
// Nobody can keep a turn by waiting for something else: tick() takes it from a thread that has used no CPU time since the last
// one.
//
// Lifetime: outlives its tasks. Thread safety: all calls may come from any thread; a Task is its thread's own.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <ctime>
#include <list>
#include <map>
#include <mutex>

#include "base/threads/turn.h"

namespace tenon::server {

class Turns {
 public:
  using Clock = std::chrono::steady_clock;
  class Task;

  // |most_short|: besides, for short tasks.
  Turns(std::size_t most, std::size_t most_short) : most_(most), most_short_(most_short) {}
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  // A few times a second. Does nothing where it would have to wait for another thread.
  void tick();

  std::size_t waiting() const noexcept { return waiting_count_.load(std::memory_order_relaxed); }

 private:
  // All with mutex_ held.
  void hand_over();
  void wait_for(std::unique_lock<std::mutex>& lock, Task& task);
  void free(Task& task);
  void stop(Task& task);  // computing
  bool may_compute(const Task& task) const;

  const std::size_t most_, most_short_;
  std::mutex mutex_;
  std::multimap<Clock::time_point, Task*> waiting_;  // by when it is their turn
  std::list<Task*> computing_;
  std::size_t short_ones_ = 0, others_ = 0;  // of them
  std::atomic<std::size_t> waiting_count_{0};
};

// The constructor waits for a turn, the destructor gives it back.
class Turns::Task final : public Turn {
 public:
  explicit Task(Turns& turns);
  ~Task();

  void offer() noexcept override;
  void give_back() noexcept override;
  void take_again() noexcept override;

 private:
  friend class Turns;
  Turns& turns_;
  Clock::time_point since_;  // when this turn began
  Clock::duration computed_{};
  int away_ = 1;  // how many have given it back
  clockid_t cpu_clock_{};
  // With the mutex of |turns_| held.
  std::condition_variable changed_;
  enum class State : std::uint8_t { away, waiting, computing } state_ = State::away;
  std::list<Task*>::iterator place_;
  bool is_short_ = false;  // has one of the turns for short tasks
  timespec cpu_seen_{};    // at the last tick
  std::atomic<bool> is_taken_away_{false};
};

}  // namespace tenon::server

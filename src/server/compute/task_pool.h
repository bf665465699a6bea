// TaskPool: threads for what may compute or wait, started as they are needed.
//
// Tasks have a key (a device, a route). Keys are served in turn, and one key may have at most half of the threads, so that many
// requests that wait for one busy device leave room for the others. Idle threads end after a while.
//
// Lifetime: the destructor drops tasks that have not begun and waits for the running ones.
// Thread safety: all calls may come from any thread.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <thread>

namespace tenon::server {

class TaskPool {
 public:
  using Task = std::function<void()>;

  TaskPool(std::size_t max_threads, std::size_t max_waiting) : max_threads_(max_threads), max_waiting_(max_waiting) {}
  ~TaskPool() { end(); }
  TaskPool(const TaskPool&) = delete;
  TaskPool& operator=(const TaskPool&) = delete;

  // False when too many wait already. |task| must not throw.
  bool submit(const std::string& key, Task task);
  // As the destructor; nothing is taken afterwards.
  void end();

  std::size_t waiting() const;
  std::size_t running() const;

 private:
  struct Lane {
    std::deque<Task> tasks;
    std::size_t running = 0;
    bool is_listed = false;  // in |ready_|
  };
  void work();
  bool may_run(const Lane& lane) const;
  void list(const std::string& key, Lane& lane);

  const std::size_t max_threads_, max_waiting_;
  mutable std::mutex mutex_;
  std::condition_variable wake_, ended_;
  std::map<std::string, Lane> lanes_;
  std::deque<std::string> ready_;  // keys with a task that may run now, in turn
  std::size_t threads_ = 0, idle_ = 0, waiting_ = 0, running_ = 0;
  bool is_ending_ = false;
};

}  // namespace tenon::server

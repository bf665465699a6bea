// TaskPool: threads for what may compute or wait, started as they are needed.
//
// A task is of a client and joins a queue (a device, a route). Clients are served in turn, and so are the queues of one client.
// Neither one client nor one queue can take all threads or all places to wait, and one queue cannot take all threads of its
// client: whoever sends much waits for himself only, and for other devices not even that. A task that runs for long loses
// priority (lower_long_tasks), so that the operating system prefers short ones. Idle threads end after a while.
//
// Lifetime: the destructor drops tasks that have not begun and waits for the running ones.
// Thread safety: all calls may come from any thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace tenon::server {

class TaskPool {
 public:
  using Task = std::function<void()>;
  using Clock = std::chrono::steady_clock;

  struct Limits {
    std::size_t threads = 64, waiting = 1024;
    std::size_t threads_of_client = 16, waiting_of_client = 256;
    std::size_t threads_of_queue = 32, threads_of_client_in_queue = 8;
    int nice = 0;  // added to that of the thread that makes the pool
  };
  // A quarter for one client, half for one queue, half of a client's for one of its queues.
  static Limits shared_fairly(std::size_t threads, std::size_t waiting);

  explicit TaskPool(const Limits& limits);
  ~TaskPool() { end(); }
  TaskPool(const TaskPool&) = delete;
  TaskPool& operator=(const TaskPool&) = delete;

  // False when too many wait already. |task| must not throw.
  bool submit(const std::string& client, const std::string& queue, Task task);
  // Tasks that have run for a while go on with less priority than the other threads of the process.
  void lower_long_tasks(Clock::time_point now);
  // As the destructor; nothing is taken afterwards. False if tasks still run after |patience|.
  bool end(std::optional<std::chrono::milliseconds> patience = std::nullopt);

  std::size_t waiting() const;
  std::size_t running() const;

 private:
  struct Queue {
    std::deque<Task> tasks;
    std::size_t running = 0;
  };
  struct Client {
    std::map<std::string, Queue> queues;  // with tasks that wait or run
    std::deque<std::string> turns;        // of the queues with tasks that wait
    std::size_t running = 0, waiting = 0;
  };
  struct Running {
    pid_t thread;
    Clock::time_point since;
    bool is_lowered = false;
  };
  struct Chosen {
    std::string client, queue;
    Task task;
  };
  void start_thread();
  void start_thread_if_needed();
  void work();
  // All with mutex_ held.
  bool has_room() const { return running_.size() < limits_.threads; }
  bool may_run(const Client& client, const std::string& queue) const;
  std::optional<std::size_t> next_queue(const Client& client) const;
  bool has_ready() const;
  std::optional<Chosen> take();
  void finished(const Chosen& chosen);

  const Limits limits_;
  const int nice_, lowered_nice_;
  mutable std::mutex mutex_;
  std::condition_variable wake_, ended_;
  std::map<std::string, Client> clients_;  // with tasks that wait or run
  std::deque<std::string> turns_;          // of clients with tasks that wait
  std::map<std::string, std::size_t> running_of_queue_;
  std::list<Running> running_;
  std::size_t threads_ = 0, idle_ = 0, waiting_ = 0;
  std::size_t lowered_ = 0;  // threads besides, which end with the task they have
  bool is_ending_ = false;
};

}  // namespace tenon::server

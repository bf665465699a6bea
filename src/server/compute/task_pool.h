// TaskPool: threads for what may compute or wait, started as they are needed.
//
// A task is of a client and joins a queue (a device, a route). Clients are served in turn, and so are the queues of one client.
// Neither one client nor one queue can take all threads or all places to wait, and one queue cannot take all threads of its
// client: whoever sends much waits for himself only, and for other devices not even that. Idle threads end after a while.
//
// submit() does not wait for another thread that the system has interrupted with the pool's lock: what comes meanwhile is taken
// in by the one who has the lock. Of these, 64 at most are taken at a time, whatever their clients have waiting already; which of
// them runs next is decided as for all others.
//
// Lifetime: the destructor drops tasks that have not begun and waits for the running ones.
// Thread safety: all calls may come from any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/threads/arrivals.h"
#include "server/compute/turns.h"

namespace tenon::server {

class TaskPool {
 public:
  using Task = std::function<void()>;

  struct Limits {
    std::size_t threads = 64, waiting = 1024;
    std::size_t threads_of_client = 16, waiting_of_client = 256;
    std::size_t threads_of_queue = 32, threads_of_client_in_queue = 8;
    int nice = 0;  // added to that of the thread that makes the pool
  };
  // A quarter for one client, half for one queue, half of a client's for one of its queues.
  static Limits shared_fairly(std::size_t threads, std::size_t waiting);

  // Where there are |turns|, tasks compute in turn.
  explicit TaskPool(const Limits& limits, Turns* turns = nullptr);
  ~TaskPool() { end(); }
  TaskPool(const TaskPool&) = delete;
  TaskPool& operator=(const TaskPool&) = delete;

  // False when too many wait already. |task| must not throw.
  bool submit(const std::string& client, const std::string& queue, Task task);
  // As the destructor; nothing is taken afterwards. False if tasks still run after |patience|.
  bool end(std::optional<std::chrono::milliseconds> patience = std::nullopt);

  std::size_t waiting() const;
  std::size_t running() const;

 private:
  struct Arrival {
    std::string client, queue;
    Task task;
  };
  struct Queue {
    std::deque<Task> tasks;
    std::size_t running = 0;
  };
  struct Client {
    std::map<std::string, Queue> queues;  // with tasks that wait or run
    std::deque<std::string> turns;        // of the queues with tasks that wait
    std::size_t running = 0, waiting = 0;
  };
  struct Chosen {
    std::string client, queue;
    Task task;
  };
  class Sleeper;
  class Locked;
  void work();
  std::optional<Chosen> next_task(Sleeper& sleeper);
  bool start_thread();
  // All with mutex_ held.
  void take_arrivals();
  void enqueue(const std::string& client, const std::string& queue, Task task);
  void want_thread_if_needed();
  bool has_room() const { return running_ < limits_.threads; }
  bool may_run(const Client& client, const std::string& queue) const;
  std::optional<std::size_t> next_queue(const Client& client) const;
  bool has_ready() const;
  std::optional<Chosen> take();
  void finished(const Chosen& chosen);

  const Limits limits_;
  const int nice_;
  Turns* const turns_;
  Arrivals<Arrival> arrivals_;  // not yet among the tasks of |clients_|
  std::atomic<std::size_t> arrived_{0};
  std::atomic<std::size_t> inside_{0};  // threads that may still look at this object
  mutable std::mutex mutex_;            // locked by Locked only
  std::condition_variable ended_;
  std::map<std::string, Client> clients_;     // with tasks that wait or run
  std::deque<std::string> turns_of_clients_;  // those with tasks that wait
  std::map<std::string, std::size_t> running_of_queue_;
  std::vector<Sleeper*> idle_;
  Sleeper* to_wake_ = nullptr;  // taken from |idle_|
  std::size_t to_start_ = 0;    // of |threads_|
  std::size_t threads_ = 0, waiting_ = 0, running_ = 0;
  bool is_ending_ = false;
};

}  // namespace tenon::server

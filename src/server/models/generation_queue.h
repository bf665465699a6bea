// GenerationQueue: the requests for text of one model. They advance together, a token each at a time (continuous batching).
//
// A request joins the batch of an instance (a device of the model) as soon as a row is free, and leaves it with its last token,
// when its client has gone or when its time is over. The next request is one of the highest priority among the clients with
// fewer than kRowsOfClient rows; among equals the client with the fewest rows, then clients in turn. A client with more rows is
// served when no other client waits. A few rows are kept for clients that have none, so that nobody waits for another's long
// texts to end. A client may have a quarter of the places to wait.
//
// A task of the server's workers advances a batch for a short while and then queues again, so that a long text does not keep a
// thread from others. A device that fails takes the requests that run on it, not those that wait; of those that run, the ones
// that have sent nothing yet wait again, once.
// Lifetime: by shared pointer, which its tasks keep. Thread safety: all calls may run concurrently; |piece| and |done| are called
// by a worker, or by whoever drops the request.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "model/generate/batch.h"
#include "server/compute/memory/memory_gate.h"
#include "server/compute/turns.h"

namespace tenon::server {

struct GenerationTask {
  using Clock = std::chrono::steady_clock;

  GenerationRequest request;
  std::string client;
  std::stop_token cancel;  // the client has gone
  MemoryGate::Share memory;
  int priority = 0;                                        // higher first
  Clock::time_point starts_by = Clock::time_point::max();  // it waits at most until then
  Clock::time_point deadline = Clock::time_point::max();   // and is complete by then
  std::function<void(const std::string& text)> piece = {};
  std::function<void(const Generation& result, std::exception_ptr error)> done = {};
  bool is_repeated = false;  // its first device failed
};

struct GenerationStatistics {
  std::size_t waiting = 0, running = 0;
  std::uint64_t requests = 0, failures = 0, prompt_tokens = 0, tokens = 0;
  std::uint64_t departed = 0, late = 0, refused = 0, repeated = 0;
};

class GenerationQueue : public std::enable_shared_from_this<GenerationQueue> {
 public:
  using Clock = GenerationTask::Clock;
  static constexpr std::size_t kRowsOfClient = GenerationBatch::kMostRows / 4;
  // Beyond GenerationBatch::kMostRows, for clients that have no row in the batch.
  static constexpr std::size_t kKeptRows = 4;

  struct Setup {
    std::string name;
    std::size_t instances = 1, max_queue = 1024;
    std::chrono::milliseconds max_run_time{300'000};  // of one text, from the beginning of its prompt
    // Runs a task in a worker; false if there is no room.
    std::function<bool(std::function<void()>)> start;
    // The model for an instance; blocks until it is loaded. The pointer keeps it in memory.
    std::function<std::shared_ptr<const Generator>(std::size_t instance, const std::stop_token&)> acquire;
    std::function<RunOptions(std::size_t instance, std::stop_token)> options;
    DeviceManager* manager = nullptr;
  };
  explicit GenerationQueue(Setup setup);
  ~GenerationQueue();

  // All of |tasks|, which have one client, or none: throws Problem 503 for a full queue, 429 for a client that has its part of
  // it.
  void submit(std::vector<GenerationTask> tasks);
  // Ends what runs and what waits with |error|.
  void fail_all(const std::exception_ptr& error);
  // Ends requests that wait and whose client has gone or whose time is over.
  void drop_dead();
  bool is_idle() const;
  GenerationStatistics statistics() const;

 private:
  struct Running;
  struct Instance;
  void start_idle(std::size_t tasks);
  void work(Instance& instance);
  bool step(Instance& instance);  // false: nothing is left to do
  void begin(Instance& instance, GenerationTask task);
  void fail_running(Instance& instance, const std::exception_ptr& error, bool may_repeat);
  void finish(GenerationTask& task, const Generation& result, const std::exception_ptr& error);
  std::exception_ptr late() const;
  // With mutex_ held.
  void enqueue(GenerationTask task);
  std::optional<GenerationTask> take(const Instance& instance);
  std::vector<GenerationTask> take_if(const std::function<bool(const GenerationTask&)>& is_wanted);
  std::size_t waiting_of(const std::string& client) const;
  bool rests(const Instance& instance) const;  // others take what waits

  const Setup setup_;
  mutable std::mutex mutex_;
  std::map<std::string, std::deque<GenerationTask>> waiting_;  // by client; higher priorities first
  std::deque<std::string> turns_;                              // of clients that wait
  GenerationStatistics statistics_;
  std::vector<std::unique_ptr<Instance>> instances_;
};

}  // namespace tenon::server

// GenerationQueue: the requests for text of one model. They advance together, a token each at a time (continuous batching).
//
// A request joins the batch as soon as a row is free; clients take turns. It leaves it with its last token, or when its client
// has gone. A task of the server's workers advances the batch for a short while and then queues again, so that a long text does
// not keep a thread from others. What fails takes the requests that run with it, not those that wait. Lifetime: by shared
// pointer, which its tasks keep. Thread safety: all calls may run concurrently; |piece| and |done| are called by a worker.
#pragma once

#include <chrono>
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

#include "model/generate/batch.h"
#include "server/compute/memory_gate.h"

namespace tenon::server {

struct GenerationTask {
  GenerationRequest request;
  std::string client;
  std::stop_token cancel;  // the client has gone
  MemoryGate::Share memory;
  std::function<void(const std::string& text)> piece = {};
  std::function<void(const Generation& result, std::exception_ptr error)> done;
};

struct GenerationStatistics {
  std::size_t waiting = 0, running = 0;
  std::uint64_t requests = 0, failures = 0, prompt_tokens = 0, tokens = 0;
};

class GenerationQueue : public std::enable_shared_from_this<GenerationQueue> {
 public:
  struct Setup {
    std::string name;
    std::size_t max_queue = 1024;
    // Runs a task in a worker; false if there is no room.
    std::function<bool(std::function<void()>)> start;
    // The model; blocks until it is loaded. The pointer keeps it in memory.
    std::function<std::shared_ptr<const Generator>(const std::stop_token&)> acquire;
    std::function<RunOptions(std::stop_token)> options;
    DeviceManager* manager = nullptr;
  };
  explicit GenerationQueue(Setup setup) : setup_(std::move(setup)) {}

  // Throws Problem for a full queue.
  void submit(GenerationTask task);
  // Ends what runs and what waits with |error|.
  void fail_all(const std::exception_ptr& error);
  bool is_idle() const;
  GenerationStatistics statistics() const;

 private:
  struct Running;
  void work();
  std::optional<GenerationTask> take();  // with mutex_ held
  void begin(GenerationTask task);
  void fail_running(const std::exception_ptr& error);
  void count(const Generation& result, bool is_failure);

  const Setup setup_;
  mutable std::mutex mutex_;
  std::map<std::string, std::deque<GenerationTask>> waiting_;  // by client
  std::deque<std::string> turns_;                              // of clients that wait
  bool is_working_ = false;
  std::stop_source stop_;
  std::exception_ptr stop_reason_;
  GenerationStatistics statistics_;
  // Of the worker.
  std::shared_ptr<const Generator> generator_;
  std::unique_ptr<GenerationBatch> batch_;
  std::set<std::shared_ptr<Running>> running_;
};

}  // namespace tenon::server

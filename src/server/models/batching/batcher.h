// Batcher: dynamic batching for one model. Requests go in one by one and run together where they can.
//
// While the model is idle an item runs at once; nothing waits for company. While as many batches run as there are instances,
// items collect. A batch is one task of a thread pool, so models share the threads fairly and a batch is one lease of a device.
// Items whose client has gone, or whose deadline is over, leave the queue without running; a running batch is cancelled when all
// of its clients have gone.
//
// Lifetime: outlives its tasks: the owner stops the pool first, or keeps it alive by |keep_alive|.
// Thread safety: all calls may run concurrently.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "server/models/batching/batch_queue.h"

namespace tenon::server {

struct BatchStatistics {
  struct Duration {
    std::uint64_t count = 0, nanoseconds = 0;
    void add(double seconds) {
      ++count;
      nanoseconds += static_cast<std::uint64_t>(seconds * 1e9);
    }
  };
  std::uint64_t inferences = 0, executions = 0;  // rows, batches
  Duration success, fail, queue, compute;
  std::map<std::int64_t, Duration> batches;         // by rows
  std::uint64_t elements = 0, padded_elements = 0;  // tokens of the requests, and of the batches they were padded to
  std::uint64_t departed = 0, late = 0, refused = 0;
  std::int64_t last_ms = 0;  // of the last inference, since 1970
  std::size_t waiting = 0, running = 0;
  std::int64_t rows_limit = 0;
};

// What came of one item of a batch.
struct BatchResult {
  NamedArrays outputs;
  std::exception_ptr error;  // instead
};

class Batcher {
 public:
  using Clock = BatchItem::Clock;
  // Runs the batch and gives the results of its items in order. Throws for all of them.
  using Run = std::function<std::vector<BatchResult>(const Batch& batch, std::size_t instance, std::stop_token cancel,
                                                     std::string& device)>;

  struct Setup {
    std::string name;
    std::size_t instances = 1, max_queue = 1024;
    BatchLimits limits;
    std::function<bool(std::function<void()>)> start;  // runs it in a thread of a pool soon; false when the pool is full
    Run run;
  };
  explicit Batcher(Setup setup) : setup_(std::move(setup)), is_busy_(setup_.instances, false) {}

  // All of |items| or, with Problem 429 or 503 for a full queue, none.
  void submit(std::vector<BatchItem> items);
  // Nothing is batched from now on, and why.
  void set_rows_limit(std::int64_t rows);
  // Every item that waits fails with |error|.
  void fail_waiting(const std::exception_ptr& error);
  // Items whose client has gone or whose deadline is over fail now.
  void drop_dead();
  // Running batches are told to end.
  void cancel_running();
  bool is_idle() const;
  BatchStatistics statistics() const;

 private:
  void start_idle();                // tasks for what waits
  void work(std::size_t instance);  // one batch
  void run(Batch batch, std::size_t instance);
  void finish(BatchItem item, BatchOutcome outcome);

  Setup setup_;
  mutable std::mutex mutex_;
  BatchQueue queue_;
  BatchProfile profile_;
  std::map<std::pair<std::int64_t, std::int64_t>, bool> has_run_;  // shapes: the first time of each includes compiling
  BatchStatistics statistics_;
  std::vector<bool> is_busy_;  // by instance
  std::size_t running_ = 0;
  std::map<std::size_t, std::stop_source> cancels_;  // of running batches, by instance
};

}  // namespace tenon::server

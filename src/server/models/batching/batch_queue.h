// BatchQueue: what waits for one model, and which of it runs together next.
//
// Items of one batch have the same key. Those with a length (tokens) are padded to the length class of the first; within a class
// padding is small, and the number of different shapes, each of which must be compiled, is bounded. The order is: higher
// priorities first, then clients in turn, then first come. The first item of that order is always in the next batch, so nothing
// waits forever behind items of its own priority.
// Thread safety: one thread at a time; Batcher holds its lock.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

#include "server/compute/memory/memory_gate.h"
#include "server/models/batching/batch_profile.h"
#include "tenon/array.h"
#include "tenon/model/tokenizer.h"

namespace tenon::server {

using NamedArrays = std::map<std::string, HostArray>;

// What came of an item.
struct BatchOutcome {
  NamedArrays outputs;       // of tensors; the vector of tokens is named "embedding"
  std::exception_ptr error;  // instead
  std::int64_t rows = 0;     // of the batch it was in
  double queue_seconds = 0, compute_seconds = 0;
  std::string device;
};

struct BatchItem {
  using Clock = std::chrono::steady_clock;

  std::string key;
  std::int64_t rows = 1;
  std::int64_t length = 0;  // of the axis that is padded; 0: none is
  int priority = 0;         // higher first
  Clock::time_point arrived, deadline = Clock::time_point::max();
  std::string client;
  std::string device;  // the device request; "": the model's
  std::stop_token cancel;
  std::variant<NamedArrays, Tokens> input;
  MemoryGate::Share memory;
  std::function<void(BatchOutcome)> done;  // called once, by the thread that ran the batch
};

// The length that |length| is padded to: multiples of 8 up to 64, of 16 up to 128, of 32 up to 256, then of 64.
std::int64_t length_class(std::int64_t length) noexcept;

struct Batch {
  std::vector<BatchItem> items;
  std::int64_t rows = 0;
  std::int64_t length = 0;  // all items are padded to it
};

struct BatchLimits {
  std::int64_t rows = 32;  // 1: nothing is batched
  std::chrono::duration<double> latency_objective{0.5};
};

class BatchQueue {
 public:
  using Clock = BatchItem::Clock;

  void add(BatchItem item);
  std::size_t size() const noexcept { return items_.size(); }
  std::size_t size_of(const std::string& client) const;
  bool empty() const noexcept { return items_.empty(); }

  // Items whose client has gone or whose deadline is over.
  std::vector<BatchItem> take_dead(Clock::time_point now);
  // The next batch; empty if nothing waits.
  Batch take(const BatchLimits& limits, const BatchProfile& profile, Clock::time_point now);
  std::vector<BatchItem> take_all();

 private:
  std::vector<std::list<BatchItem>::iterator> ordered();

  std::list<BatchItem> items_;  // in the order of arrival
};

}  // namespace tenon::server

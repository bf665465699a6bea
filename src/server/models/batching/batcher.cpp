#include "server/models/batching/batcher.h"

#include <fmt/format.h>

#include <deque>

#include "base/log.h"
#include "server/http/problem.h"
#include "tenon/error.h"

namespace tenon::server {
namespace {

// Stops |all| when every one of the items has been given up.
class Departures {
 public:
  Departures(const std::vector<BatchItem>& items, std::stop_source all) : left_(items.size()) {
    for (const BatchItem& item : items)
      if (item.cancel.stop_possible())
        callbacks_.emplace_back(item.cancel, [this, all]() mutable {
          if (--left_ == 0) all.request_stop();
        });
  }

 private:
  std::atomic<std::size_t> left_;
  std::deque<std::stop_callback<std::function<void()>>> callbacks_;
};

double seconds_between(BatchItem::Clock::time_point begin, BatchItem::Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

std::int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

void Batcher::submit(std::vector<BatchItem> items) {
  {
    const std::lock_guard lock(mutex_);
    const std::string& client = items.front().client;
    if (queue_.size() + items.size() > setup_.max_queue) {
      statistics_.refused += items.size();
      throw Problem(503, "overloaded", fmt::format("{} requests wait for the model {} already", queue_.size(), setup_.name),
                    "try again in a moment, or send fewer texts at once")
          .with_retry(1);
    }
    if (queue_.size_of(client) + items.size() > std::max<std::size_t>(setup_.max_queue / 4, 1)) {
      statistics_.refused += items.size();
      throw Problem(429, "resource_exhausted",
                    fmt::format("this client has {} requests waiting for the model {}; a client may have {}",
                                queue_.size_of(client), setup_.name, std::max<std::size_t>(setup_.max_queue / 4, 1)),
                    "wait for the answers, or send fewer texts at once")
          .with_retry(1);
    }
    for (BatchItem& item : items) {
      item.arrived = Clock::now();
      queue_.add(std::move(item));
    }
  }
  start_idle();
}

void Batcher::set_rows_limit(std::int64_t rows) {
  const std::lock_guard lock(mutex_);
  setup_.limits.rows = rows;
}

void Batcher::start_idle() {
  while (true) {
    std::size_t instance = 0;
    {
      const std::lock_guard lock(mutex_);
      while (instance < is_busy_.size() && is_busy_[instance]) ++instance;
      if (instance == is_busy_.size() || queue_.size() <= running_ - cancels_.size()) return;
      is_busy_[instance] = true;
      ++running_;
    }
    if (setup_.start([this, instance] { work(instance); })) continue;
    std::vector<BatchItem> stranded;
    {
      const std::lock_guard lock(mutex_);
      is_busy_[instance] = false;
      // While another batch runs, its end starts the next one.
      if (--running_ == 0) stranded = queue_.take_all();
      statistics_.refused += stranded.size();
    }
    for (BatchItem& item : stranded)
      item.done({.error = std::make_exception_ptr(
                     Problem(503, "overloaded", "too many requests are waiting", "try again in a moment").with_retry(1))});
    return;
  }
}

void Batcher::drop_dead() {
  std::vector<BatchItem> dead;
  {
    const std::lock_guard lock(mutex_);
    dead = queue_.take_dead(Clock::now());
    for (const BatchItem& item : dead) ++(item.cancel.stop_requested() ? statistics_.departed : statistics_.late);
  }
  for (BatchItem& item : dead) {
    const bool is_gone = item.cancel.stop_requested();
    item.done({.error = std::make_exception_ptr(
                   is_gone ? Problem(499, "cancelled", "the client has gone")
                           : Problem(504, "deadline_exceeded",
                                     fmt::format("the request waited for the model {} until its timeout", setup_.name),
                                     "raise 'timeout', or send it when the server is less busy"))});
  }
}

void Batcher::work(std::size_t instance) {
  while (true) {
    drop_dead();
    Batch batch;
    {
      const std::lock_guard lock(mutex_);
      batch = queue_.take(setup_.limits, profile_, Clock::now());
      if (batch.items.empty()) {
        is_busy_[instance] = false;
        --running_;
        return;
      }
    }
    run(std::move(batch), instance);
    {
      const std::lock_guard lock(mutex_);
      if (queue_.empty()) {
        is_busy_[instance] = false;
        --running_;
        return;
      }
    }
    // One batch is one task: other models have their turn. Without room for a further task this one goes on.
    if (setup_.start([this, instance] { work(instance); })) return;
  }
}

void Batcher::run(Batch batch, std::size_t instance) {
  std::stop_source cancel;
  {
    const std::lock_guard lock(mutex_);
    cancels_.insert_or_assign(instance, cancel);
  }
  const Clock::time_point begin = Clock::now();
  std::vector<BatchResult> results(batch.items.size());
  std::string device;
  try {
    const Departures departures(batch.items, cancel);
    results = setup_.run(batch, instance, cancel.get_token(), device);
  } catch (...) {
    for (BatchResult& result : results) result.error = std::current_exception();
  }
  const Clock::time_point end = Clock::now();
  const double seconds = seconds_between(begin, end);
  {
    const std::lock_guard lock(mutex_);
    cancels_.erase(instance);
    BatchStatistics& all = statistics_;
    all.last_ms = now_ms();
    bool has_failed = false;
    for (std::size_t i = 0; i < batch.items.size(); ++i) {
      const BatchItem& item = batch.items[i];
      all.queue.add(seconds_between(item.arrived, begin));
      has_failed = has_failed || results[i].error;
      (results[i].error ? all.fail : all.success).add(seconds_between(item.arrived, end));
      if (!results[i].error) all.inferences += static_cast<std::uint64_t>(item.rows);
    }
    if (!has_failed) {
      ++all.executions;
      all.compute.add(seconds);
      all.batches[batch.rows].add(seconds);
      for (const BatchItem& item : batch.items) all.elements += static_cast<std::uint64_t>(item.rows * item.length);
      all.padded_elements += static_cast<std::uint64_t>(batch.rows * batch.length);
      if (std::exchange(has_run_[{batch.length, batch.rows}], true)) profile_.add(batch.rows, batch.length, seconds, end);
    }
  }
  for (std::size_t i = 0; i < batch.items.size(); ++i) {
    BatchItem& item = batch.items[i];
    BatchOutcome outcome{.outputs = std::move(results[i].outputs),
                         .error = results[i].error,
                         .rows = batch.rows,
                         .queue_seconds = seconds_between(item.arrived, begin),
                         .compute_seconds = seconds,
                         .device = device};
    finish(std::move(item), std::move(outcome));
  }
}

void Batcher::finish(BatchItem item, BatchOutcome outcome) {
  try {
    item.done(std::move(outcome));
  } catch (const std::exception& error) {
    // An answer that cannot be written costs its request, not the batch.
    logging::error("model {}: an answer is lost: {}", setup_.name, error.what());
  }
}

void Batcher::fail_waiting(const std::exception_ptr& error) {
  std::vector<BatchItem> waiting;
  {
    const std::lock_guard lock(mutex_);
    waiting = queue_.take_all();
  }
  for (BatchItem& item : waiting) finish(std::move(item), {.error = error});
}

void Batcher::cancel_running() {
  const std::lock_guard lock(mutex_);
  for (auto& [instance, source] : cancels_) source.request_stop();
}

bool Batcher::is_idle() const {
  const std::lock_guard lock(mutex_);
  return queue_.empty() && running_ == 0;
}

BatchStatistics Batcher::statistics() const {
  const std::lock_guard lock(mutex_);
  BatchStatistics out = statistics_;
  out.waiting = queue_.size();
  out.running = cancels_.size();
  out.rows_limit = setup_.limits.rows;
  return out;
}

}  // namespace tenon::server

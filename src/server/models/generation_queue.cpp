#include "server/models/generation_queue.h"

#include <fmt/format.h>

#include "base/log.h"
#include "server/http/problem.h"
#include "tenon/error.h"
#include "tenon/tensor.h"

namespace tenon::server {
namespace {

using Clock = std::chrono::steady_clock;
// Of one task of a worker.
constexpr std::chrono::milliseconds kTurn{100};

std::exception_ptr gone() { return std::make_exception_ptr(Error(ErrorCode::cancelled, "the client has gone")); }

}  // namespace

struct GenerationQueue::Running {
  GenerationTask task;
};

void GenerationQueue::submit(GenerationTask task) {
  bool starts = false;
  {
    const std::lock_guard lock(mutex_);
    if (statistics_.waiting >= setup_.max_queue)
      throw Problem(503, "overloaded", fmt::format("{} requests wait for model {}", statistics_.waiting, setup_.name),
                    "try again in a moment")
          .with_retry(2);
    std::deque<GenerationTask>& own = waiting_[task.client];
    if (own.empty()) turns_.push_back(task.client);
    own.push_back(std::move(task));
    ++statistics_.waiting;
    starts = !std::exchange(is_working_, true);
  }
  if (starts && !setup_.start([self = shared_from_this()] { self->work(); })) {
    fail_all(
        std::make_exception_ptr(Problem(503, "overloaded", "too many requests wait", "try again in a moment").with_retry(2)));
    const std::lock_guard lock(mutex_);
    is_working_ = false;
  }
}

std::optional<GenerationTask> GenerationQueue::take() {
  if (turns_.empty()) return std::nullopt;
  const std::string client = std::move(turns_.front());
  turns_.pop_front();
  const auto found = waiting_.find(client);
  GenerationTask task = std::move(found->second.front());
  found->second.pop_front();
  if (found->second.empty())
    waiting_.erase(found);
  else
    turns_.push_back(client);
  --statistics_.waiting;
  return task;
}

void GenerationQueue::count(const Generation& result, bool is_failure) {
  const std::lock_guard lock(mutex_);
  ++statistics_.requests;
  statistics_.failures += is_failure;
  statistics_.prompt_tokens += static_cast<std::uint64_t>(result.prompt_tokens);
  statistics_.tokens += result.ids.size();
  statistics_.running = running_.size();
}

void GenerationQueue::begin(GenerationTask task) {
  if (task.cancel.stop_requested()) return task.done({}, gone());
  try {
    batch_->check(task.request);
  } catch (const Error&) {
    count({}, true);
    return task.done({}, std::current_exception());
  }
  auto running = std::make_shared<Running>(Running{std::move(task)});
  running_.insert(running);
  {
    const std::lock_guard lock(mutex_);
    statistics_.running = running_.size();
  }
  const auto piece = [running](const std::string& text) {
    if (running->task.cancel.stop_requested()) return false;
    if (running->task.piece) running->task.piece(text);
    return true;
  };
  const auto done = [this, running](Generation result) {
    running_.erase(running);
    const bool has_gone = running->task.cancel.stop_requested();
    count(result, has_gone);
    running->task.done(result, has_gone ? gone() : nullptr);
  };
  batch_->add(running->task.request, piece, done, setup_.options(stop_.get_token()));
}

void GenerationQueue::fail_running(const std::exception_ptr& error) {
  batch_.reset();
  const std::set<std::shared_ptr<Running>> failed = std::exchange(running_, {});
  for (const auto& running : failed) {
    count({}, true);
    running->task.done({}, error);
  }
}

void GenerationQueue::work() {
  const Clock::time_point until = Clock::now() + kTurn;
  const UseManager manager(*setup_.manager);
  do {
    std::optional<GenerationTask> next;
    {
      const std::lock_guard lock(mutex_);
      if (!batch_ || batch_->size() < GenerationBatch::kMostRows) next = take();
      if (!next && (!batch_ || batch_->size() == 0)) {
        batch_.reset();
        generator_.reset();
        is_working_ = false;
        stop_ = std::stop_source();
        stop_reason_ = nullptr;
        return;
      }
    }
    try {
      if (!batch_) {
        try {
          generator_ = setup_.acquire(next ? next->cancel : std::stop_token());
        } catch (...) {
          count({}, true);
          if (next) next->done({}, std::current_exception());
          continue;
        }
        batch_ = std::make_unique<GenerationBatch>(*generator_, *setup_.manager);
      }
      if (next) begin(std::move(*next));
      batch_->step(setup_.options(stop_.get_token()));
    } catch (const std::exception& error) {
      logging::warn("model {}: {}", setup_.name, error.what());
      std::exception_ptr reason = std::current_exception();
      {
        const std::lock_guard lock(mutex_);
        if (stop_reason_) reason = std::exchange(stop_reason_, nullptr);
        stop_ = std::stop_source();
      }
      fail_running(reason);
    }
  } while (Clock::now() < until);
  if (setup_.start([self = shared_from_this()] { self->work(); })) return;
  // No room for another turn: the server is full or ends.
  const std::exception_ptr full =
      std::make_exception_ptr(Problem(503, "overloaded", "the server is full or ends", "try again in a moment").with_retry(2));
  fail_running(full);
  {
    const std::lock_guard lock(mutex_);
    is_working_ = false;
  }
  fail_all(full);
}

void GenerationQueue::fail_all(const std::exception_ptr& error) {
  std::vector<GenerationTask> failed;
  {
    const std::lock_guard lock(mutex_);
    while (std::optional<GenerationTask> task = take()) failed.push_back(std::move(*task));
    if (is_working_) {
      stop_reason_ = error;
      stop_.request_stop();
    }
  }
  for (GenerationTask& task : failed) task.done({}, error);
}

bool GenerationQueue::is_idle() const {
  const std::lock_guard lock(mutex_);
  return !is_working_;
}

GenerationStatistics GenerationQueue::statistics() const {
  const std::lock_guard lock(mutex_);
  return statistics_;
}

}  // namespace tenon::server

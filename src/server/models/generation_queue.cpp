#include "server/models/generation_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/log.h"
#include "base/threads/stop_scope.h"
#include "server/http/problem.h"
#include "tenon/error.h"
#include "tenon/tensor.h"

namespace tenon::server {
namespace {

using Clock = GenerationTask::Clock;
// Of one task of a worker.
constexpr std::chrono::milliseconds kTurn{100};
// After a failure of its device, an instance leaves the requests to the others for a while.
constexpr std::chrono::seconds kRest{5};

std::exception_ptr gone() { return std::make_exception_ptr(Problem(499, "cancelled", "the client has gone")); }

std::exception_ptr full(const std::string& why) {
  return std::make_exception_ptr(Problem(503, "overloaded", why, "try again in a moment").with_retry(2));
}

bool is_dead(const GenerationTask& task, Clock::time_point now) {
  return task.cancel.stop_requested() || std::min(task.starts_by, task.deadline) <= now;
}

// Stops when one of two does.
class EitherStop {
 public:
  EitherStop(std::stop_token a, std::stop_token b) : a_(std::move(a), Request{source_}), b_(std::move(b), Request{source_}) {}
  std::stop_token token() const { return source_.get_token(); }

 private:
  struct Request {
    std::stop_source source;
    void operator()() { source.request_stop(); }
  };
  std::stop_source source_;
  std::stop_callback<Request> a_, b_;
};

// Whether a request that a device failed to run may succeed elsewhere.
bool is_of_device(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& failure) {
    return failure.code() == ErrorCode::unavailable || failure.code() == ErrorCode::data_loss;
  } catch (...) {
    return false;
  }
}

}  // namespace

struct GenerationQueue::Running {
  GenerationTask task;
  Clock::time_point until;  // it ends here, complete or not
  bool has_sent = false;

  bool is_over() const { return task.cancel.stop_requested() || until <= Clock::now(); }
};

struct GenerationQueue::Instance {
  std::size_t number = 0;
  // With the queue's mutex held.
  bool is_working = false;
  bool is_starting = false;                    // its worker has not looked for requests yet
  Turns::Task* turn = nullptr;                 // of its worker, while it has one
  std::map<std::string, std::size_t> rows_of;  // by client, without zeros
  std::size_t rows = 0;
  Clock::time_point rests_until;
  std::stop_source stop;
  std::exception_ptr stop_reason;
  // Of its worker.
  std::shared_ptr<const Generator> generator;
  std::unique_ptr<GenerationBatch> batch;
  std::set<std::shared_ptr<Running>> running;

  void add_row(const std::string& client) {
    ++rows_of[client];
    ++rows;
  }
  void remove_row(const std::string& client) {
    if (--rows_of.at(client) == 0) rows_of.erase(client);
    --rows;
  }
  std::size_t rows_of_client(const std::string& client) const {
    const auto found = rows_of.find(client);
    return found == rows_of.end() ? 0 : found->second;
  }
};

GenerationQueue::GenerationQueue(Setup setup) : setup_(std::move(setup)) {
  for (std::size_t i = 0; i < std::max<std::size_t>(setup_.instances, 1); ++i) {
    instances_.push_back(std::make_unique<Instance>());
    instances_.back()->number = i;
  }
}

GenerationQueue::~GenerationQueue() = default;

std::exception_ptr GenerationQueue::late() const {
  return std::make_exception_ptr(
      Problem(504, "deadline_exceeded", fmt::format("model {} did not complete the text in time", setup_.name),
              "ask for fewer tokens, raise 'timeout_seconds', or send it when the server is less busy"));
}

// --- Waiting ---

std::size_t GenerationQueue::waiting_of(const std::string& client) const {
  const auto found = waiting_.find(client);
  return found == waiting_.end() ? 0 : found->second.size();
}

void GenerationQueue::enqueue(GenerationTask task) {
  std::deque<GenerationTask>& own = waiting_[task.client];
  if (own.empty()) turns_.push_back(task.client);
  const auto after = std::find_if(own.begin(), own.end(), [&](const auto& each) { return each.priority < task.priority; });
  own.insert(after, std::move(task));
  ++statistics_.waiting;
}

void GenerationQueue::submit(std::vector<GenerationTask> tasks) {
  if (tasks.empty()) return;
  drop_dead();  // they must not take places
  {
    const std::lock_guard lock(mutex_);
    const std::string& client = tasks.front().client;
    const std::size_t most = std::max<std::size_t>(setup_.max_queue / 4, 1), own = waiting_of(client);
    const bool is_full = statistics_.waiting + tasks.size() > setup_.max_queue;
    if (is_full || own + tasks.size() > most) statistics_.refused += tasks.size();
    if (is_full)
      throw Problem(503, "overloaded", fmt::format("{} requests wait for model {}", statistics_.waiting, setup_.name),
                    "try again in a moment")
          .with_retry(2);
    if (own + tasks.size() > most)
      throw Problem(
          429, "resource_exhausted",
          fmt::format("this client has {} requests waiting for the model {}; a client may have {}", own, setup_.name, most),
          "wait for the answers, or send fewer prompts at once")
          .with_retry(2);
    // Before the tasks are moved from.
    for (const std::unique_ptr<Instance>& instance : instances_)
      if (instance->turn) instance->turn->work_also_for(client);
    for (GenerationTask& task : tasks) enqueue(std::move(task));
  }
  start_idle(tasks.size());
}

bool GenerationQueue::rests(const Instance& instance) const {
  const Clock::time_point now = Clock::now();
  return instance.rests_until > now &&
         std::any_of(instances_.begin(), instances_.end(), [now](const auto& each) { return each->rests_until <= now; });
}

void GenerationQueue::start_idle(std::size_t tasks) {
  for (const std::unique_ptr<Instance>& instance : instances_) {
    if (tasks == 0) return;
    {
      const std::lock_guard lock(mutex_);
      if (instance->is_working || statistics_.waiting == 0 || rests(*instance)) continue;
      instance->is_working = instance->is_starting = true;
    }
    --tasks;
    if (setup_.start([self = shared_from_this(), &instance = *instance] { self->work(instance); })) continue;
    bool is_stranded = false;
    {
      const std::lock_guard lock(mutex_);
      instance->is_working = instance->is_starting = false;
      // While another instance works, it takes what waits.
      is_stranded = std::none_of(instances_.begin(), instances_.end(), [](const auto& each) { return each->is_working; });
    }
    if (is_stranded) fail_all(full("too many requests wait"));
    return;
  }
}

std::optional<GenerationTask> GenerationQueue::take(const Instance& instance) {
  using Rank = std::tuple<bool, int, std::size_t>;
  if (rests(instance)) return std::nullopt;
  // Instances that are about to look have devices that are free.
  const auto starting = static_cast<std::size_t>(
      std::count_if(instances_.begin(), instances_.end(), [](const auto& each) { return each->is_starting; }));
  if (statistics_.waiting <= starting) return std::nullopt;
  std::optional<Rank> best;
  auto chosen = turns_.end();
  for (auto turn = turns_.begin(); turn != turns_.end(); ++turn) {
    const std::size_t own = instance.rows_of_client(*turn);
    const bool has_room =
        instance.rows < GenerationBatch::kMostRows || (own == 0 && instance.rows < GenerationBatch::kMostRows + kKeptRows);
    if (!has_room) continue;
    const Rank rank{own >= kRowsOfClient, -waiting_.at(*turn).front().priority, own};
    if (best && *best <= rank) continue;
    best = rank;
    chosen = turn;
  }
  if (chosen == turns_.end()) return std::nullopt;
  const std::string client = std::move(*chosen);
  turns_.erase(chosen);
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

std::vector<GenerationTask> GenerationQueue::take_if(const std::function<bool(const GenerationTask&)>& is_wanted) {
  std::vector<GenerationTask> taken;
  for (auto client = waiting_.begin(); client != waiting_.end();) {
    std::deque<GenerationTask>& own = client->second;
    std::deque<GenerationTask> rest;
    for (GenerationTask& task : own) {
      if (is_wanted(task))
        taken.push_back(std::move(task));
      else
        rest.push_back(std::move(task));
    }
    own = std::move(rest);
    if (!own.empty()) {
      ++client;
      continue;
    }
    std::erase(turns_, client->first);
    client = waiting_.erase(client);
  }
  statistics_.waiting -= taken.size();
  return taken;
}

void GenerationQueue::drop_dead() {
  std::vector<GenerationTask> dead;
  {
    const std::lock_guard lock(mutex_);
    if (statistics_.waiting == 0) return;
    dead = take_if([now = Clock::now()](const GenerationTask& task) { return is_dead(task, now); });
  }
  for (GenerationTask& task : dead) finish(task, {}, task.cancel.stop_requested() ? gone() : late());
}

// --- Running ---

void GenerationQueue::finish(GenerationTask& task, const Generation& result, const std::exception_ptr& error) {
  {
    const std::lock_guard lock(mutex_);
    ++statistics_.requests;
    statistics_.failures += error != nullptr;
    statistics_.departed += error && task.cancel.stop_requested();
    statistics_.late += error && !task.cancel.stop_requested() && std::min(task.starts_by, task.deadline) <= Clock::now();
    statistics_.prompt_tokens += static_cast<std::uint64_t>(result.prompt_tokens);
    statistics_.tokens += result.ids.size();
  }
  try {
    task.done(result, error);
  } catch (const std::exception& failure) {
    // An answer that cannot be written costs its request, not the batch.
    logging::error("model {}: an answer is lost: {}", setup_.name, failure.what());
  }
}

void GenerationQueue::begin(Instance& instance, GenerationTask task) {
  auto running = std::make_shared<Running>(Running{.task = std::move(task), .until = {}});
  running->until = std::min(running->task.deadline, Clock::now() + setup_.max_run_time);
  const auto leave = [this, &instance, running] {
    instance.running.erase(running);
    const std::lock_guard lock(mutex_);
    instance.remove_row(running->task.client);
    --statistics_.running;
  };
  std::stop_token stop;
  {
    const std::lock_guard lock(mutex_);
    instance.add_row(running->task.client);
    ++statistics_.running;
    stop = instance.stop.get_token();
  }
  instance.running.insert(running);
  const auto piece = [running](const std::string& text) {
    if (running->is_over()) return false;
    if (text.empty()) return true;
    running->has_sent = running->has_sent || running->task.piece;
    if (running->task.piece) running->task.piece(text);
    return true;
  };
  const auto done = [this, running, leave](const Generation& result) {
    leave();
    const bool is_whole = result.finish != Generation::Finish::cancelled;
    finish(running->task, result, is_whole ? nullptr : running->task.cancel.stop_requested() ? gone() : late());
  };
  try {
    // Its client or its deadline ends this prompt, and nothing else.
    const EitherStop either(stop, running->task.cancel);
    const StopScope scope(running->task.cancel, running->until - Clock::now());
    instance.batch->add(running->task.request, piece, done, setup_.options(instance.number, either.token()));
  } catch (const std::exception&) {
    const std::exception_ptr error = std::current_exception();
    // The batch is as it was before; but if it has to end, or its device has failed, that concerns all.
    if (stop.stop_requested() || is_of_device(error)) throw;
    leave();
    finish(running->task, {}, running->task.cancel.stop_requested() ? gone() : running->is_over() ? late() : error);
  }
}

void GenerationQueue::fail_running(Instance& instance, const std::exception_ptr& error, bool may_repeat) {
  instance.batch.reset();
  instance.generator.reset();
  const std::set<std::shared_ptr<Running>> failed = std::exchange(instance.running, {});
  std::vector<std::shared_ptr<Running>> lost;
  {
    const std::lock_guard lock(mutex_);
    instance.rows_of.clear();
    instance.rows = 0;
    if (may_repeat) instance.rests_until = Clock::now() + kRest;
    statistics_.running -= failed.size();
    for (const std::shared_ptr<Running>& running : failed) {
      GenerationTask& task = running->task;
      if (!may_repeat || running->has_sent || std::exchange(task.is_repeated, true)) {
        lost.push_back(running);
        continue;
      }
      ++statistics_.repeated;
      enqueue(std::move(task));
    }
  }
  for (const std::shared_ptr<Running>& running : lost) finish(running->task, {}, error);
  start_idle(failed.size() - lost.size());
}

bool GenerationQueue::step(Instance& instance) {
  drop_dead();
  std::optional<GenerationTask> next;
  std::stop_token stop;
  {
    const std::lock_guard lock(mutex_);
    instance.is_starting = false;
    next = take(instance);
    if (!next && instance.running.empty()) {
      instance.batch.reset();
      instance.generator.reset();
      instance.is_working = false;
      instance.turn = nullptr;
      instance.stop = std::stop_source();
      instance.stop_reason = nullptr;
      return false;
    }
    stop = instance.stop.get_token();
    if (instance.turn) {
      std::vector<std::string> clients;
      for (const auto& [client, rows] : instance.rows_of) clients.push_back(client);
      for (const auto& [client, waiting] : waiting_) clients.push_back(client);
      if (next) clients.push_back(next->client);
      instance.turn->work_for(std::move(clients));
    }
  }
  try {
    if (!instance.batch) {
      try {
        instance.generator = setup_.acquire(instance.number, next->cancel);
      } catch (...) {
        finish(*next, {}, std::current_exception());
        return true;
      }
      instance.batch = std::make_unique<GenerationBatch>(*instance.generator, *setup_.manager);
    }
    if (next) begin(instance, std::move(*next));
    instance.batch->step(setup_.options(instance.number, stop));
  } catch (const std::exception& error) {
    logging::warn("model {}: {}", setup_.name, error.what());
    std::exception_ptr reason = std::current_exception();
    const bool may_repeat = !stop.stop_requested() && is_of_device(reason);
    {
      const std::lock_guard lock(mutex_);
      if (instance.stop_reason) reason = std::exchange(instance.stop_reason, nullptr);
      instance.stop = std::stop_source();
    }
    fail_running(instance, reason, may_repeat);
  }
  return true;
}

void GenerationQueue::work(Instance& instance) {
  const Clock::time_point until = Clock::now() + kTurn;
  const UseManager manager(*setup_.manager);
  const auto set_turn = [&](Turns::Task* turn) {
    const std::lock_guard lock(mutex_);
    instance.turn = turn;
  };
  set_turn(Turns::Task::of_this_thread());
  do {
    if (!step(instance)) return;
  } while (Clock::now() < until);
  set_turn(nullptr);
  if (setup_.start([self = shared_from_this(), &instance] { self->work(instance); })) return;
  // No room for another turn: the server is full or ends.
  const std::exception_ptr reason = full("the server is full or ends");
  fail_running(instance, reason, false);
  {
    const std::lock_guard lock(mutex_);
    instance.is_working = false;
  }
  fail_all(reason);
}

void GenerationQueue::fail_all(const std::exception_ptr& error) {
  std::vector<GenerationTask> failed;
  {
    const std::lock_guard lock(mutex_);
    failed = take_if([](const GenerationTask&) { return true; });
    for (const std::unique_ptr<Instance>& instance : instances_)
      if (instance->is_working) {
        instance->stop_reason = error;
        instance->stop.request_stop();
      }
  }
  for (GenerationTask& task : failed) finish(task, {}, error);
}

bool GenerationQueue::is_idle() const {
  const std::lock_guard lock(mutex_);
  return statistics_.waiting == 0 &&
         std::none_of(instances_.begin(), instances_.end(), [](const auto& each) { return each->is_working; });
}

GenerationStatistics GenerationQueue::statistics() const {
  const std::lock_guard lock(mutex_);
  return statistics_;
}

}  // namespace tenon::server

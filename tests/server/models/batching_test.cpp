// BatchQueue, BatchProfile and Batcher without a model: which requests run together, and in which order.
#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "eventually.h"
#include "server/http/problem.h"
#include "server/models/batching/batcher.h"

namespace tenon::server {
namespace {

using Clock = BatchItem::Clock;
using namespace std::chrono_literals;

BatchItem item(std::string client, std::int64_t length = 0, int priority = 0) {
  BatchItem out;
  out.key = "k";
  out.client = std::move(client);
  out.length = length;
  out.priority = priority;
  out.arrived = Clock::now();
  out.done = [](BatchOutcome) {};
  return out;
}

std::string clients(const Batch& batch) {
  std::string out;
  for (const BatchItem& each : batch.items) out += each.client;
  return out;
}

TEST(LengthClass, PadsByAtMostAnEighthFromSixtyFourOn) {
  EXPECT_EQ(length_class(1), 8);
  EXPECT_EQ(length_class(8), 8);
  EXPECT_EQ(length_class(9), 16);
  EXPECT_EQ(length_class(65), 80);
  EXPECT_EQ(length_class(257), 320);
  for (std::int64_t length = 64; length <= 512; ++length) {
    EXPECT_GE(length_class(length), length);
    EXPECT_LE(length_class(length) - length, length / 4);
    EXPECT_EQ(length_class(length_class(length)), length_class(length));
  }
}

TEST(BatchQueue, BatchesHaveOneKeyAndOneLengthClass) {
  BatchQueue queue;
  BatchProfile profile;
  for (const auto& [client, length] : {std::pair("a", 5), {"b", 30}, {"c", 7}, {"d", 31}}) queue.add(item(client, length));
  BatchItem other = item("e", 6);
  other.key = "another";
  queue.add(std::move(other));
  const Batch first = queue.take({.rows = 32}, profile, Clock::now());
  EXPECT_EQ(clients(first), "ac");
  EXPECT_EQ(first.length, 8);
  const Batch second = queue.take({.rows = 32}, profile, Clock::now());
  EXPECT_EQ(clients(second), "bd");
  EXPECT_EQ(second.length, 32);
  EXPECT_EQ(clients(queue.take({.rows = 32}, profile, Clock::now())), "e");
  EXPECT_TRUE(queue.empty());
}

TEST(BatchQueue, HigherPrioritiesGoFirstAndClientsTakeTurns) {
  BatchQueue queue;
  BatchProfile profile;
  for (const char* client : {"a", "a", "a", "b", "c"}) queue.add(item(client));
  queue.add(item("d", 0, 3));
  EXPECT_EQ(clients(queue.take({.rows = 4}, profile, Clock::now())), "dabc");
  EXPECT_EQ(clients(queue.take({.rows = 4}, profile, Clock::now())), "aa");
}

TEST(BatchQueue, NothingIsBatchedWithALimitOfOneRow) {
  BatchQueue queue;
  BatchProfile profile;
  for (const char* client : {"a", "b"}) queue.add(item(client));
  EXPECT_EQ(clients(queue.take({.rows = 1}, profile, Clock::now())), "a");
}

TEST(BatchQueue, ARequestOfManyRowsRunsAlthoughItExceedsTheLimit) {
  BatchQueue queue;
  BatchProfile profile;
  BatchItem large = item("a");
  large.rows = 100;
  queue.add(std::move(large));
  queue.add(item("b"));
  EXPECT_EQ(queue.take({.rows = 4}, profile, Clock::now()).rows, 100);
}

TEST(BatchQueue, DropsThoseWhoHaveGoneAndThoseWhoAreLate) {
  BatchQueue queue;
  std::stop_source gone;
  BatchItem first = item("a"), second = item("b"), third = item("c");
  first.cancel = gone.get_token();
  second.deadline = Clock::now() - 1ms;
  queue.add(std::move(first));
  queue.add(std::move(second));
  queue.add(std::move(third));
  gone.request_stop();
  EXPECT_EQ(queue.take_dead(Clock::now()).size(), 2u);
  EXPECT_EQ(queue.size(), 1u);
}

TEST(BatchProfile, TakesTheSizeWithTheHighestRateWithinTheObjective) {
  BatchProfile profile;
  const Clock::time_point now = Clock::now();
  // Affine until 8 rows, then no gain.
  for (const auto& [rows, seconds] : {std::pair(1, 0.010), {2, 0.012}, {4, 0.016}, {8, 0.024}, {16, 0.048}, {32, 0.096}})
    profile.add(rows, 16, seconds, now);
  EXPECT_EQ(profile.best_rows(32, 16, 1.0, now), 8);
  EXPECT_EQ(profile.best_rows(32, 16, 0.017, now), 4);
  EXPECT_EQ(profile.best_rows(3, 16, 1.0, now), 2);
  EXPECT_EQ(profile.best_rows(32, 16, 0.001, now), 1);
  EXPECT_EQ(profile.best_rows(32, 16, -1.0, now), 8) << "what is late already is not helped by small batches";
}

TEST(BatchProfile, TriesLargerBatchesWhileOnlySingleRowsHaveRun) {
  BatchProfile profile;
  const Clock::time_point now = Clock::now();
  profile.add(1, 0, 0.010, now);
  EXPECT_EQ(profile.best_rows(32, 0, 1.0, now), 2);
  EXPECT_EQ(profile.best_rows(32, 0, 0.015, now), 1) << "beyond the objective, as far as is known";
  profile.add(2, 0, 0.020, now);
  EXPECT_EQ(profile.best_rows(32, 0, 1.0, now), 1) << "two rows take twice the time";
}

TEST(BatchProfile, PredictsShapesThatHaveNotRun) {
  BatchProfile profile;
  const Clock::time_point now = Clock::now();
  EXPECT_FALSE(profile.predict(1, 16, now));
  profile.add(1, 16, 0.004, now);
  profile.add(4, 16, 0.010, now);
  EXPECT_NEAR(*profile.predict(2, 16, now), 0.006, 1e-9);
  EXPECT_NEAR(*profile.predict(1, 64, now), 0.010, 1e-9);
  EXPECT_NEAR(*profile.predict(4, 16, now + 1h), 0.010, 1e-9) << "forgotten, and predicted by the line";
}

// A pool whose tasks run when the test says so.
class Pool {
 public:
  bool submit(std::function<void()> task) {
    if (is_full) return false;
    tasks_.push_back(std::move(task));
    return true;
  }
  bool run_one() {
    if (tasks_.empty()) return false;
    const auto task = std::move(tasks_.front());
    tasks_.pop_front();
    task();
    return true;
  }
  bool is_full = false;

 private:
  std::deque<std::function<void()>> tasks_;
};

struct Fixture {
  Pool pool;
  std::vector<std::string> batches;
  std::exception_ptr failure;
  Batcher batcher;

  explicit Fixture(std::size_t instances = 1, std::size_t max_queue = 100)
      : batcher({.name = "m",
                 .instances = instances,
                 .max_queue = max_queue,
                 .limits = {.rows = 8},
                 .start = [this](std::function<void()> task) { return pool.submit(std::move(task)); },
                 .run =
                     [this](const Batch& batch, std::size_t, std::stop_token, std::string&) {
                       batches.push_back(clients(batch));
                       if (failure) std::rethrow_exception(failure);
                       return std::vector<BatchResult>(batch.items.size());
                     }}) {}

  void submit(std::string client, std::function<void(BatchOutcome)> done = [](BatchOutcome) {}) {
    std::vector<BatchItem> items;
    items.push_back(item(std::move(client)));
    items.back().done = std::move(done);
    batcher.submit(std::move(items));
  }
};

TEST(Batcher, RunsAtOnceWhileIdleAndCollectsWhileBusy) {
  Fixture fixture;
  fixture.submit("a");
  fixture.submit("b");  // before the task of the first has begun
  EXPECT_TRUE(fixture.pool.run_one());
  EXPECT_FALSE(fixture.pool.run_one());
  EXPECT_EQ(fixture.batches, std::vector<std::string>{"ab"});
  EXPECT_TRUE(fixture.batcher.is_idle());
  fixture.submit("c");
  fixture.pool.run_one();
  EXPECT_EQ(fixture.batches.back(), "c");
  const BatchStatistics statistics = fixture.batcher.statistics();
  EXPECT_EQ(statistics.inferences, 3u);
  EXPECT_EQ(statistics.executions, 2u);
  EXPECT_EQ(statistics.batches.at(2).count, 1u);
}

TEST(Batcher, AFailureOfTheRunReachesEveryRequest) {
  Fixture fixture;
  fixture.failure = std::make_exception_ptr(std::runtime_error("broken"));
  int failed = 0;
  for (const char* client : {"a", "b"}) fixture.submit(client, [&](BatchOutcome outcome) { failed += outcome.error != nullptr; });
  fixture.pool.run_one();
  EXPECT_EQ(failed, 2);
  EXPECT_EQ(fixture.batcher.statistics().fail.count, 2u);
  EXPECT_TRUE(fixture.batcher.is_idle());
}

TEST(Batcher, AnAnswerThatThrowsDoesNotStopTheOthers) {
  Fixture fixture;
  bool is_answered = false;
  fixture.submit("a", [](BatchOutcome) { throw std::runtime_error("cannot write"); });
  fixture.submit("b", [&](BatchOutcome) { is_answered = true; });
  fixture.pool.run_one();
  EXPECT_TRUE(is_answered);
}

TEST(Batcher, RefusesWhatDoesNotFitIntoTheQueue) {
  Fixture fixture(1, 8);
  for (int i = 0; i < 2; ++i) fixture.submit("a");
  try {
    fixture.submit("a");
    FAIL() << "one client filled the queue";
  } catch (const Problem& problem) {
    EXPECT_EQ(problem.status(), 429);
    EXPECT_NE(problem.hint(), "");
  }
  for (const char* client : {"b", "b", "c", "c", "d", "d"}) fixture.submit(client);
  try {
    fixture.submit("e");
    FAIL() << "the queue takes more than it has room for";
  } catch (const Problem& problem) {
    EXPECT_EQ(problem.status(), 503);
  }
  while (fixture.pool.run_one()) {
  }
  EXPECT_EQ(fixture.batcher.statistics().inferences, 8u) << "what was taken is answered";
}

TEST(Batcher, AFullPoolAnswersInsteadOfForgetting) {
  Fixture fixture;
  fixture.pool.is_full = true;
  bool is_refused = false;
  fixture.submit("a", [&](BatchOutcome outcome) { is_refused = outcome.error != nullptr; });
  EXPECT_TRUE(is_refused);
  fixture.pool.is_full = false;
  fixture.submit("b");
  EXPECT_TRUE(fixture.pool.run_one());
  EXPECT_EQ(fixture.batches, std::vector<std::string>{"b"});
}

TEST(Batcher, InstancesRunSideBySide) {
  Fixture fixture(2);
  fixture.submit("a");
  fixture.submit("b");
  EXPECT_TRUE(fixture.pool.run_one());
  EXPECT_TRUE(fixture.pool.run_one());
  EXPECT_TRUE(fixture.batcher.is_idle());
  EXPECT_EQ(fixture.batcher.statistics().inferences, 2u);
}

TEST(Batcher, ARunEndsWhenAllOfItsClientsHaveGone) {
  std::stop_source first, second;
  bool was_stopped_early = true, was_stopped = false;
  Pool pool;
  Batcher batcher({.name = "m",
                   .limits = {.rows = 8},
                   .start = [&](std::function<void()> task) { return pool.submit(std::move(task)); },
                   .run =
                       [&](const Batch& batch, std::size_t, std::stop_token cancel, std::string&) {
                         first.request_stop();
                         was_stopped_early = cancel.stop_requested();
                         second.request_stop();
                         was_stopped = cancel.stop_requested();
                         return std::vector<BatchResult>(batch.items.size());
                       }});
  std::vector<BatchItem> items;
  items.push_back(item("a"));
  items.back().cancel = first.get_token();
  items.push_back(item("b"));
  items.back().cancel = second.get_token();
  batcher.submit(std::move(items));
  pool.run_one();
  EXPECT_FALSE(was_stopped_early);
  EXPECT_TRUE(was_stopped);
}

}  // namespace
}  // namespace tenon::server

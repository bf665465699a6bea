// GenerationQueue over a small language model: whose request runs next, what ends it, and what a lost device costs.
#include "server/models/generation_queue.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "server/http/problem.h"
#include "source_folder.h"
#include "temporary_folder.h"
#include "tenon/device/simulated.h"
#include "tenon/tensor.h"

namespace tenon::server {
namespace {

using Clock = GenerationTask::Clock;
using namespace std::chrono_literals;

Config config_of(const std::vector<std::string>& simulated) {
  Config config;
  config.ledger = false;
  for (const std::string& each : simulated) config.simulated.push_back(parse_simulated(each));
  return config;
}

// A queue whose workers are this thread: nothing runs before run().
class Bench {
 public:
  explicit Bench(const std::vector<std::string>& devices = {"cpu"}, const std::vector<std::string>& simulated = {})
      : manager_((setenv("TENON_RUN_DIR", directory_.make_private("run").c_str(), 1), config_of(simulated))) {
    const UseManager use(manager_);
    for (const std::string& device : devices)
      generators_.push_back(std::make_shared<const Generator>(
          Generator::load(source_folder() / "tests/model/gguf/llama_q4_1.gguf", {.device = device})));
    setup_.name = "tiny";
    setup_.manager = &manager_;
    setup_.instances = devices.size();
    setup_.start = [this](std::function<void()> task) {
      started_.push_back(std::move(task));
      return true;
    };
    setup_.acquire = [this](std::size_t instance, const std::stop_token&) { return generators_[instance]; };
    setup_.options = [this](std::size_t instance, std::stop_token cancel) {
      ++used_[instance];
      RunOptions options;
      options.device = generators_[instance]->device();
      options.cancel = std::move(cancel);
      return options;
    };
  }

  GenerationQueue& queue() {
    if (!queue_) queue_ = std::make_shared<GenerationQueue>(setup_);
    return *queue_;
  }
  GenerationQueue::Setup& setup() { return setup_; }
  MemoryGate& gate() { return gate_; }
  const std::map<std::size_t, int>& used() const { return used_; }

  // Runs what was started, and what that starts, until nothing is left.
  void run() {
    while (!started_.empty()) {
      const std::function<void()> next = std::move(started_.front());
      started_.pop_front();
      next();
    }
  }

  struct Answer {
    bool is_done = false;
    Generation result;
    int status = 0;  // of its Problem
    std::exception_ptr error;
  };
  // The client's name is noted in |begun| with its first token.
  GenerationTask task(const std::string& client, std::int64_t tokens, Answer& answer) {
    GenerationTask out;
    out.request = {generators_[0]->tokens("hello"), {.max_tokens = tokens}};
    out.client = client;
    out.memory = gate_.take(client, 1 << 20);
    out.piece = [this, client, &answer](const std::string&) {
      if (!std::exchange(has_begun_[&answer], true)) begun += client;
    };
    out.done = [&answer](const Generation& result, const std::exception_ptr& error) {
      answer.is_done = true;
      answer.result = result;
      answer.error = error;
      try {
        if (error) std::rethrow_exception(error);
      } catch (const Problem& problem) {
        answer.status = problem.status();
      } catch (const std::exception&) {
        answer.status = -1;
      }
    };
    return out;
  }
  void submit(GenerationTask task) {
    std::vector<GenerationTask> tasks;
    tasks.push_back(std::move(task));
    queue().submit(std::move(tasks));
  }

  std::string begun;

 private:
  const test::TemporaryFolder directory_;
  DeviceManager manager_;
  std::vector<std::shared_ptr<const Generator>> generators_;
  MemoryGate gate_{std::uint64_t{1} << 30, std::uint64_t{1} << 30};
  GenerationQueue::Setup setup_;
  std::deque<std::function<void()>> started_;
  std::map<std::size_t, int> used_;
  std::map<const void*, bool> has_begun_;
  std::shared_ptr<GenerationQueue> queue_;
};

int status_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Problem& problem) {
    return problem.status();
  }
  return 0;
}

TEST(GenerationQueue, AClientHasAtMostAQuarterOfThePlaces) {
  Bench bench;
  bench.setup().max_queue = 8;
  std::vector<Bench::Answer> answers(16);
  bench.submit(bench.task("a", 1, answers[0]));
  bench.submit(bench.task("a", 1, answers[1]));
  EXPECT_EQ(status_of([&] { bench.submit(bench.task("a", 1, answers[2])); }), 429);
  for (const char* other : {"b", "c", "d"})
    for (int i = 0; i < 2; ++i) bench.submit(bench.task(other, 1, answers[3]));
  EXPECT_EQ(status_of([&] { bench.submit(bench.task("e", 1, answers[4])); }), 503);
  EXPECT_EQ(bench.queue().statistics().refused, 2u);
  EXPECT_EQ(bench.gate().used_by("e"), 0u);
  bench.run();
  EXPECT_TRUE(answers[0].is_done);
  EXPECT_FALSE(answers[4].is_done);
}

TEST(GenerationQueue, SeveralPromptsAreTakenTogetherOrNotAtAll) {
  Bench bench;
  bench.setup().max_queue = 8;
  std::vector<Bench::Answer> answers(3);
  std::vector<GenerationTask> tasks;
  for (Bench::Answer& answer : answers) tasks.push_back(bench.task("a", 1, answer));
  EXPECT_EQ(status_of([&] { bench.queue().submit(std::move(tasks)); }), 429);
  EXPECT_EQ(bench.queue().statistics().waiting, 0u);
}

TEST(GenerationQueue, AClientHasFourRowsWhileOthersWait) {
  Bench bench;
  std::vector<Bench::Answer> answers(40);
  std::size_t next = 0;
  for (int i = 0; i < 12; ++i) bench.submit(bench.task("a", 40, answers[next++]));
  for (int i = 0; i < 5; ++i) bench.submit(bench.task("b", 40, answers[next++]));
  bench.submit(bench.task("c", 40, answers[next++]));
  bench.run();
  // Four rows for each that waits, in turn; then more, because nobody with fewer rows waits.
  EXPECT_EQ(bench.begun.substr(0, 9), "abcababab");
  EXPECT_EQ(bench.begun.size(), next);
}

TEST(GenerationQueue, ARowIsKeptForAClientThatHasNone) {
  Bench bench;
  std::vector<Bench::Answer> answers(40);
  for (std::size_t i = 0; i < 30; ++i) {
    GenerationTask task = bench.task("a", 60, answers[i]);
    if (i == 15)
      // All sixteen rows have begun: now another client comes.
      task.piece = [&, piece = task.piece, has_come = std::make_shared<bool>(false)](const std::string& text) {
        piece(text);
        if (!std::exchange(*has_come, true)) bench.submit(bench.task("b", 5, answers[39]));
      };
    bench.submit(std::move(task));
  }
  bench.run();
  EXPECT_EQ(bench.begun.find('b'), 16u) << bench.begun;
}

TEST(GenerationQueue, HigherPrioritiesComeFirstButNotBeyondAClientsRows) {
  Bench bench;
  std::vector<Bench::Answer> answers(40);
  std::size_t next = 0;
  for (int i = 0; i < 3; ++i) bench.submit(bench.task("a", 40, answers[next++]));
  for (int i = 0; i < 6; ++i) {
    GenerationTask urgent = bench.task("u", 40, answers[next++]);
    urgent.priority = 5;
    bench.submit(std::move(urgent));
  }
  bench.run();
  EXPECT_EQ(bench.begun.substr(0, 9), "uuuuaaauu");
}

TEST(GenerationQueue, WhatNobodyWaitsForLeavesWithItsMemory) {
  Bench bench;
  std::vector<Bench::Answer> answers(4);
  std::stop_source gone;
  GenerationTask departed = bench.task("a", 10, answers[0]), late = bench.task("b", 10, answers[1]);
  departed.cancel = gone.get_token();
  late.starts_by = Clock::now();
  bench.submit(std::move(departed));
  bench.submit(std::move(late));
  bench.submit(bench.task("c", 10, answers[2]));
  gone.request_stop();
  bench.queue().drop_dead();
  EXPECT_EQ(answers[0].status, 499);
  EXPECT_EQ(answers[1].status, 504);
  EXPECT_EQ(bench.gate().used_by("a") + bench.gate().used_by("b"), 0u);
  EXPECT_FALSE(answers[2].is_done);
  EXPECT_EQ(bench.queue().statistics().departed, 1u);
  EXPECT_EQ(bench.queue().statistics().late, 1u);
  bench.run();
  EXPECT_EQ(answers[2].status, 0);
  EXPECT_EQ(bench.gate().used(), 0u);
}

TEST(GenerationQueue, ATextEndsAtItsDeadlineAndTheOthersGoOn) {
  Bench bench;
  std::vector<Bench::Answer> answers(2);
  GenerationTask slow = bench.task("a", 60, answers[0]);
  const Clock::time_point deadline = Clock::now() + 500ms;
  slow.deadline = deadline;
  slow.piece = [deadline, has_waited = std::make_shared<bool>(false)](const std::string&) {
    if (std::exchange(*has_waited, true)) ADD_FAILURE() << "a text after its deadline";
    std::this_thread::sleep_until(deadline);
  };
  bench.submit(std::move(slow));
  bench.submit(bench.task("b", 60, answers[1]));
  bench.run();
  EXPECT_EQ(answers[0].status, 504);
  EXPECT_EQ(answers[1].status, 0);
  EXPECT_EQ(answers[1].result.ids.size(), 60u);
  EXPECT_EQ(bench.gate().used(), 0u);
}

TEST(GenerationQueue, TheServersLimitEndsATextThatNamesNoDeadline) {
  Bench bench;
  bench.setup().max_run_time = 0ms;
  Bench::Answer answer;
  bench.submit(bench.task("a", 60, answer));
  bench.run();
  EXPECT_EQ(answer.status, 504);
}

TEST(GenerationQueue, AClientThatLeavesEndsItsTextEvenIfNoTextIsCertain) {
  Bench bench;
  std::vector<Bench::Answer> answers(2);
  std::stop_source gone;
  GenerationTask task = bench.task("a", 60, answers[0]);
  task.cancel = gone.get_token();
  task.piece = [&](const std::string&) { gone.request_stop(); };
  bench.submit(std::move(task));
  bench.run();
  EXPECT_EQ(answers[0].status, 499);
  EXPECT_LT(answers[0].result.ids.size(), 10u);
}

TEST(GenerationQueue, InstancesShareTheRequests) {
  Bench bench({"sim:0", "sim:1"}, {"wormhole,open=0,close=0", "wormhole,open=0,close=0"});
  std::vector<Bench::Answer> answers(2);
  for (Bench::Answer& answer : answers) bench.submit(bench.task("a", 400, answer));
  bench.run();
  for (const Bench::Answer& answer : answers) EXPECT_EQ(answer.status, 0);
  EXPECT_GT(bench.used().at(0), 0);
  EXPECT_GT(bench.used().at(1), 0);
  EXPECT_EQ(answers[0].result.text, answers[1].result.text);
}

TEST(GenerationQueue, ALostDeviceCostsOnlyTextsThatWereSentInPart) {
  Bench bench({"sim:0", "sim:1"}, {"wormhole,open=0,close=0,script=ok:run+ok:run+lost_mid_run:run", "wormhole,open=0,close=0"});
  std::vector<Bench::Answer> answers(3);
  GenerationTask silent = bench.task("a", 20, answers[0]);
  silent.piece = nullptr;
  bench.submit(std::move(silent));
  bench.run();
  EXPECT_EQ(answers[0].status, 0);
  EXPECT_EQ(bench.queue().statistics().repeated, 1u);
  Bench::Answer expected;
  Bench other;
  other.submit(other.task("a", 20, expected));
  other.run();
  EXPECT_EQ(answers[0].result.text, expected.result.text);
}

}  // namespace
}  // namespace tenon::server

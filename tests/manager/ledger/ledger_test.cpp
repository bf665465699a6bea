#include "manager/ledger/ledger.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "base/log.h"
#include "eventually.h"
#include "manager/ledger/testing.h"
#include "tenon/error.h"

namespace tenon {
namespace {

using namespace std::chrono_literals;
using test::eventually;

using testing::event_of;
using testing::EventKind;
using testing::LedgerFolder;
using testing::run_of;

class LedgerTest : public ::testing::Test {
 protected:
  void SetUp() override { TENON_NEEDS_LEDGER(); }

  Ledger::Options options(std::chrono::milliseconds every = std::chrono::hours(1)) const {
    return {.file = folder.file(),
            .program = "test",
            .describe =
                [this](const std::string& id) {
                  ++asked;
                  DeviceInfo info{.id = id, .kind = DeviceKind::gpu};
                  info.cost_per_hour = 3.5;
                  info.cost_is_estimate = true;
                  return info;
                },
            .every = every};
  }

  LedgerFolder folder;
  mutable std::atomic<int> asked = 0;
};

TEST_F(LedgerTest, ALeaseIsWrittenWithKindAndPrice) {
  {
    Ledger ledger(options());
    ledger.record(event_of(EventKind::opened, 1, 1));
    ledger.record(run_of("train", 2, 1, 0.5));
    ledger.record(event_of(EventKind::released, 2, 1));
    ledger.record(event_of(EventKind::closed, 3));
    EXPECT_TRUE(ledger.flush());
  }
  const std::vector<Use> uses = LedgerStore::open_existing(folder.file()).latest(10);
  ASSERT_EQ(uses.size(), 1U);
  EXPECT_EQ(uses[0].kind, "gpu");
  EXPECT_EQ(uses[0].price_per_hour, 3.5);
  EXPECT_TRUE(uses[0].price_is_estimate);
  EXPECT_DOUBLE_EQ(uses[0].open_seconds, 3);
  EXPECT_EQ(asked, 1);
}

TEST_F(LedgerTest, WhatIsLeftIsWrittenAtTheEnd) {
  {
    Ledger ledger(options());
    ledger.record(run_of("train", 2, 1, 0.5));
  }
  EXPECT_EQ(LedgerStore::open_existing(folder.file()).sums({}).total.runs, 1U);
}

TEST_F(LedgerTest, AShortRunOnTheProcessorMakesNoFile) {
  {
    Ledger ledger(options());
    ledger.record(event_of(EventKind::opened, 0, 0, "cpu:0", 0));
    ledger.record(run_of("", 1, 0.251, 0.001, "cpu:0", 0));
  }
  EXPECT_FALSE(std::filesystem::exists(folder.file()));
  EXPECT_EQ(asked, 0);
}

TEST_F(LedgerTest, AnUnnamedRunIsBookedUnderTheProcessesName) {
  Ledger::Options own = options();
  own.program = "";
  Ledger ledger(own);
  ledger.record(run_of("", 2, 1, 0.5));
  ASSERT_TRUE(ledger.flush());
  EXPECT_EQ(LedgerStore::open_existing(folder.file()).latest(1).at(0).program, program_of_this_process());
}

TEST_F(LedgerTest, ItWritesByItselfAfterAWhile) {
  Ledger ledger(options(std::chrono::milliseconds(1)));
  ledger.record(run_of("train", 2, 1, 0.5));
  ASSERT_TRUE(eventually(60s, [&] { return std::filesystem::exists(folder.file()); }));
  std::uint64_t runs = 0;
  ASSERT_TRUE(eventually(60s, [&] { return (runs = LedgerStore::open_existing(folder.file()).sums({}).total.runs) > 0; }));
  EXPECT_EQ(runs, 1U);
}

TEST_F(LedgerTest, ManyThreadsRecordAndNothingIsLost) {
  constexpr int kThreads = 4, kRuns = 500;
  {
    Ledger ledger(options(std::chrono::milliseconds(1)));
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0; i < kRuns; ++i) ledger.record(run_of("thread " + std::to_string(t), i, 0.5, 0.25));
      });
    for (std::thread& thread : threads) thread.join();
  }
  const UseReport report = LedgerStore::open_existing(folder.file()).sums({.by = UseKey::program});
  ASSERT_EQ(report.groups.size(), 4U);
  for (const UseSum& sum : report.groups) EXPECT_EQ(sum.runs, 500U);
}

TEST_F(LedgerTest, AFailureIsLoggedOnceAndWrittenLaterWhenItIsOver) {
  const std::filesystem::path blocked = folder.path() / "state";
  std::ofstream(blocked) << "a file where the folder should be";
  const logging::Capture lines;
  Ledger ledger(options());
  ledger.record(run_of("train", 2, 1, 0.5));
  EXPECT_FALSE(ledger.flush());
  ledger.record(run_of("train", 3, 1, 0.5));
  EXPECT_FALSE(ledger.flush());
  EXPECT_EQ(lines.lines().size(), 1U);
  EXPECT_TRUE(lines.has("not recorded"));
  std::filesystem::remove(blocked);
  EXPECT_TRUE(ledger.flush());
  EXPECT_EQ(LedgerStore::open_existing(folder.file()).sums({}).total.runs, 2U);
}

TEST_F(LedgerTest, AGivenPriceCountsMoreThanAnEstimateAndASimulatedDeviceHasNone) {
  Ledger::Options own = options();
  own.describe = [](const std::string& id) {
    DeviceInfo device{.id = id, .kind = DeviceKind::gpu, .name = "NVIDIA H200"};
    if (id == "sim:0") device.details["simulated"] = "true";
    return device;
  };
  own.prices = {{"cuda:1", 1.25}};
  Ledger ledger(own);
  for (const char* device : {"cuda:0", "cuda:1", "sim:0"}) ledger.record(run_of("train", 2, 1, 0.5, device));
  ASSERT_TRUE(ledger.flush());
  for (const Use& use : LedgerStore::open_existing(folder.file()).latest(3)) {
    if (use.device == "cuda:0") EXPECT_EQ(use.price_per_hour, 3.5);
    if (use.device == "cuda:1") EXPECT_EQ(use.price_per_hour, 1.25);
    if (use.device == "sim:0") EXPECT_EQ(use.price_per_hour, std::nullopt);
    EXPECT_EQ(use.price_is_estimate, use.device == "cuda:0");
  }
}

TEST_F(LedgerTest, AThrowingDescriptionLeavesThePriceUnknown) {
  Ledger::Options own = options();
  own.describe = [](const std::string&) -> DeviceInfo { throw Error(ErrorCode::not_found, "gone"); };
  const logging::Capture lines;
  Ledger ledger(own);
  ledger.record(run_of("train", 2, 1, 0.5));
  EXPECT_TRUE(ledger.flush());
  EXPECT_EQ(LedgerStore::open_existing(folder.file()).latest(1).at(0).price_per_hour, std::nullopt);
}

TEST_F(LedgerTest, AForkedChildRecordsNothingAndEnds) {
  auto ledger = std::make_unique<Ledger>(options());
  ledger->record(run_of("parent", 2, 1, 0.5));
  ASSERT_TRUE(ledger->flush());
  const pid_t child = fork();
  if (child == 0) {
    ledger->record(run_of("child", 2, 1, 0.5));
    const bool flushed = ledger->flush();
    ledger.reset();
    _exit(flushed ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  ledger.reset();
  EXPECT_EQ(LedgerStore::open_existing(folder.file()).sums({.by = UseKey::program}).groups.size(), 1U);
}

TEST_F(LedgerTest, ALedgerThatIsNeverDestroyedIsWrittenWhenTheProcessExits) {
  const pid_t child = fork();
  if (child == 0) {
    static auto* const ledger = new Ledger(options());  // reachable to the end: no leak
    ledger->record(event_of(EventKind::opened, 0));
    ledger->record(run_of("train", 2, 1, 0.5));
    std::exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(LedgerStore::open_existing(folder.file()).sums({}).total.runs, 1U);
}

TEST(ProgramName, IsTheProgramOrTheScript) {
  const auto name = [](std::vector<std::string> words) { return program_of(words); };
  EXPECT_EQ(name({"/usr/bin/tenon", "run", "1+1"}), "tenon");
  EXPECT_EQ(name({"python3.11", "-u", "/home/ada/train.py", "--token", "secret"}), "train.py");
  EXPECT_EQ(name({"python3", "-m", "torch.distributed.run", "x.py"}), "torch.distributed.run");
  EXPECT_EQ(name({"bash", "-c", "PASSWORD=secret ./go"}), "bash");
  EXPECT_EQ(name({"node"}), "node");
  EXPECT_EQ(name({}), "unknown");
}

TEST(ProgramName, OfThisProcessIsTheTest) { EXPECT_EQ(program_of_this_process(), "test_manager"); }

}  // namespace
}  // namespace tenon

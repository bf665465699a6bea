#include "manager/ledger/accounts.h"

#include <gtest/gtest.h>

#include "manager/ledger/testing.h"

namespace tenon {
namespace {

using testing::at;
using testing::event_of;
using testing::EventKind;
using testing::run_of;

const Use* find(const std::vector<Use>& uses, const std::string& program, const std::string& result = "ok") {
  for (const Use& use : uses)
    if (use.program == program && use.result == result) return &use;
  return nullptr;
}

double sum_of_open(const std::vector<Use>& uses) {
  double seconds = 0;
  for (const Use& use : uses) seconds += use.open_seconds;
  return seconds;
}

TEST(LedgerAccounts, ALeaseIsOneRowWithItsTimes) {
  LedgerAccounts accounts("shell");
  accounts.add(event_of(EventKind::opened, 2, 2));  // opening began at 0
  accounts.add(event_of(EventKind::granted, 2));
  accounts.add(run_of("train", 5, 3, 1.5));
  accounts.add(event_of(EventKind::released, 6, 4));
  accounts.add(event_of(EventKind::closed, 8, 1));
  const std::vector<Use> uses = accounts.take();
  ASSERT_EQ(uses.size(), 1U);
  const Use& use = uses[0];
  EXPECT_EQ(use.program, "train");
  EXPECT_EQ(use.device, "cuda:0");
  EXPECT_EQ(use.result, "ok");
  EXPECT_EQ(use.epoch, 7U);
  EXPECT_EQ(use.begin, at(0));
  EXPECT_EQ(use.runs, 1U);
  EXPECT_EQ(use.leases, 1U);
  EXPECT_EQ(use.opens, 1U);
  EXPECT_DOUBLE_EQ(use.open_seconds, 8);
  EXPECT_DOUBLE_EQ(use.held_seconds, 4);
  EXPECT_DOUBLE_EQ(use.compute_seconds, 1.5);
  EXPECT_DOUBLE_EQ(use.queued_seconds, 0.25);
  EXPECT_EQ(use.bytes, 100U);
}

TEST(LedgerAccounts, TimeBetweenRunsBelongsToTheProgramBefore) {
  LedgerAccounts accounts("server");
  accounts.add(event_of(EventKind::opened, 1, 1));
  accounts.add(run_of("ada", 3, 1, 1));     // 0 to 3: opening and the wait before the first run
  accounts.add(run_of("grace", 10, 2, 2));  // 3 to 8 idle after ada
  accounts.add(event_of(EventKind::closed, 15, 0));
  const std::vector<Use> uses = accounts.take();
  EXPECT_DOUBLE_EQ(find(uses, "ada")->open_seconds, 8);
  EXPECT_DOUBLE_EQ(find(uses, "grace")->open_seconds, 7);
  EXPECT_EQ(find(uses, "ada")->opens + find(uses, "grace")->opens, 1U);
  EXPECT_EQ(find(uses, "server"), nullptr);
}

TEST(LedgerAccounts, OverlappingRunsBookTheTimeOnce) {
  LedgerAccounts accounts("server");
  accounts.add(event_of(EventKind::opened, 0, 0));
  accounts.add(run_of("a", 4, 4, 1));
  accounts.add(run_of("b", 5, 5, 1));
  accounts.add(run_of("a", 5, 3, 1));
  accounts.add(event_of(EventKind::closed, 5, 0));
  EXPECT_DOUBLE_EQ(sum_of_open(accounts.take()), 5);
}

TEST(LedgerAccounts, AClockSetBackBooksNothingNegative) {
  LedgerAccounts accounts("server");
  accounts.add(event_of(EventKind::opened, 1000, 0));
  accounts.add(run_of("a", 1010, 1, 1));
  accounts.add(run_of("a", 500, 1, 1));
  accounts.add(event_of(EventKind::closed, 505, 0));
  EXPECT_DOUBLE_EQ(sum_of_open(accounts.take()), 10);
}

TEST(LedgerAccounts, AnOpenDeviceIsBookedInPartsThatSumUp) {
  LedgerAccounts accounts("server");
  accounts.add(event_of(EventKind::opened, 0, 0));
  accounts.add(run_of("a", 2, 1, 1));
  EXPECT_TRUE(accounts.has_open_device());
  accounts.book_open_time(at(60));
  const std::vector<Use> first = accounts.take();
  EXPECT_FALSE(accounts.is_worth_writing());
  EXPECT_TRUE(accounts.has_open_device());
  accounts.book_open_time(at(100));
  accounts.add(event_of(EventKind::closed, 130, 0));
  const std::vector<Use> second = accounts.take();
  EXPECT_DOUBLE_EQ(sum_of_open(first), 60);
  EXPECT_DOUBLE_EQ(sum_of_open(second), 70);
  EXPECT_EQ(find(first, "a")->opens, 1U);
  EXPECT_EQ(find(second, "a")->opens, 0U);
  EXPECT_FALSE(accounts.has_open_device());
}

TEST(LedgerAccounts, FailuresHaveRowsOfTheirOwn) {
  LedgerAccounts accounts("shell");
  accounts.add(event_of(EventKind::open_failed, 1, 1));
  accounts.add(event_of(EventKind::open_failed, 2, 1));
  accounts.add(event_of(EventKind::opened, 3, 1));
  DeviceEvent failing = run_of("train", 4, 1, 0);
  failing.message = "out of memory";
  accounts.add(failing);
  accounts.add(event_of(EventKind::lost, 5));
  const std::vector<Use> uses = accounts.take();
  EXPECT_EQ(find(uses, "shell", "open_failed")->failures, 2U);
  EXPECT_EQ(find(uses, "train", "run_failed")->failures, 1U);
  EXPECT_EQ(find(uses, "train", "run_failed")->runs, 1U);
  EXPECT_EQ(find(uses, "train", "lost")->failures, 1U);
  EXPECT_DOUBLE_EQ(sum_of_open(uses), 3);  // opening began at 2, lost at 5
  EXPECT_FALSE(accounts.has_open_device());
}

TEST(LedgerAccounts, ShortRunsOnTheProcessorAreWorthAWriteOnlyTogether) {
  LedgerAccounts accounts("shell");
  for (int i = 0; i < 99; ++i) accounts.add(run_of("a", i, 0.25 + 0.001, 0.001, "cpu:0", 0));
  EXPECT_FALSE(accounts.is_worth_writing());
  for (int i = 0; i < 2; ++i) accounts.add(run_of("a", i, 0.25 + 0.001, 0.001, "cpu:0", 0));
  EXPECT_TRUE(accounts.is_worth_writing());
  const std::vector<Use> uses = accounts.take();
  ASSERT_EQ(uses.size(), 1U);
  EXPECT_EQ(uses[0].runs, 101U);
  EXPECT_NEAR(uses[0].open_seconds, 0.101, 1e-9);  // without the time in the queue
  EXPECT_FALSE(accounts.is_worth_writing());
}

TEST(LedgerAccounts, OpeningTheProcessorIsNoUse) {
  LedgerAccounts accounts("shell");
  for (const EventKind kind : {EventKind::opened, EventKind::granted, EventKind::released, EventKind::closed})
    accounts.add(event_of(kind, 1, 1, "cpu:0"));
  EXPECT_FALSE(accounts.has_open_device());
  EXPECT_TRUE(accounts.take().empty());
}

TEST(LedgerAccounts, TheNumberOfRowsIsBoundedAndTheSumsStayRight) {
  LedgerAccounts accounts("shell");
  constexpr std::uint64_t kLeases = 3 * LedgerAccounts::kMostRows;
  for (std::uint64_t epoch = 1; epoch <= kLeases; ++epoch)
    accounts.add(run_of("program " + std::to_string(epoch), 1, 1, 0.5, "cuda:0", epoch));
  const std::vector<Use> uses = accounts.take();
  EXPECT_LE(uses.size(), 2 * LedgerAccounts::kMostRows + 1);
  std::uint64_t runs = 0;
  for (const Use& use : uses) runs += use.runs;
  EXPECT_EQ(runs, kLeases);
}

TEST(LedgerAccounts, LongNamesAndLineFeedsBecomeOneShortLine) {
  LedgerAccounts accounts("shell");
  accounts.add(run_of("x = 1\ny = 2", 1, 1, 1));
  accounts.add(run_of(std::string(79, 'a') + "\u00e9\u00e9", 1, 1, 1));
  const std::vector<Use> uses = accounts.take();
  EXPECT_NE(find(uses, "x = 1 y = 2"), nullptr);
  EXPECT_NE(find(uses, std::string(79, 'a')), nullptr) << "a character of two bytes is not cut in two";
}

TEST(LedgerAccounts, WhatCouldNotBeWrittenIsAddedToWhatComes) {
  LedgerAccounts accounts("shell");
  accounts.add(run_of("a", 1, 1, 0.5));
  std::vector<Use> uses = accounts.take();
  accounts.add(run_of("a", 2, 1, 0.25));
  accounts.give_back(std::move(uses));
  const std::vector<Use> all = accounts.take();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].runs, 2U);
  EXPECT_DOUBLE_EQ(all[0].compute_seconds, 0.75);
  EXPECT_EQ(all[0].begin, at(0));
}

}  // namespace
}  // namespace tenon

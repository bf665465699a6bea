#include "lease/policy/replay.h"

#include <gtest/gtest.h>

#include "lease/policy/arrival_trace.h"
#include "tenon/error.h"

namespace tenon {
namespace {

std::string refusal(std::string_view csv) {
  try {
    parse_arrivals(csv);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
  return "accepted";
}

TEST(ArrivalTrace, ReadsTimestampsOfSevenDigitsWithoutLosingAny) {
  const auto arrivals =
      parse_arrivals("TIMESTAMP,Tokens\r\n2023-11-16 23:59:59.9799600,4808\r\n2023-11-17 00:00:00.0319601,3180");
  ASSERT_EQ(arrivals.size(), 2u);
  EXPECT_EQ(arrivals[0].seconds, 0);
  EXPECT_DOUBLE_EQ(arrivals[1].seconds, 0.0520001);
  EXPECT_EQ(arrivals[1].service_seconds, 0.02);
}

TEST(ArrivalTrace, ReadsSecondsServiceTimesQuotesAndOffsets) {
  const auto plain = parse_arrivals("\xef\xbb\xbfid,service_seconds,arrival_seconds\n\"a,b\",1.5,10\nc,0,12.25\n\n");
  ASSERT_EQ(plain.size(), 2u);
  EXPECT_DOUBLE_EQ(plain[1].seconds, 2.25);
  EXPECT_EQ(plain[0].service_seconds, 1.5);
  const auto zones = parse_arrivals("TIMESTAMP\n2024-05-10T00:00:00Z\n2024-05-10 02:00:01.5+02:00\n");
  EXPECT_DOUBLE_EQ(zones[1].seconds, 1.5);
}

TEST(ArrivalTrace, PutsRowsInOrder) {
  const auto arrivals = parse_arrivals("arrival_seconds\n5\n3\n4\n");
  EXPECT_EQ(arrivals[0].seconds, 0);
  EXPECT_EQ(arrivals[2].seconds, 2);
}

TEST(ArrivalTrace, RefusesBadRowsByTheirLine) {
  EXPECT_NE(refusal("").find("line 1"), std::string::npos);
  EXPECT_NE(refusal("time\n1\n").find("line 1: no column"), std::string::npos);
  EXPECT_NE(refusal("arrival_seconds\n").find("no rows"), std::string::npos);
  for (const char* row : {"x", "", "nan", "inf", "1e300", "1,2", "\"1", "1 2"}) {
    const std::string csv = std::string("arrival_seconds\n1\n") + row + "\n3\n";
    EXPECT_NE(refusal(csv).find("line 3: "), std::string::npos) << row << ": " << refusal(csv);
  }
  for (const char* time : {"2023-13-01 00:00:00", "2023-02-30 00:00:00", "2023-01-01 24:00:00", "2023-01-01",
                           "2023-01-01 00:00:00.", "2023-01-01 00:00:00 x", "2023-01-01 00:00:00+2"})
    EXPECT_NE(refusal(std::string("TIMESTAMP\n") + time).find("line 2: "), std::string::npos) << time;
  EXPECT_NE(refusal("arrival_seconds,service_seconds\n1,-1").find("line 2: '-1' is not a service time"), std::string::npos);
}

TEST(ArrivalTrace, NamesTheFileThatCannotBeRead) {
  try {
    load_arrivals("no/such.csv");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_found);
    EXPECT_NE(std::string(error.what()).find("no/such.csv"), std::string::npos);
  }
}

// Work at 0-1, 3-4 and 14-15: gaps of 2 and 10 seconds.
const std::vector<BusyPeriod> kPeriods{{0, 1}, {3, 4}, {14, 15}};

TEST(PolicyReplay, OverlappingWorkIsOneBusyPeriod) {
  const std::vector<Arrival> arrivals{{0, 2}, {1, 0.5}, {1.5, 1}, {2.5, 1}, {10, 1}};
  const auto periods = busy_periods(arrivals);
  ASSERT_EQ(periods.size(), 2u);
  EXPECT_EQ(periods[0].end, 3.5);
  EXPECT_EQ(periods[1].begin, 10);
}

TEST(PolicyReplay, CountsHoldingAndOpeningAgain) {
  const ReplayResult best = replay_optimum(kPeriods, 4);
  EXPECT_EQ(best.cost_seconds, 2 + 4);
  EXPECT_EQ(best.cost_ratio, 1);
  EXPECT_EQ(best.cold_fraction, 0.5);
  EXPECT_EQ(best.opens, 2u);
  const ReplayResult at_once = replay(kPeriods, KeepOpen::on_demand(4));
  EXPECT_EQ(at_once.cost_seconds, 8);
  EXPECT_EQ(at_once.held_seconds, 0);
  EXPECT_EQ(at_once.opens, 3u);
  EXPECT_EQ(at_once.cold_fraction, 1);
  const ReplayResult never = replay(kPeriods, KeepOpen::always(4));
  EXPECT_EQ(never.cost_ratio, 12.0 / 6);
  EXPECT_EQ(never.opens, 1u);
  EXPECT_EQ(never.held_seconds, 12);
  const ReplayResult fixed = replay(kPeriods, KeepOpen::linger(4, 5));
  EXPECT_EQ(fixed.cost_seconds, 2 + 5 + 4);
  EXPECT_EQ(fixed.held_seconds, 7);
}

TEST(PolicyReplay, AWaiterWaitsForTheWorkAndWithoutYieldForThePolicy) {
  const ReplayResult never = replay(kPeriods, KeepOpen::always(4));
  // Three seconds of 15 are busy: half of all who come wait for nothing, one in a hundred for 0.95 s or more.
  EXPECT_EQ(never.waiter.p50_seconds, 0);
  EXPECT_NEAR(never.waiter.p99_seconds, 1 - 0.15 / 3, 1e-9);
  EXPECT_NEAR(never.patient_waiter.p50_seconds, 7.5, 1e-9);
  EXPECT_NEAR(never.patient_waiter.p99_seconds, 14.85, 1e-9);
}

TEST(PolicyReplay, OnePeriodCostsNothing) {
  const std::vector<BusyPeriod> one{{0, 1}};
  const ReplayResult result = replay(one, KeepOpen::adaptive(1));
  EXPECT_EQ(result.cost_ratio, 1);
  EXPECT_EQ(result.opens, 1u);
  EXPECT_EQ(replay({}, KeepOpen::adaptive(1)).opens, 0u);
}

TEST(PolicyReplay, OverManyBreakEvensAdaptiveBeatsEveryFixedRule) {
  const auto periods = busy_periods(load_arrivals(TENON_FIXTURES "/arrivals.csv"));
  ASSERT_GT(periods.size(), 50u);
  double adaptive = 0, at_once = 0, fixed_5 = 0, fixed_300 = 0, never = 0, break_even = 0;
  for (const double b : {0.2, 2.0, 10.0, 30.0, 120.0}) {
    adaptive += replay(periods, KeepOpen::adaptive(b)).cost_ratio;
    at_once += replay(periods, KeepOpen::on_demand(b)).cost_ratio;
    fixed_5 += replay(periods, KeepOpen::linger(b, 5)).cost_ratio;
    fixed_300 += replay(periods, KeepOpen::linger(b, 300)).cost_ratio;
    never += replay(periods, KeepOpen::always(b)).cost_ratio;
    break_even += replay(periods, KeepOpen::linger(b)).cost_ratio;
  }
  for (const double other : {at_once, fixed_5, fixed_300, never, break_even}) EXPECT_LT(adaptive, other);
}

}  // namespace
}  // namespace tenon

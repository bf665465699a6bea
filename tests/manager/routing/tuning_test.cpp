// Tuning: the knee of a curve, and the limits that end the search.
#include "manager/routing/tuning.h"

#include <gtest/gtest.h>

#include "tenon/error.h"

namespace tenon {
namespace {

// A device that takes |start| seconds for any batch and |row| for each row.
TuneSubject device(double start, double row, std::uint64_t bytes_per_row = 1) {
  return {.measure = [=](std::int64_t batch) { return start + row * static_cast<double>(batch); },
          .bytes_of = [=](std::int64_t batch) { return bytes_per_row * static_cast<std::uint64_t>(batch); }};
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Tuning, TheKneeIsTheSmallestBatchWithNearlyTheBestThroughput) {
  // Throughput b / (64 + b): a batch of 1024 has 94 % of the limit, one of 512 has 89 %.
  const TuneResult found = find_batch_size(device(64e-6, 1e-6), {.max_batch = 1 << 16});
  EXPECT_EQ(found.knee().batch, 1024);
  EXPECT_GE(found.knee().rows_per_second(), 0.9 * found.fastest().rows_per_second());
}

TEST(Tuning, WithoutAStartingCostTheKneeIsOneRow) {
  const TuneResult found = find_batch_size(device(0, 1e-3), {});
  EXPECT_EQ(found.knee().batch, 1);
  EXPECT_EQ(found.stopped, "larger batches do not improve throughput");
  EXPECT_LE(found.points.size(), 5u);
}

TEST(Tuning, BatchesDouble) {
  const TuneResult found = find_batch_size(device(1, 1e-9), {.max_batch = 64});
  std::vector<std::int64_t> batches;
  for (const TunePoint& point : found.points) batches.push_back(point.batch);
  EXPECT_EQ(batches, (std::vector<std::int64_t>{1, 2, 4, 8, 16, 32, 64}));
  EXPECT_EQ(found.stopped, "64 is the largest requested batch");
}

TEST(Tuning, TheMemoryBudgetIsNeverExceeded) {
  std::int64_t largest = 0;
  TuneSubject subject = device(1, 1e-9, 1024);
  subject.on_begin = [&](std::int64_t batch) { largest = batch; };
  const TuneResult found = find_batch_size(subject, {.memory_bytes = 100 * 1024});
  EXPECT_EQ(largest, 64);
  EXPECT_EQ(found.points.back().bytes, 64u * 1024);
  EXPECT_TRUE(contains(found.stopped, "a batch of 128 needs 128 KiB, more than the limit of 100 KiB")) << found.stopped;
}

TEST(Tuning, TheLatencyLimitLeavesOutWhatIsSlower) {
  const TuneResult found = find_batch_size(device(0.001, 0.001), {.latency_seconds = 0.01});
  EXPECT_EQ(found.points.back().batch, 8);
  EXPECT_LE(found.knee().seconds, 0.01);
  EXPECT_TRUE(contains(found.stopped, "longer than the limit of 10.0 ms")) << found.stopped;
}

TEST(Tuning, ADeviceOutOfMemoryEndsTheSearchWithItsWords) {
  TuneSubject subject = device(1, 1e-9);
  subject.measure = [](std::int64_t batch) {
    if (batch > 16) throw Error(ErrorCode::resource_exhausted, "the budget of cuda:0 is used up");
    return 1.0;
  };
  const TuneResult found = find_batch_size(subject, {});
  EXPECT_EQ(found.points.back().batch, 16);
  EXPECT_EQ(found.stopped, "the budget of cuda:0 is used up");
}

TEST(Tuning, OtherErrorsAreErrors) {
  TuneSubject subject = device(1, 1e-9);
  subject.measure = [](std::int64_t batch) -> double {
    if (batch == 4) throw Error(ErrorCode::unavailable, "lost");
    return 1.0;
  };
  EXPECT_THROW(find_batch_size(subject, {}), Error);
  subject.measure = [](std::int64_t) -> double { throw Error(ErrorCode::resource_exhausted, "none left"); };
  EXPECT_THROW(find_batch_size(subject, {}), Error);
}

TEST(Tuning, NoBatchWithinTheLimitsIsAnErrorThatSaysWhy) {
  try {
    find_batch_size(device(1, 0, 1000), {.memory_bytes = 10});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::resource_exhausted);
    EXPECT_TRUE(contains(error.what(), "a batch of 1 needs 1000 B")) << error.what();
  }
}

TEST(Tuning, StopsWhenTimeIsUpButMeasuresOneAnyhow) {
  const TuneResult found = find_batch_size(device(1, 1e-9), {.is_over = [] { return true; }});
  EXPECT_EQ(found.points.size(), 1u);
  EXPECT_EQ(found.stopped, "the measuring time is used up");
}

}  // namespace
}  // namespace tenon

// The command's pure parts: units, comparison, measuring.
#include <gtest/gtest.h>

#include <cmath>

#include "base/text/units.h"
#include "cli/measure.h"
#include "reference/comparison.h"

namespace tenon::cli {
namespace {

TEST(Units, ThreeDigitsAndAUnit) {
  EXPECT_EQ(format_seconds(0), "0 ns");
  EXPECT_EQ(format_seconds(812e-9), "812 ns");
  EXPECT_EQ(format_seconds(1.234e-6), "1.23 us");
  EXPECT_EQ(format_seconds(0.0123), "12.3 ms");
  EXPECT_EQ(format_seconds(0.9996), "1.00 s");
  EXPECT_EQ(format_seconds(90), "90.0 s");
  EXPECT_EQ(format_bytes(512), "512 B");
  EXPECT_EQ(format_bytes(1.5 * 1024 * 1024), "1.50 MiB");
  EXPECT_EQ(format_rate(2.5e9, "B/s"), "2.50 GB/s");
  EXPECT_EQ(format_rate(999.6, "FLOP/s"), "1.00 kFLOP/s");
}

Comparison compare_floats(std::vector<float> result, std::vector<double> reference) {
  return compare(HostArray::from<float>({static_cast<std::int64_t>(result.size())}, std::span<const float>(result)), reference);
}

TEST(Comparison, CountsUnitsInTheLastPlace) {
  const Comparison c = compare_floats({1 + 0x1p-22F, 2}, {1, 2});
  EXPECT_EQ(c.max_ulp, 2);
  EXPECT_EQ(c.max_abs, 0x1p-22);
  EXPECT_EQ(c.max_rel, 0x1p-22);
  EXPECT_EQ(c.worst, 0);
  EXPECT_EQ(c.mismatches, 0);
}

TEST(Comparison, SeesADifference) {
  EXPECT_EQ(compare_floats({1.001F, 2}, {1, 2}).mismatches, 1);
  EXPECT_EQ(compare_floats({NAN}, {1}).mismatches, 1);
  EXPECT_EQ(compare_floats({1}, {NAN}).mismatches, 1);
  EXPECT_EQ(compare_floats({INFINITY}, {-INFINITY}).mismatches, 1);
  EXPECT_EQ(compare(HostArray::from<std::int64_t>({1}, {3}), std::vector<double>{4}).mismatches, 1);
  EXPECT_EQ(compare(HostArray::full(DType::bf16, {1}, 1.03125), std::vector<double>{1}).mismatches, 1);
}

TEST(Comparison, AcceptsWhatRoundingExplains) {
  EXPECT_EQ(compare_floats({NAN, INFINITY}, {NAN, INFINITY}).mismatches, 0);
  EXPECT_EQ(compare_floats({INFINITY}, {1e39}).mismatches, 0);
  EXPECT_EQ(compare_floats({1000, 1e-5F}, {1000, 0}).mismatches, 0);
  EXPECT_EQ(compare(HostArray::full(DType::bf16, {1}, 1.0078125), std::vector<double>{1}).max_ulp, 1);
}

TEST(Comparison, BlockFormatsCountInStepsOfTheirBlock) {
  const HostArray result = HostArray::from<float>({2}, {1, 0.015625F}).cast(DType::bfloat8_b);
  const Comparison c = compare(result, std::vector<double>{1, 0.008});
  EXPECT_LT(c.max_ulp, 1);
  EXPECT_EQ(c.mismatches, 0);
}

TEST(Measure, CallsAtLeastOnceBeforeAndThreeTimesTimed) {
  int calls = 0;
  const Measurement m = measure([&] { ++calls; }, 0, {});
  EXPECT_GE(m.samples, 3u);
  EXPECT_GT(static_cast<std::size_t>(calls), m.calls);
  EXPECT_LE(m.p10_seconds, m.median_seconds);
  EXPECT_LE(m.median_seconds, m.p90_seconds);
}

}  // namespace
}  // namespace tenon::cli

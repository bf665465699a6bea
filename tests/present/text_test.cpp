#include "present/text.h"

#include <gtest/gtest.h>

namespace tenon::present {
namespace {

TEST(Text, StylesAreCodesOnlyWhereThereIsColour) {
  EXPECT_EQ(TextStyle{}.bold("a"), "a");
  EXPECT_EQ(TextStyle{.has_colour = true}.bold("a"), "\033[1ma\033[0m");
  EXPECT_EQ(TextStyle{.has_colour = true}.dim("a"), "\033[2ma\033[0m");
}

TEST(Text, ColumnsAreAlignedByCharactersNotBytes) {
  EXPECT_EQ(table({{"A", "B"}, {"äöü", "x"}, {"long", "y"}}, {}, 1), " A     B\n äöü   x\n long  y\n");
}

TEST(Text, IsWrappedAtSpaces) {
  EXPECT_EQ(wrap("one two three four", 10, 2), "one two\n  three\n  four");
  EXPECT_EQ(wrap("incomprehensibilities", 10, 2), "incomprehensibilities");
}

TEST(Money, HasTwoDecimalsAndSmallSumsTwoDigits) {
  EXPECT_EQ(money_text(12.5, false), "$12.50");
  EXPECT_EQ(money_text(0.0042, true), "~$0.0042");
  EXPECT_EQ(money_text(0, true), "$0");
}

TEST(Duration, HasTheUnitThatFits) {
  EXPECT_EQ(duration_text(0), "0 s");
  EXPECT_EQ(duration_text(0.8125), "812 ms");
  EXPECT_EQ(duration_text(1800), "30 min");
  EXPECT_EQ(duration_text(11700), "3.25 h");
  EXPECT_EQ(duration_text(86400 * 2.4), "2.4 d");
}

TEST(Time, IsUtcToTheMillisecond) {
  EXPECT_EQ(utc_text(std::chrono::system_clock::from_time_t(1'793'534'400) + std::chrono::milliseconds(7)),
            "2026-11-01T12:00:00.007Z");
}

}  // namespace
}  // namespace tenon::present

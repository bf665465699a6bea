#include "tenon/error.h"

#include <gtest/gtest.h>

#include <set>

namespace tenon {
namespace {

constexpr int kCodes = static_cast<int>(ErrorCode::data_loss) + 1;

TEST(Error, CarriesCodeMessageAndHint) {
  const Error error(ErrorCode::unavailable, "cuda:0 is being reset", "try again in a second");
  EXPECT_EQ(error.code(), ErrorCode::unavailable);
  EXPECT_STREQ(error.what(), "cuda:0 is being reset");
  EXPECT_EQ(error.hint(), "try again in a second");
}

TEST(Error, HintMayBeEmpty) { EXPECT_TRUE(Error(ErrorCode::internal, "broken").hint().empty()); }

TEST(Error, EveryCodeHasItsOwnName) {
  std::set<std::string_view> names;
  for (int i = 0; i < kCodes; ++i) names.insert(to_string(static_cast<ErrorCode>(i)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(kCodes));
  EXPECT_EQ(to_string(ErrorCode::resource_exhausted), "resource_exhausted");
  EXPECT_EQ(to_string(ErrorCode::data_loss), "data_loss");
}

TEST(Error, OnlyOkSucceeds) {
  EXPECT_EQ(exit_status(ErrorCode::ok), 0);
  EXPECT_EQ(http_status(ErrorCode::ok), 200);
  for (int i = 1; i < kCodes; ++i) {
    EXPECT_GE(exit_status(static_cast<ErrorCode>(i)), 1) << i;
    EXPECT_LE(exit_status(static_cast<ErrorCode>(i)), 4) << i;
    EXPECT_GE(http_status(static_cast<ErrorCode>(i)), 400) << i;
  }
}

TEST(Error, ExitStatusTellsUsageAbsenceAndBusyApart) {
  EXPECT_EQ(exit_status(ErrorCode::internal), 1);
  EXPECT_EQ(exit_status(ErrorCode::invalid_argument), 2);
  EXPECT_EQ(exit_status(ErrorCode::out_of_range), 2);
  EXPECT_EQ(exit_status(ErrorCode::not_found), 3);
  EXPECT_EQ(exit_status(ErrorCode::unavailable), 4);
  EXPECT_EQ(exit_status(ErrorCode::deadline_exceeded), 4);
}

TEST(Error, HttpStatusBlamesTheRightSide) {
  EXPECT_EQ(http_status(ErrorCode::invalid_argument), 400);
  EXPECT_EQ(http_status(ErrorCode::permission_denied), 403);
  EXPECT_EQ(http_status(ErrorCode::not_found), 404);
  EXPECT_EQ(http_status(ErrorCode::resource_exhausted), 429);
  EXPECT_EQ(http_status(ErrorCode::internal), 500);
  EXPECT_EQ(http_status(ErrorCode::unimplemented), 501);
  EXPECT_EQ(http_status(ErrorCode::unavailable), 503);
  EXPECT_EQ(http_status(ErrorCode::deadline_exceeded), 504);
}

TEST(Error, AnUnknownNumberReadsAsUnknown) { EXPECT_EQ(to_string(static_cast<ErrorCode>(99)), "unknown"); }

}  // namespace
}  // namespace tenon

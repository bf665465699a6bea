#include <gtest/gtest.h>

#include <chrono>

#include "cli/cli_testing.h"
#include "cli/inputs/inputs.h"
#include "manager/ledger/store.h"
#include "tenon/error.h"

namespace tenon::cli {
namespace {

using std::chrono::hours;
using std::chrono::system_clock;
using testing::contains;
using testing::Folder;
using testing::Outcome;
using testing::tenon;

class Cost : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!ledger_is_built()) GTEST_SKIP() << "this build has no SQLite";
  }
  void record(const std::string& device, const std::string& program, hours ago, double open_seconds, double compute_seconds,
              std::optional<double> price = 2.0, bool is_estimate = false) {
    Use use{.begin = system_clock::now() - ago, .device = device, .kind = "gpu", .program = program};
    use.runs = use.leases = use.opens = 1;
    use.open_seconds = open_seconds;
    use.compute_seconds = compute_seconds;
    use.price_per_hour = price;
    use.price_is_estimate = is_estimate;
    LedgerStore(folder / "ledger.db").append({&use, 1});
  }
  Outcome cost(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "cost");
    return tenon(arguments, {.environment = {{"TENON_STATE_DIR", folder / ""}}, .width = 120});
  }
  static const boost::json::object& group(const boost::json::object& document, std::size_t i) {
    return document.at("groups").as_array().at(i).as_object();
  }

  Folder folder;
};

TEST_F(Cost, SaysWhatDevicesCostAndHowMuchOfItWasComputing) {
  record("cuda:0", "train", hours(10), 1800, 900);
  const Outcome shown = cost({});
  EXPECT_EQ(shown.status, 0);
  EXPECT_TRUE(contains(shown.out, "cuda:0")) << shown.out;
  EXPECT_TRUE(contains(shown.out, "$1.00")) << shown.out;
  EXPECT_TRUE(contains(shown.out, "30 min")) << shown.out;
  EXPECT_TRUE(contains(shown.out, "50 %")) << shown.out;
  EXPECT_TRUE(contains(shown.out, "$20.00")) << shown.out;  // ten hours at 2 $
  EXPECT_FALSE(contains(shown.out, "~")) << shown.out;
}

TEST_F(Cost, EstimatesAreMarked) {
  record("cuda:0", "train", hours(1), 3600, 900, 3.5, true);
  const Outcome shown = cost({});
  EXPECT_TRUE(contains(shown.out, "~$3.50")) << shown.out;
  EXPECT_TRUE(contains(shown.out, "estimates")) << shown.out;
  EXPECT_TRUE(cost({"--json"}).json().at("total").at("cost_is_estimate").as_bool());
}

TEST_F(Cost, JsonHasEveryFigure) {
  record("cuda:0", "train", hours(2), 1800, 450);
  record("tpu:0", "serve", hours(2), 60, 30, std::nullopt);
  const boost::json::object document = cost({"--json"}).json();
  EXPECT_EQ(document.at("schema").as_int64(), 2);
  EXPECT_EQ(document.at("by").as_string(), "device");
  const boost::json::object& gpu = group(document, 0);
  EXPECT_EQ(gpu.at("device").as_string(), "cuda:0");
  EXPECT_DOUBLE_EQ(gpu.at("cost_dollars").as_double(), 1);
  EXPECT_DOUBLE_EQ(gpu.at("open_seconds").as_double(), 1800);
  EXPECT_DOUBLE_EQ(gpu.at("efficiency").as_double(), 0.25);
  EXPECT_NEAR(gpu.at("always_open_cost_dollars").as_double(), 4, 0.01);
  EXPECT_EQ(gpu.at("runs").to_number<int>(), 1);
  const boost::json::object& tpu = group(document, 1);
  EXPECT_TRUE(tpu.at("always_open_cost_dollars").is_null());
  EXPECT_DOUBLE_EQ(tpu.at("unpriced_open_seconds").as_double(), 60);
  EXPECT_DOUBLE_EQ(document.at("total").at("open_seconds").as_double(), 1860);
}

TEST_F(Cost, ByProgramAndByDay) {
  record("cuda:0", "train", hours(49), 3600, 1);
  record("cuda:0", "serve", hours(1), 1800, 1);
  const boost::json::object programs = cost({"--by", "program", "--json"}).json();
  EXPECT_EQ(group(programs, 0).at("program").as_string(), "train");
  EXPECT_EQ(group(programs, 1).at("program").as_string(), "serve");
  const boost::json::object days = cost({"--by", "day", "--json"}).json();
  EXPECT_EQ(days.at("groups").as_array().size(), 2U);
  EXPECT_LT(group(days, 0).at("day").as_string(), group(days, 1).at("day").as_string());
  EXPECT_FALSE(contains(cost({"--by", "program"}).out, "ALWAYS OPEN"));
}

TEST_F(Cost, SinceLeavesOutWhatIsOlder) {
  record("cuda:0", "old", hours(24 * 10), 3600, 1);
  record("cuda:0", "new", hours(24 * 2), 3600, 1);
  const boost::json::object week = cost({"--since", "7d", "--by", "program", "--json"}).json();
  ASSERT_EQ(week.at("groups").as_array().size(), 1U);
  EXPECT_EQ(group(week, 0).at("program").as_string(), "new");
  EXPECT_TRUE(contains(cost({"--since", "1h"}).out, "no device usage is recorded since"));
}

TEST_F(Cost, WithoutALedgerThereIsNothingToShowAndNothingIsMade) {
  const Outcome shown = cost({});
  EXPECT_EQ(shown.status, 0);
  EXPECT_EQ(shown.out, "no device usage is recorded yet\n");
  EXPECT_TRUE(cost({"--json"}).json().at("groups").as_array().empty());
  EXPECT_FALSE(std::filesystem::exists(folder / "ledger.db"));
}

TEST_F(Cost, WrongArgumentsAreUsageErrors) {
  EXPECT_EQ(cost({"--since", "yesterday"}).status, 2);
  const Outcome wrong = cost({"--by", "user"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_TRUE(contains(wrong.err, "device, program or day")) << wrong.err;
}

TEST(Since, IsATimeAgoOrADate) {
  setenv("TZ", "UTC", 1);
  tzset();
  const system_clock::time_point now = system_clock::from_time_t(1'793'534'400);  // 2026-11-01 12:00
  EXPECT_EQ(parse_since("7d", now), now - hours(7 * 24));
  EXPECT_EQ(parse_since("1.5h", now), now - std::chrono::minutes(90));
  EXPECT_EQ(parse_since("30m", now), now - std::chrono::minutes(30));
  EXPECT_EQ(parse_since("2w", now), now - hours(14 * 24));
  EXPECT_EQ(parse_since("2026-11-01", now), now - hours(12));
  EXPECT_EQ(parse_since("2026-11-01T11:30", now), now - std::chrono::minutes(30));
  for (const char* wrong : {"", "d", "7", "7x", "-1d", "2026-13-01", "2026-02-31", "2026-11-01x", "nan", "nand"})
    EXPECT_THROW(parse_since(wrong, now), Error) << wrong;
}

}  // namespace
}  // namespace tenon::cli

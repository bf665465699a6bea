// What the program writes into the ledger, read back with tenon cost.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cstdlib>
#include <filesystem>

#include "e2e/program.h"
#include "temporary_folder.h"

namespace tenon::testing {
namespace {

namespace json = boost::json;

class LedgerOfTheProgram : public ::testing::Test {
 protected:
  void SetUp() override {
    Program cost({TENON_PROGRAM, "cost", "--json"}, variables());
    const std::string out = cost.all_out();
    if (cost.exit_status() != 0) GTEST_SKIP() << "this build has no SQLite";
  }

  std::vector<std::pair<std::string, std::string>> variables() const {
    return {{"TENON_RUN_DIR", directory_ / "run"}, {"TENON_STATE_DIR", directory_ / "state"}, {"TENON_CONFIG", ""}};
  }
  int tenon(std::vector<std::string> words) const {
    words.insert(words.begin(), TENON_PROGRAM);
    Program program(words, variables());
    program.all_out();
    return program.exit_status();
  }
  json::object cost(const std::string& by) const {
    Program program({TENON_PROGRAM, "cost", "--json", "--by", by}, variables());
    return json::parse(program.all_out()).as_object();
  }

  test::TemporaryFolder directory_;
  const std::string card_ = "gpu,open=0.01,close=0";
};

TEST_F(LedgerOfTheProgram, ARunOnADeviceIsWrittenDownWhenTheProcessEnds) {
  ASSERT_EQ(tenon({"run", "sum(rand([1000], seed=1))", "--sim", card_, "--device", "sim:0", "--set", "prices.sim:0=3600"}), 0);
  const json::object document = cost("device");
  ASSERT_EQ(document.at("groups").as_array().size(), 1U) << json::serialize(document);
  const json::value& group = document.at("groups").at(0);
  EXPECT_EQ(group.at("device"), "sim:0");
  EXPECT_EQ(group.at("runs").to_number<int>(), 1);
  EXPECT_EQ(group.at("opens").to_number<int>(), 1);
  EXPECT_EQ(group.at("leases").to_number<int>(), 1);
  const double open_seconds = group.at("open_seconds").to_number<double>();
  EXPECT_GE(open_seconds, 0.01);
  EXPECT_NEAR(group.at("cost_dollars").to_number<double>(), open_seconds, 1e-9);  // a dollar a second
  EXPECT_FALSE(group.at("cost_is_estimate").as_bool());
  EXPECT_GT(group.at("compute_seconds").to_number<double>(), 0);
}

TEST_F(LedgerOfTheProgram, AShortRunOnTheProcessorLeavesNoLedger) {
  ASSERT_EQ(tenon({"run", "1 + 1"}), 0);
  EXPECT_FALSE(std::filesystem::exists(directory_ / "state/ledger.db"));
}

TEST_F(LedgerOfTheProgram, NothingIsWrittenWhereTheSettingIsOff) {
  ASSERT_EQ(tenon({"run", "1 + 1", "--sim", card_, "--device", "sim:0", "--set", "ledger=false"}), 0);
  EXPECT_FALSE(std::filesystem::exists(directory_ / "state/ledger.db"));
}

TEST_F(LedgerOfTheProgram, AFolderThatCannotBeWrittenDoesNotDisturbARun) {
  std::vector<std::pair<std::string, std::string>> blocked = variables();
  blocked.emplace_back("TENON_STATE_DIR", "/proc/nowhere");
  Program program({TENON_PROGRAM, "run", "1 + 1", "--sim", card_, "--device", "sim:0"}, blocked);
  EXPECT_NE(program.all_out().find('2'), std::string::npos);
  EXPECT_EQ(program.exit_status(), 0);
}

TEST_F(LedgerOfTheProgram, ACommandUnderALeaseIsWrittenDownWithItsExitStatus) {
  EXPECT_EQ(tenon({"exec", "--sim", card_, "--device", "sim:0", "--", "sh", "-c", "exit 3"}), 3);
  const json::object document = cost("program");
  ASSERT_EQ(document.at("groups").as_array().size(), 1U) << json::serialize(document);
  EXPECT_EQ(document.at("groups").at(0).at("program"), "sh");
  EXPECT_EQ(document.at("groups").at(0).at("failures").to_number<int>(), 1);
  EXPECT_GT(document.at("groups").at(0).at("held_seconds").to_number<double>(), 0);
}

}  // namespace
}  // namespace tenon::testing

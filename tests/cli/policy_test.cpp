// tenon policy replay and tenon queue, in this process. tests/e2e has tenon exec.
#include <gtest/gtest.h>

#include "cli/cli_testing.h"

namespace tenon::cli::testing {
namespace {

class PolicyTest : public ::testing::Test {
 protected:
  std::string trace(const std::string& text) {
    std::ofstream(folder_ / "trace.csv", std::ios::binary) << text;
    return folder_ / "trace.csv";
  }
  Folder folder_;
};

TEST_F(PolicyTest, ComparesSixPoliciesWithTheOptimum) {
  const std::string file = trace("arrival_seconds,service_seconds\r\n0,1\r\n3,1\r\n14,1");
  const auto document = tenon({"policy", "replay", file, "--break-even", "4", "--json"}).json();
  EXPECT_EQ(document.at("schema"), 1);
  EXPECT_EQ(document.at("gaps"), 2);
  std::vector<std::string> names;
  for (const auto& entry : document.at("policies").as_array()) {
    for (const char* field : {"cost_ratio", "cold_fraction", "held_seconds", "opens", "waiter_p50_seconds", "waiter_p99_seconds"})
      EXPECT_TRUE(entry.as_object().contains(field)) << field;
    names.emplace_back(entry.at("policy").as_string());
  }
  EXPECT_EQ(names, (std::vector<std::string>{"on_demand", "linger=5", "linger=300", "always", "linger", "adaptive"}));
  const auto& never = document.at("policies").as_array()[3].as_object();
  EXPECT_EQ(never.at("cost_ratio").as_double(), 2.0);
  EXPECT_EQ(never.at("held_seconds").as_double(), 12.0);
  EXPECT_EQ(never.at("opens"), 1);
}

TEST_F(PolicyTest, TableAndPlotShowEveryPolicy) {
  const Outcome outcome = tenon({"policy", "replay", trace("arrival_seconds\n0\n100\n200\n")});
  EXPECT_EQ(outcome.status, 0);
  for (const char* text : {"POLICY", "adaptive", "linger=300", "optimum", "|##"})
    EXPECT_TRUE(contains(outcome.out, text)) << text;
}

TEST_F(PolicyTest, OnlyTheGivenPolicies) {
  const std::string file = trace("arrival_seconds\n0\n100\n");
  const auto document = tenon({"policy", "replay", file, "--policy", "linger=7.5", "--policy", "adaptive", "--json"}).json();
  ASSERT_EQ(document.at("policies").as_array().size(), 2u);
  EXPECT_EQ(document.at("policies").as_array()[0].at("policy"), "linger=7.5");
  // The name that is printed is one that is understood.
  const auto again = tenon({"policy", "replay", file, "--policy", "fixed-7.5s", "--json"}).json();
  EXPECT_EQ(again.at("policies").as_array()[0], document.at("policies").as_array()[0]);
}

TEST_F(PolicyTest, RefusesWhatItCannotRead) {
  const Outcome row = tenon({"policy", "replay", trace("arrival_seconds\n0\nsoon\n")});
  EXPECT_EQ(row.status, 2);
  EXPECT_TRUE(contains(row.err, "line 3")) << row.err;
  EXPECT_EQ(tenon({"policy", "replay", folder_ / "missing.csv"}).status, 3);
  const Outcome directory = tenon({"policy", "replay", folder_ / "."});
  EXPECT_EQ(directory.status, 2);
  EXPECT_TRUE(contains(directory.err, "is a directory")) << directory.err;
  const std::string good = trace("arrival_seconds\n0\n1\n");
  for (const char* policy : {"sometimes", "linger=", "linger=-1", "linger=x", "fixed-5", "fixed-s"})
    EXPECT_EQ(tenon({"policy", "replay", good, "--policy", policy}).status, 2) << policy;
  EXPECT_EQ(tenon({"policy", "replay", good, "--break-even", "0"}).status, 2);
  EXPECT_EQ(tenon({"policy"}).status, 2);
  const Outcome option = tenon({"policy", "replay", good, "--brake-even", "1"});
  EXPECT_TRUE(contains(option.err, "--break-even")) << option.err;
}

TEST_F(PolicyTest, TheQueueListsEveryDeviceAndMakesNothing) {
  const Surroundings surroundings{.environment = {{"TENON_RUN_DIR", folder_ / "run"}}};
  EXPECT_TRUE(contains(tenon({"queue"}, surroundings).out, "free"));
  const auto document = tenon({"queue", "--json"}, surroundings).json();
  EXPECT_EQ(document.at("devices").as_array().at(0).at("device"), "cpu:0");
  EXPECT_TRUE(document.at("devices").as_array().at(0).at("holders").as_array().empty());
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run"));
}

}  // namespace
}  // namespace tenon::cli::testing

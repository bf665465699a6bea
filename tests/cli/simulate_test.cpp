// tenon simulate.
#include <gtest/gtest.h>

#include <fstream>

#include "cli/cli_testing.h"

namespace tenon::cli::testing {
namespace {

TEST(Simulate, ComparesPoliciesAndSaysThatItIsSimulated) {
  const Outcome shown = tenon({"simulate", "--devices", "2x4,2x1", "--load", "0.7", "--jobs", "2000"});
  EXPECT_EQ(shown.status, 0) << shown.err;
  for (const char* words : {"simulated", "fastest", "two_choices", "round_robin"})
    EXPECT_NE(shown.out.find(words), std::string::npos) << shown.out;
  const Outcome document = tenon({"simulate", "--devices", "2x1", "--jobs", "1000", "--policy", "fastest", "--json"});
  EXPECT_EQ(document.json().at("simulated"), true);
}

TEST(Simulate, DrawsLatencyOverLoad) {
  const Folder folder;
  EXPECT_EQ(tenon({"simulate", "--devices", "2x1", "--jobs", "1000", "--svg", folder / "a.svg"}).status, 0);
  std::ifstream file(folder / "a.svg");
  std::string text;
  std::getline(file, text);
  EXPECT_TRUE(text.starts_with("<svg")) << text;
}

// A hundred million jobs would take minutes.
TEST(Simulate, AFileThatCannotBeWrittenIsFoundBeforeAnythingIsSimulated) {
  const Outcome refused = tenon({"simulate", "--jobs", "100000000", "--svg", "/nonexistent/a.svg"});
  EXPECT_EQ(refused.status, 3) << refused.err;
  EXPECT_EQ(refused.out.find("fastest"), std::string::npos) << refused.out;
}

}  // namespace
}  // namespace tenon::cli::testing

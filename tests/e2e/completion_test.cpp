// The completion script in a real bash.
#include <gtest/gtest.h>

#include <filesystem>

#include "e2e/program.h"

namespace tenon::testing {
namespace {

// What bash offers when tab is pressed behind |line|, separated by spaces.
std::string offered(const std::string& line) {
  const std::string folder = std::filesystem::path(TENON_PROGRAM).parent_path();
  const std::string script =
      "PATH=" + folder +
      ":$PATH; source <(tenon completion bash); COMP_LINE=$1 COMP_POINT=${#1}; _tenon; echo \"${COMPREPLY[*]}\"";
  Program bash({"bash", "-c", script, "bash", line}, {{"TENON_SIM", "wormhole"}});
  return bash.out_line();
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class CompletionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::system("bash --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "there is no bash here";
  }
};

TEST_F(CompletionTest, CommandsTheirPartsAndTheirOptions) {
  EXPECT_EQ(offered("tenon pol"), "policy");
  EXPECT_EQ(offered("tenon --sim wormhole de"), "devices");
  EXPECT_EQ(offered("tenon --quiet --progress json de"), "devices");
  EXPECT_EQ(offered("tenon --conf"), "--config");
  EXPECT_EQ(offered("tenon run 1 --qui"), "--quiet");
  EXPECT_EQ(offered("tenon policy "), "replay");
  EXPECT_EQ(offered("tenon policy replay --br"), "--break-even");
  EXPECT_EQ(offered("tenon run --exp"), "--explain");
  EXPECT_TRUE(contains(offered("tenon exec --device cpu -- tru"), "true"));
}

TEST_F(CompletionTest, ValuesOfOptions) {
  EXPECT_EQ(offered("tenon run 1 --device si"), "sim:0");
  EXPECT_EQ(offered("tenon run 1 --device sim:"), "0");  // bash has a word end at the colon
  EXPECT_EQ(offered("tenon cost --by "), "device program day");
  EXPECT_EQ(offered("tenon --set rou"), "routing=");
  EXPECT_EQ(offered("tenon devices --sim worm"), "wormhole");
  EXPECT_EQ(offered("tenon run --dtype bfloat8"), "bfloat8_b");
  EXPECT_EQ(offered("tenon run 1 --progress "), "auto json");
  EXPECT_EQ(offered("tenon run 1 --timeout "), "");
}

TEST_F(CompletionTest, Arguments) {
  EXPECT_EQ(offered("tenon ops log_soft"), "log_softmax");
  EXPECT_EQ(offered("tenon config memory_f"), "memory_fraction");
  EXPECT_TRUE(contains(offered("tenon run x x=@/etc/pass"), "@/etc/passwd"));
}

}  // namespace
}  // namespace tenon::testing

#include "base/system/child_output.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>

#include "eventually.h"
#include "temporary_folder.h"

namespace tenon {
namespace {

using namespace std::chrono_literals;

TEST(ChildOutput, IsWhatTheProgramPrints) {
  EXPECT_EQ(child_output({"echo", "hello"}, 60s), "hello\n");
  EXPECT_EQ(child_output({"false"}, 60s), std::nullopt);
  EXPECT_EQ(child_output({"no such program"}, 60s), std::nullopt);
}

TEST(ChildOutput, ProgramThatClosesItsOutputAndStaysIsEnded) {
  EXPECT_EQ(child_output({"sh", "-c", "exec >&-; sleep 3600"}, 200ms), std::nullopt);
}

TEST(ChildOutput, WhatTheProgramStartedEndsWithIt) {
  const test::TemporaryFolder folder;
  const std::string file = folder.path() / "pid";
  EXPECT_EQ(child_output({"sh", "-c", "sleep 3600 & echo $! >" + file + "; wait"}, 500ms), std::nullopt);
  pid_t grandchild = 0;
  std::ifstream(file) >> grandchild;
  ASSERT_GT(grandchild, 0);
  // Whoever inherited it may not have waited for it yet: a dead process has no command line.
  EXPECT_TRUE(test::eventually(60s, [&] {
    std::ifstream line("/proc/" + std::to_string(grandchild) + "/cmdline");
    return line.peek() == std::ifstream::traits_type::eof();
  }));
}

}  // namespace
}  // namespace tenon

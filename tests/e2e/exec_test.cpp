// tenon exec and tenon queue, as processes.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "e2e/program.h"
#include "temporary_folder.h"

namespace tenon::testing {
namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class ExecTest : public ::testing::Test {
 protected:
  std::vector<std::pair<std::string, std::string>> variables() const { return {{"TENON_RUN_DIR", directory_.path().string()}}; }
  static std::vector<std::string> exec(std::vector<std::string> command, const std::vector<std::string>& options = {}) {
    std::vector<std::string> words{TENON_PROGRAM, "exec", "--device", "cpu:0"};
    words.insert(words.end(), options.begin(), options.end());
    words.emplace_back("--");
    words.insert(words.end(), command.begin(), command.end());
    return words;
  }

  test::TemporaryFolder directory_;
};

TEST_F(ExecTest, PassesTheExitStatusOn) {
  EXPECT_EQ(Program(exec({"true"}), variables()).exit_status(), 0);
  EXPECT_EQ(Program(exec({"sh", "-c", "exit 7"}), variables()).exit_status(), 7);
  EXPECT_EQ(Program(exec({"sh", "-c", "kill -KILL $$"}), variables()).exit_status(), 137);
}

TEST_F(ExecTest, SaysWhyACommandCannotRun) {
  Program missing(exec({"no-such-command-here"}), variables());
  EXPECT_TRUE(contains(missing.all_err(), "no-such-command-here"));
  EXPECT_EQ(missing.exit_status(), 127);
  EXPECT_EQ(Program(exec({"/etc/passwd"}), variables()).exit_status(), 126);
  EXPECT_EQ(Program(exec({}), variables()).exit_status(), 2);
  EXPECT_EQ(Program({TENON_PROGRAM, "exec", "--device", "warp:9", "--", "true"}, variables()).exit_status(), 3);
  EXPECT_EQ(Program({TENON_PROGRAM, "exec", "--", "true"}, variables()).exit_status(), 2);
}

TEST_F(ExecTest, ArgumentsArriveAsTheyAre) {
  Program program(exec({"printf", "%s|", "-1", "--json", " x", "--", "", "-- y"}), variables());
  EXPECT_EQ(program.all_out(), "-1|--json| x|--||-- y|");
}

TEST_F(ExecTest, TheCommandLearnsOfItsLease) {
  Program first(exec({"sh", "-c", "echo $TENON_LEASE"}), variables());
  EXPECT_EQ(first.all_out(), "cpu:0@1\n");
  first.exit_status();
  Program second(exec({"sh", "-c", "echo $TENON_LEASE"}), variables());
  EXPECT_EQ(second.all_out(), "cpu:0@2\n");
}

TEST_F(ExecTest, WaitsItsTurnAndSaysWhoHoldsTheDevice) {
  Program holder(exec({"sh", "-c", "echo in; cat"}), variables());
  ASSERT_EQ(holder.out_line(), "in");
  Program next(exec({"echo", "mine"}), variables());
  const std::string sentence = next.err_line();
  EXPECT_TRUE(contains(sentence, "waiting for cpu:0: held by pid ")) << sentence;
  EXPECT_TRUE(contains(sentence, "tenon exec --device cpu:0")) << sentence;
  EXPECT_TRUE(contains(sentence, "you are next")) << sentence;
  Program last(exec({"echo", "mine too"}), variables());
  EXPECT_TRUE(contains(last.err_line(), "1 ahead of you"));

  Program queue({TENON_PROGRAM, "queue"}, variables());
  const std::string table = queue.all_out();
  EXPECT_TRUE(contains(table, "holds")) << table;
  EXPECT_TRUE(contains(table, "waits, 1")) << table;
  EXPECT_TRUE(contains(table, "waits, 2")) << table;
  Program document({TENON_PROGRAM, "queue", "--json"}, variables());
  EXPECT_TRUE(contains(document.all_out(), "\"holders\": [\n"));

  holder.end_input();
  EXPECT_EQ(next.all_out(), "mine\n");
  EXPECT_EQ(next.exit_status(), 0);
  EXPECT_EQ(last.all_out(), "mine too\n");
}

TEST_F(ExecTest, TheReportSaysThatAnotherProcessHoldsTheDevice) {
  Program free({TENON_PROGRAM, "report"}, variables());
  EXPECT_FALSE(contains(free.all_out(), "is held by"));
  Program holder(exec({"sh", "-c", "echo in; cat"}), variables());
  ASSERT_EQ(holder.out_line(), "in");
  Program report({TENON_PROGRAM, "report"}, variables());
  const std::string text = report.all_out();
  EXPECT_TRUE(contains(text, "  cpu:0 is held by pid ")) << text;
  Program document({TENON_PROGRAM, "report", "--json"}, variables());
  EXPECT_TRUE(contains(document.all_out(), "\"holding\": true")) << "the member held";
  holder.end_input();
}

TEST_F(ExecTest, GivesUpWhenTheTimeIsUp) {
  Program holder(exec({"sh", "-c", "echo in; cat"}), variables());
  ASSERT_EQ(holder.out_line(), "in");
  EXPECT_EQ(Program(exec({"true"}, {"--timeout", "0"}), variables()).exit_status(), 4);
  EXPECT_EQ(Program(exec({"true"}, {"--timeout", "0.01"}), variables()).exit_status(), 4);
}

TEST_F(ExecTest, AWaiterThatIsInterruptedLeavesTheQueue) {
  Program holder(exec({"sh", "-c", "echo in; cat"}), variables());
  ASSERT_EQ(holder.out_line(), "in");
  Program waiter(exec({"true"}), variables());
  waiter.err_line();
  waiter.send(SIGINT);
  EXPECT_EQ(waiter.exit_status(), 130);
  Program document({TENON_PROGRAM, "queue", "--json"}, variables());
  EXPECT_TRUE(contains(document.all_out(), "\"waiters\": []"));
}

TEST_F(ExecTest, SignalsArePassedOn) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1}) {
    Program program(exec({"sh", "-c", "trap 'kill $!; exit 42' TERM INT HUP USR1; sleep 1000 & echo ready; wait"}), variables());
    ASSERT_EQ(program.out_line(), "ready");
    program.send(signal);
    EXPECT_EQ(program.exit_status(), 42) << signal;
  }
}

TEST_F(ExecTest, TheCommandDiesWithTenonAndTheLeaseIsFree) {
  Program program(exec({"sh", "-c", "echo ready; exec cat"}), variables());
  ASSERT_EQ(program.out_line(), "ready");
  program.send(SIGKILL);
  EXPECT_EQ(program.exit_status(), 137);
  EXPECT_EQ(program.all_out(), "");  // ends only when the command, too, has closed it
  Program next(exec({"true"}), variables());
  EXPECT_TRUE(contains(next.all_err(), "died"));
  EXPECT_EQ(next.exit_status(), 0);
  EXPECT_EQ(Program(exec({"true"}), variables()).all_err(), "");
}

TEST_F(ExecTest, ACommandThatCouldNotStartPutsNothingRight) {
  EXPECT_EQ(Program(exec({"sh", "-c", "kill -SEGV $$"}), variables()).exit_status(), 128 + SIGSEGV);
  EXPECT_EQ(Program(exec({"no-such-command-here"}), variables()).exit_status(), 127);
  Program queue({TENON_PROGRAM, "queue"}, variables());
  EXPECT_TRUE(contains(queue.all_out(), "left dirty"));
}

TEST_F(ExecTest, ACommandThatDiedLeavesTheDeviceDirty) {
  EXPECT_EQ(Program(exec({"sh", "-c", "kill -SEGV $$"}), variables()).exit_status(), 128 + SIGSEGV);
  Program queue({TENON_PROGRAM, "queue"}, variables());
  EXPECT_TRUE(contains(queue.all_out(), "left dirty"));
}

TEST_F(ExecTest, TheLeaseEndsWithTheCommandThoughItLeftAProcessBehind) {
  Program program(exec({"sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!"}), variables());
  const pid_t left = std::stoi(program.out_line());
  EXPECT_EQ(program.exit_status(), 0);
  EXPECT_EQ(Program(exec({"true"}, {"--timeout", "0"}), variables()).exit_status(), 0);
  kill(left, SIGKILL);
}

TEST_F(ExecTest, ACommandUnderALeaseMayAskForItAgain) {
  std::vector<std::string> inner = exec({"echo", "inside"}, {"--timeout", "0"});
  Program program(exec(inner), variables());
  EXPECT_EQ(program.all_out(), "inside\n");
  EXPECT_EQ(program.exit_status(), 0);
  // A stale name is no lease.
  auto stale = variables();
  stale.emplace_back("TENON_LEASE", "cpu:0@1");
  Program holder(exec({"sh", "-c", "echo in; cat"}), variables());
  ASSERT_EQ(holder.out_line(), "in");
  EXPECT_EQ(Program(exec({"true"}, {"--timeout", "0"}), stale).exit_status(), 4);
}

TEST_F(ExecTest, SharedLeasesAreHeldTogether) {
  Program a(exec({"sh", "-c", "echo in; cat"}, {"--shared"}), variables());
  ASSERT_EQ(a.out_line(), "in");
  EXPECT_EQ(Program(exec({"true"}, {"--shared", "--timeout", "0"}), variables()).exit_status(), 0);
  EXPECT_EQ(Program(exec({"true"}, {"--timeout", "0"}), variables()).exit_status(), 4);
}

TEST_F(ExecTest, TheQueueOfAMachineWithoutOneIsEmpty) {
  Program queue({TENON_PROGRAM, "queue"}, {{"TENON_RUN_DIR", directory_ / "none"}});
  EXPECT_TRUE(contains(queue.all_out(), "free"));
  EXPECT_FALSE(std::filesystem::exists(directory_ / "none"));
}

}  // namespace
}  // namespace tenon::testing

// Ctrl-C, and waiting for a device, in commands that compute.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "e2e/program.h"
#include "e2e/terminal.h"
#include "eventually.h"
#include "temporary_folder.h"

namespace tenon::testing {
namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class InterruptTest : public ::testing::Test {
 protected:
  std::vector<std::pair<std::string, std::string>> variables(const std::string& simulated = "wormhole,open=0,close=0") const {
    return {
        {"TENON_RUN_DIR", directory_.path().string()}, {"TENON_STATE_DIR", directory_.path().string()}, {"TENON_SIM", simulated}};
  }
  std::string queue() const { return Program({TENON_PROGRAM, "queue"}, variables()).all_out(); }

  test::TemporaryFolder directory_;
};

TEST_F(InterruptTest, WhoeverWaitsIsToldForWhomAndLeavesOnCtrlC) {
  Program holder({TENON_PROGRAM, "exec", "--device", "sim:0", "--", "sh", "-c", "echo in; cat"}, variables());
  ASSERT_EQ(holder.out_line(), "in");
  for (std::vector<std::string> command :
       {std::vector<std::string>{"run", "1 + 1"}, {"bench", "1 + 1"}, {"tune", "x * 2", "x=[1]"}, {"doctor"}}) {
    command.insert(command.begin(), TENON_PROGRAM);
    command.insert(command.end(), {"--device", "sim:0"});
    Program waiter(command, variables());
    const std::string line = waiter.err_line();
    EXPECT_TRUE(contains(line, "waiting for sim:0: held by pid ")) << command[1] << ": " << line;
    waiter.send(SIGINT);
    EXPECT_EQ(waiter.exit_status(), 130) << command[1];
  }
  holder.end_input();
  EXPECT_EQ(holder.exit_status(), 0);
  EXPECT_FALSE(contains(queue(), "dirty"));
}

TEST_F(InterruptTest, ProgramsAreToldOfTheQueueInObjects) {
  Program holder({TENON_PROGRAM, "exec", "--device", "sim:0", "--", "sh", "-c", "echo in; cat"}, variables());
  ASSERT_EQ(holder.out_line(), "in");
  for (std::vector<std::string> command : {std::vector<std::string>{"run", "1 + 1", "--device", "sim:0", "--progress=json"},
                                           {"bench", "1 + 1", "--device", "sim:0", "--progress=json"},
                                           {"exec", "--device", "sim:0", "--progress=json", "--", "true"}}) {
    command.insert(command.begin(), TENON_PROGRAM);
    Program waiter(command, variables());
    std::string line = waiter.err_line();
    while (line.starts_with(R"({"progress":{"stage":"opening",)")) line = waiter.err_line();
    EXPECT_TRUE(
        line.starts_with(R"({"progress":{"stage":"queued","device":"sim:0","ahead_here":0,"ahead_elsewhere":1,"holder":"pid )"))
        << line;
    EXPECT_TRUE(line.ends_with("}}")) << line;
    waiter.send(SIGINT);
    EXPECT_EQ(waiter.exit_status(), 130) << command[1];
  }
  holder.end_input();
  EXPECT_EQ(holder.exit_status(), 0);
}

TEST_F(InterruptTest, WhoeverWantsQuietWaitsWithoutAWordAndStillSeesErrors) {
  Program holder({TENON_PROGRAM, "exec", "--device", "sim:0", "--", "sh", "-c", "echo in; cat"}, variables());
  ASSERT_EQ(holder.out_line(), "in");
  Program late({TENON_PROGRAM, "run", "1 + 1", "--device", "sim:0", "--timeout", "0.05", "--quiet"}, variables());
  const std::string errors = late.all_err();
  EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 2) << errors;  // the error and its hint, no progress
  EXPECT_TRUE(errors.starts_with("tenon: ")) << errors;
  EXPECT_EQ(late.exit_status(), 4);
  Program quiet({TENON_PROGRAM, "--quiet", "exec", "--device", "sim:0", "--", "echo", "mine"}, variables());
  holder.end_input();
  EXPECT_EQ(quiet.all_err(), "");
  EXPECT_EQ(quiet.all_out(), "mine\n");
  EXPECT_EQ(quiet.exit_status(), 0);
}

TEST_F(InterruptTest, AMeasurementThatIsInterruptedGivesTheDeviceBack) {
  Program bench({TENON_PROGRAM, "bench", "1 + 1", "--device", "sim:0", "--seconds", "3600"}, variables());
  ASSERT_TRUE(test::eventually(std::chrono::seconds(60), [&] { return contains(queue(), "holds"); }));
  bench.send(SIGINT);
  EXPECT_EQ(bench.exit_status(), 130);
  EXPECT_FALSE(contains(queue(), "dirty"));
}

// Opening cannot be broken off, but nobody has to wait for its end.
TEST_F(InterruptTest, ADeviceThatDoesNotOpenHoldsNobodyUp) {
  Program run({TENON_PROGRAM, "run", "1 + 1", "--device", "sim:0"}, variables("wormhole,open=3000"));
  ASSERT_TRUE(test::eventually(std::chrono::seconds(60), [&] { return contains(queue(), "holds"); }));
  run.send(SIGINT);
  EXPECT_EQ(run.exit_status(), 130);
}

// Shells start jobs in the background with SIGINT ignored: Ctrl-C is meant for what is in front.
TEST_F(InterruptTest, AJobInTheBackgroundIsLeftAlone) {
  const std::string ignoring = std::string("trap '' INT; exec ") + TENON_PROGRAM;
  Program job({"sh", "-c", ignoring + " exec --device sim:0 -- sh -c 'echo in; cat'"}, variables());
  ASSERT_EQ(job.out_line(), "in");
  job.send(SIGINT);
  job.end_input();
  EXPECT_EQ(job.exit_status(), 0);
  Program holder({TENON_PROGRAM, "exec", "--device", "sim:0", "--", "sh", "-c", "echo in; cat"}, variables());
  ASSERT_EQ(holder.out_line(), "in");
  Program bench({"sh", "-c", ignoring + " bench '1 + 1' --device sim:0 --seconds 0.01"}, variables());
  EXPECT_TRUE(contains(bench.err_line(), "waiting for sim:0"));
  bench.send(SIGINT);
  holder.end_input();
  EXPECT_EQ(bench.exit_status(), 0);
}

TEST(InterruptOnATerminal, WorkOnTheProcessorEndsAtOnceAndClearsItsLine) {
  OnTerminal bench({"bench", "1 + 1", "--device", "cpu", "--seconds", "3600"});
  bench.until("compute");
  bench.type("\003");
  EXPECT_EQ(bench.status(), 130);
  const std::string rest = bench.until("\r\033[K");
  EXPECT_TRUE(contains(rest, "\r\033[K")) << rest;
  EXPECT_FALSE(contains(rest, "stopping")) << rest;
}

}  // namespace
}  // namespace tenon::testing

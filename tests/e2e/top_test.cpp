// tenon top on a real pseudo-terminal.
#include <gtest/gtest.h>
#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/system/file_descriptor.h"
#include "e2e/program.h"
#include "e2e/terminal.h"
#include "temporary_folder.h"

namespace tenon {
namespace {

constexpr const char* kEnter = "\033[?1049h";
constexpr const char* kLeave = "\033[?1049l";

TEST(TopOnATerminal, ShowsALiveTableAndPutsTheTerminalBackOnQuit) {
  OnTerminal top({"top", "--interval", "60"});
  EXPECT_NE(top.until("q quit").find(kEnter), std::string::npos);
  EXPECT_FALSE(top.is_as_before());
  top.type("q");
  EXPECT_NE(top.until(kLeave).find(kLeave), std::string::npos);
  EXPECT_EQ(top.status(), 0);
  EXPECT_TRUE(top.is_as_before());
}

TEST(TopOnATerminal, CtrlCEndsItAndPutsTheTerminalBack) {
  OnTerminal top({"top", "--interval", "60"});
  top.until("q quit");
  top.type("\003");
  EXPECT_NE(top.until(kLeave).find(kLeave), std::string::npos);
  EXPECT_EQ(top.status(), 130);
  EXPECT_TRUE(top.is_as_before());
}

TEST(TopOnATerminal, ATerminatedOnePutsTheTerminalBackToo) {
  OnTerminal top({"top", "--interval", "60"});
  top.until("q quit");
  top.send(SIGTERM);
  EXPECT_NE(top.until(kLeave).find(kLeave), std::string::npos);
  EXPECT_EQ(top.status(), 128 + SIGTERM);
  EXPECT_TRUE(top.is_as_before());
}

TEST(TopOnATerminal, FollowsTheSizeOfTheTerminal) {
  OnTerminal top({"top", "--interval", "60"}, 100, 30);
  top.until("q quit");
  top.until("\033[J");
  top.resize(12, 5);
  // Twelve columns of the first line.
  const std::string shown = top.until("\033[J");
  EXPECT_EQ(shown.find("q quit"), std::string::npos);
  EXPECT_NE(shown.find("tenon top  "), std::string::npos);
  top.resize(100, 30);
  EXPECT_NE(top.until("q quit").find("cpu:0"), std::string::npos);
  top.type("q");
  EXPECT_EQ(top.status(), 0);
}

TEST(TopOnATerminal, KeysChangeTheOrderAndUnknownSequencesDoNothing) {
  OnTerminal top({"top", "--interval", "60"});
  top.until("by id");
  top.type("\033[1;5Q\033[15~s");
  EXPECT_NE(top.until("by utilisation").find("by utilisation"), std::string::npos);
  top.type("\033[A\033[B\033[Hr");
  EXPECT_NE(top.until("reversed").find("reversed"), std::string::npos);
  top.type("q");
  EXPECT_EQ(top.status(), 0);
}

TEST(TopOnATerminal, TheOrderIsKeptForTheNextTime) {
  const test::TemporaryFolder folder;
  const std::string state = folder / "state";
  {
    OnTerminal top({"top", "--interval", "60"}, 100, 30, state);
    top.until("by id");
    top.type("sq");
    EXPECT_EQ(top.status(), 0);
  }
  OnTerminal again({"top", "--interval", "60"}, 100, 30, state);
  EXPECT_NE(again.until("by utilisation").find("by utilisation"), std::string::npos);
  again.type("q");
  EXPECT_EQ(again.status(), 0);
}

TEST(TopOnATerminal, TakesNewSamplesByItself) {
  OnTerminal top({"top", "--interval", "0.1"});
  for (int i = 0; i < 3; ++i) EXPECT_NE(top.until("q quit").find("cpu:0"), std::string::npos);
  top.type("q");
  EXPECT_EQ(top.status(), 0);
}

TEST(TopOnATerminal, OnceOnATerminalPrintsPlainLines) {
  OnTerminal top({"top", "--once"});
  const std::string shown = top.until("cpu:0");
  EXPECT_EQ(shown.find(kEnter), std::string::npos);
  EXPECT_EQ(top.status(), 0);
}

TEST(TopBesideALease, SaysWhoHoldsADeviceAndHowManyWait) {
  const test::TemporaryFolder folder;
  const std::vector<std::pair<std::string, std::string>> variables = {{"TENON_RUN_DIR", folder / "run"},
                                                                      {"TENON_STATE_DIR", folder / "state"}};
  const auto exec = [](const char* text) {
    return std::vector<std::string>{TENON_PROGRAM, "exec", "--device", "cpu:0", "--", "sh", "-c", text};
  };
  testing::Program holder(exec("echo ready; cat"), variables);
  ASSERT_EQ(holder.out_line(), "ready");
  testing::Program waiter(exec("true"), variables);
  ASSERT_NE(waiter.err_line().find("waiting"), std::string::npos);

  testing::Program top({TENON_PROGRAM, "top", "--once", "--json"}, variables);
  const boost::json::value document = boost::json::parse(top.all_out());
  EXPECT_EQ(top.exit_status(), 0);
  for (const boost::json::value& device : document.at("devices").as_array()) {
    if (device.at("id") != "cpu:0") continue;
    EXPECT_EQ(device.at("state"), "held");
    EXPECT_EQ(device.at("waiting").as_int64(), 1);
    EXPECT_NE(device.at("holder").as_string().find("echo ready; cat"), std::string::npos) << boost::json::serialize(device);
  }
  holder.end_input();
  EXPECT_EQ(holder.exit_status(), 0);
  EXPECT_EQ(waiter.exit_status(), 0);
}

}  // namespace
}  // namespace tenon

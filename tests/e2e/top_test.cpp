// tenon top on a real pseudo-terminal.
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <boost/json.hpp>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/file_descriptor.h"
#include "e2e/program.h"

namespace tenon {
namespace {

constexpr const char* kEnter = "\033[?1049h";
constexpr const char* kLeave = "\033[?1049l";

// The program with a terminal of its own, whose other end the test holds.
class OnTerminal {
 public:
  explicit OnTerminal(const std::vector<std::string>& arguments, unsigned short columns = 100, unsigned short rows = 30) {
    std::string pattern = (std::filesystem::temp_directory_path() / "tenon-top-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    int other = -1;
    winsize size{.ws_row = rows, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    int own = -1;
    EXPECT_EQ(openpty(&own, &other, nullptr, nullptr, &size), 0);
    terminal_ = FileDescriptor(own);
    program_side_ = FileDescriptor(other);
    EXPECT_EQ(tcgetattr(other, &before_), 0);
    pid_ = fork();
    if (pid_ == 0) {
      setsid();
      ioctl(other, TIOCSCTTY, 0);
      for (const int stream : {0, 1, 2}) dup2(other, stream);
      setenv("TERM", "xterm", 1);
      setenv("LC_ALL", "C.UTF-8", 1);
      setenv("TENON_RUN_DIR", (folder_ / "run").c_str(), 1);
      setenv("TENON_STATE_DIR", (folder_ / "state").c_str(), 1);
      std::vector<char*> words{const_cast<char*>(TENON_PROGRAM)};
      for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
      words.push_back(nullptr);
      execv(words[0], words.data());
      _exit(127);
    }
  }
  ~OnTerminal() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  OnTerminal(const OnTerminal&) = delete;
  OnTerminal& operator=(const OnTerminal&) = delete;

  // Reads until |text| has come; what came so far, which ends there or, if it never comes, with the program.
  std::string until(const std::string& text) {
    std::size_t found = std::string::npos;
    while ((found = seen_.find(text)) == std::string::npos) {
      std::array<char, 4096> part{};
      const ssize_t got = read(terminal_.get(), part.data(), part.size());
      if (got <= 0) return std::exchange(seen_, "");
      seen_.append(part.data(), static_cast<std::size_t>(got));
    }
    std::string shown = seen_.substr(0, found + text.size());
    seen_.erase(0, found + text.size());
    return shown;
  }
  void type(const std::string& keys) const {
    EXPECT_EQ(write(terminal_.get(), keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
  }
  void resize(unsigned short columns, unsigned short rows) const {
    const winsize size{.ws_row = rows, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    EXPECT_EQ(ioctl(terminal_.get(), TIOCSWINSZ, &size), 0);
  }
  void send(int signal) const { kill(pid_, signal); }
  int status() {
    int status = 0;
    waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  bool is_as_before() const {
    termios now{};
    tcgetattr(program_side_.get(), &now);
    return now.c_lflag == before_.c_lflag && now.c_iflag == before_.c_iflag && now.c_oflag == before_.c_oflag;
  }

 private:
  std::filesystem::path folder_;
  FileDescriptor terminal_, program_side_;
  termios before_{};
  pid_t pid_ = -1;
  std::string seen_;
};

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
  std::string pattern = (std::filesystem::temp_directory_path() / "tenon-top-XXXXXX").string();
  const std::filesystem::path folder = mkdtemp(pattern.data());
  const std::vector<std::pair<std::string, std::string>> variables = {{"TENON_RUN_DIR", (folder / "run").string()},
                                                                      {"TENON_STATE_DIR", (folder / "state").string()}};
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
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tenon

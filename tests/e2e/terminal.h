// A terminal of the program's own, whose other end the test holds.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/system/file_descriptor.h"
#include "temporary_folder.h"

namespace tenon {

class OnTerminal {
 public:
  // |state|: the state directory; a fresh one if it is empty.
  explicit OnTerminal(const std::vector<std::string>& arguments, unsigned short columns = 100, unsigned short rows = 30,
                      const std::string& state = {}) {
    int other = -1;
    winsize size{.ws_row = rows, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    int own = -1;
    EXPECT_EQ(openpty(&own, &other, nullptr, nullptr, &size), 0);
    terminal_ = FileDescriptor(own);
    program_side_ = FileDescriptor(other);
    EXPECT_EQ(tcgetattr(other, &before_), 0);
    int ends[2] = {-1, -1};
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    end_ = FileDescriptor(ends[0]);
    const FileDescriptor kept_by_program(ends[1]);
    pid_ = fork();
    if (pid_ == 0) {
      fcntl(kept_by_program.get(), F_SETFD, 0);
      setsid();
      ioctl(other, TIOCSCTTY, 0);
      for (const int stream : {0, 1, 2}) dup2(other, stream);
      setenv("TERM", "xterm", 1);
      setenv("LC_ALL", "C.UTF-8", 1);
      setenv("TENON_RUN_DIR", (folder_ / "run").c_str(), 1);
      setenv("TENON_STATE_DIR", state.empty() ? (folder_ / "state").c_str() : state.c_str(), 1);
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
  }
  OnTerminal(const OnTerminal&) = delete;
  OnTerminal& operator=(const OnTerminal&) = delete;

  // Reads until |text| has come; what came so far, which ends there or, if it never comes, with the program.
  std::string until(const std::string& text) {
    std::size_t found = std::string::npos;
    while ((found = seen_.find(text)) == std::string::npos)
      if (!read_more()) return std::exchange(seen_, "");
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
  // Waits for the end, reading on: a program whose output nobody takes would not come to it.
  int status() {
    while (read_more()) {
    }
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
  // More of what the program writes, waiting for it; false when it has ended and all is read.
  bool read_more() {
    pollfd events[2] = {{terminal_.get(), POLLIN, 0}, {end_.get(), POLLIN, 0}};
    poll(events, 2, -1);
    if (events[1].revents != 0) poll(events, 1, 0);  // it may have written between the looks at the one and at the other
    if ((events[0].revents & POLLIN) == 0) return false;
    std::array<char, 4096> part{};
    const ssize_t got = read(terminal_.get(), part.data(), part.size());
    if (got > 0) seen_.append(part.data(), static_cast<std::size_t>(got));
    return got > 0;
  }

  test::TemporaryFolder folder_;
  FileDescriptor terminal_, program_side_, end_;  // the last ends with the program
  termios before_{};
  pid_t pid_ = -1;
  std::string seen_;
};

}  // namespace tenon

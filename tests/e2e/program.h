// A program that runs beside the test, with its standard streams in the test's hands.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "base/system/file_descriptor.h"

namespace tenon::testing {

class Program {
 public:
  Program(std::vector<std::string> words, const std::vector<std::pair<std::string, std::string>>& variables) {
    int in[2], out[2], err[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) std::abort();
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(in[0], 0);
      dup2(out[1], 1);
      dup2(err[1], 2);
      unsetenv("TENON_LEASE");
      for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
      execvp(arguments[0], arguments.data());
      _exit(127);
    }
    for (const int end : {in[0], out[1], err[1]}) close(end);
    in_ = FileDescriptor(in[1]);
    out_ = FileDescriptor(out[0]);
    err_ = FileDescriptor(err[0]);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  // The next line, waiting for it; what is left when the stream has ended.
  std::string out_line() { return line(out_, out_rest_); }
  std::string err_line() { return line(err_, err_rest_); }
  std::string all_out() { return all(out_, out_rest_); }
  std::string all_err() { return all(err_, err_rest_); }
  void end_input() { in_ = FileDescriptor(); }
  void send(int signal) const { ::kill(pid_, signal); }
  pid_t pid() const noexcept { return pid_; }
  // Waits for the end; 128 + signal where one ended it.
  int exit_status() {
    int status = 0;
    waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }

 private:
  static bool fill(const FileDescriptor& fd, std::string& rest) {
    char buffer[4096];
    const ssize_t got = read(fd.get(), buffer, sizeof buffer);
    if (got > 0) rest.append(buffer, static_cast<std::size_t>(got));
    return got > 0;
  }
  static std::string line(const FileDescriptor& fd, std::string& rest) {
    std::size_t end = 0;
    while ((end = rest.find('\n')) == std::string::npos)
      if (!fill(fd, rest)) return std::exchange(rest, "");
    std::string text = rest.substr(0, end);
    rest.erase(0, end + 1);
    return text;
  }
  static std::string all(const FileDescriptor& fd, std::string& rest) {
    while (fill(fd, rest)) {
    }
    return std::exchange(rest, "");
  }

  pid_t pid_ = -1;
  FileDescriptor in_, out_, err_;
  std::string out_rest_, err_rest_;
};

}  // namespace tenon::testing

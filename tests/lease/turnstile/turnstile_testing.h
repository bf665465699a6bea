// A directory that goes away with the test, and processes that enter a turnstile and can be killed.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/system/file_descriptor.h"
#include "temporary_folder.h"

namespace tenon::testing {

class Client {
 public:
  // |launcher|: put in front of the program, e.g. unshare(1) with its options.
  Client(const std::string& directory, const std::string& device, const std::vector<std::string>& launcher = {}) {
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) std::abort();
    std::vector<std::string> words = launcher;
    words.insert(words.end(), {TURNSTILE_CLIENT, directory, device});
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(in[0], 0);
      dup2(out[1], 1);
      execvp(arguments[0], arguments.data());
      _exit(127);
    }
    close(in[0]);
    close(out[1]);
    in_ = FileDescriptor(in[1]);
    out_ = FileDescriptor(out[0]);
  }
  Client(Client&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)),
        in_(std::move(other.in_)),
        out_(std::move(other.out_)),
        rest_(std::move(other.rest_)) {}
  Client& operator=(Client&& other) noexcept {
    std::swap(pid_, other.pid_);
    std::swap(in_, other.in_);
    std::swap(out_, other.out_);
    std::swap(rest_, other.rest_);
    return *this;
  }
  ~Client() { kill(); }

  void tell(const std::string& line) {
    const std::string text = line + "\n";
    if (write(in_.get(), text.data(), text.size()) < 0) ADD_FAILURE() << "the client is gone: " << line;
  }
  // The next line, waiting for it; "" when the client has gone or says nothing for a minute.
  std::string hear() {
    for (;;) {
      if (const std::size_t end = rest_.find('\n'); end != std::string::npos) {
        std::string line = rest_.substr(0, end);
        rest_.erase(0, end + 1);
        return line;
      }
      pollfd events{out_.get(), POLLIN, 0};
      if (poll(&events, 1, 60'000) == 0) {
        ADD_FAILURE() << "the client says nothing";
        return "";
      }
      char buffer[256];
      const ssize_t got = read(out_.get(), buffer, sizeof buffer);
      if (got <= 0) return "";
      rest_.append(buffer, static_cast<std::size_t>(got));
    }
  }
  std::string ask(const std::string& line) {
    tell(line);
    return hear();
  }
  // Nothing said yet, and nothing on the way.
  bool is_silent() {
    pollfd events{out_.get(), POLLIN, 0};
    return rest_.empty() && poll(&events, 1, 0) == 0;
  }
  pid_t pid() const { return pid_; }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_ = -1;
  FileDescriptor in_, out_;
  std::string rest_;
};

}  // namespace tenon::testing

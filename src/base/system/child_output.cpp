#include "base/system/child_output.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

extern char** environ;

namespace tenon {
namespace {

// A list of ten thousand nodes with what each has takes about 8 MB.
constexpr std::size_t kMaxOutput = std::size_t{32} << 20;

pid_t start(const std::vector<std::string>& command, int output) {
  std::vector<char*> arguments;
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  // A group of its own, so that what the tool starts can be ended with it.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t child = -1;
  const int error = posix_spawnp(&child, arguments[0], &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error == 0 ? child : -1;
}

// False if the time limit passed or there was too much output.
bool read_all(int input, std::chrono::steady_clock::time_point deadline, std::string& output) {
  char block[4096];
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0 || output.size() > kMaxOutput) return false;
    pollfd wait{.fd = input, .events = POLLIN, .revents = 0};
    const int ready = poll(&wait, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno != EINTR) return false;
    if (ready <= 0) continue;
    const ssize_t got = read(input, block, sizeof block);
    if (got == 0) return true;
    if (got < 0 && errno != EINTR) return false;
    if (got > 0) output.append(block, static_cast<std::size_t>(got));
  }
}

// A child may close its output and go on.
bool has_exited(pid_t child, std::chrono::steady_clock::time_point deadline) {
  const int process = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
  if (process < 0) return false;
  int ready = 0;
  do {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd wait{.fd = process, .events = POLLIN, .revents = 0};
    ready = poll(&wait, 1, static_cast<int>(std::max<std::int64_t>(0, left.count())));
  } while (ready < 0 && errno == EINTR);
  close(process);
  return ready == 1;
}

}  // namespace

std::optional<std::string> child_output(const std::vector<std::string>& command, std::chrono::milliseconds limit) {
  int ends[2];
  if (command.empty() || pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  const pid_t child = start(command, ends[1]);
  close(ends[1]);
  std::string output;
  const auto deadline = std::chrono::steady_clock::now() + limit;
  bool complete = child > 0 && read_all(ends[0], deadline, output);
  close(ends[0]);
  if (child <= 0) return std::nullopt;
  complete = complete && has_exited(child, deadline);
  if (!complete) kill(-child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!complete || !WIFEXITED(status) || WEXITSTATUS(status) != 0) return std::nullopt;
  return output;
}

}  // namespace tenon

#include "hal/worker/parent/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "hal/worker/channel.h"
#include "tenon/error.h"

extern char** environ;

namespace tenon {

ChildProcess::ChildProcess(pid_t pid) : pid_(pid), fd_(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))) {}

void ChildProcess::send_stop(std::uint32_t request) const noexcept {
  siginfo_t info{};
  info.si_signo = kStopSignal;
  info.si_code = SI_QUEUE;
  info.si_pid = getpid();
  info.si_uid = getuid();
  info.si_value.sival_int = static_cast<int>(request);
  if (fd_) syscall(SYS_pidfd_send_signal, fd_.get(), kStopSignal, &info, 0);
}

bool ChildProcess::kill_now() const noexcept {
  return fd_ && syscall(SYS_pidfd_send_signal, fd_.get(), SIGKILL, nullptr, 0) == 0;
}

bool ChildProcess::is_running() const noexcept {
  pollfd watched{fd_.get(), POLLIN, 0};
  return pid_ >= 0 && fd_ && poll(&watched, 1, 0) == 0;
}

std::string ChildProcess::end(int milliseconds) noexcept {
  if (pid_ < 0) return ended_;
  pollfd watched{fd_.get(), POLLIN, 0};
  if (!fd_ || poll(&watched, 1, milliseconds) <= 0) kill(pid_, SIGKILL);
  int status = 0;
  pid_t waited;
  do waited = waitpid(pid_, &status, 0);
  while (waited < 0 && errno == EINTR);
  // Another part of the program may have waited for all children.
  if (waited < 0)
    ended_ = "ended";
  else if (WIFSIGNALED(status))
    ended_ = fmt::format("was killed by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  else
    ended_ = fmt::format("exited with status {}", WEXITSTATUS(status));
  pid_ = -1;
  return ended_;
}

namespace {

std::vector<std::string> child_environment(const std::map<std::string, std::string>& more) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    if (!more.contains(text.substr(0, text.find('=')))) all.push_back(text);
  }
  for (const auto& [key, value] : more)
    if (!value.empty()) all.push_back(key + "=" + value);
  return all;
}

struct SpawnSettings {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  SpawnSettings() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
};

}  // namespace

ChildProcess spawn(std::vector<std::string> command, int socket, std::map<std::string, std::string> more) {
  more["TENON_WORKER_OF"] = fmt::format("{}", getpid());
  std::vector<std::string> environment = child_environment(more);
  std::vector<char*> entries;
  for (std::string& entry : environment) entries.push_back(entry.data());
  entries.push_back(nullptr);

  SpawnSettings settings;
  posix_spawn_file_actions_addopen(&settings.actions, 0, "/dev/null", O_RDONLY, 0);
  // The output of a runtime must not be mixed with the program's results.
  posix_spawn_file_actions_adddup2(&settings.actions, 2, 1);
  // The socket is never descriptor 3 itself (see below), which would keep its close-on-exec flag.
  posix_spawn_file_actions_adddup2(&settings.actions, socket, kWorkerSocket);
  posix_spawn_file_actions_addclosefrom_np(&settings.actions, kWorkerSocket + 1);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&settings.attributes, &none);
  posix_spawnattr_setsigdefault(&settings.attributes, &all);
  posix_spawnattr_setflags(&settings.attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);

  std::vector<char*> arguments;
  for (std::string& part : command) arguments.push_back(part.data());
  arguments.push_back(nullptr);
  pid_t pid = -1;
  const int error =
      posix_spawn(&pid, command[0].c_str(), &settings.actions, &settings.attributes, arguments.data(), entries.data());
  if (error != 0)
    throw Error(ErrorCode::unavailable, fmt::format("cannot start the worker program {}: {}", command[0], std::strerror(error)));
  return ChildProcess(pid);
}

}  // namespace tenon

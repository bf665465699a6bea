#include "cli/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "base/system/file_descriptor.h"
#include "tenon/error.h"

namespace tenon::cli {
namespace {

// Only calls that are safe after a fork.
[[noreturn]] void become(char* const* arguments, const sigset_t& mask, pid_t parent, int report_to) {
  // The kernel sends this when the parent dies, whatever killed it. If that happened already, it never will.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(128 + SIGKILL);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  execvp(arguments[0], arguments);
  const int error = errno;
  if (write(report_to, &error, sizeof error) < 0) _exit(126);
  _exit(127);
}

// execvp() says "permission denied" also where a folder of PATH cannot be searched and no other has the command.
bool is_there(const std::string& command) {
  if (command.find('/') != std::string::npos) return true;
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path ? path : "/bin:/usr/bin");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (access((folder.empty() ? command : folder + "/" + command).c_str(), F_OK) == 0) return true;
  return false;
}

void pass_on(const siginfo_t& signal, pid_t child) {
  // The terminal sends to the whole foreground group, so the child has these already.
  const bool is_from_kernel = signal.si_code == SI_KERNEL;
  if (!is_from_kernel) kill(child, signal.si_signo);
}

// Nothing while the child lives.
bool has_ended(pid_t child, ChildOutcome& outcome) {
  for (;;) {
    int status = 0;
    const pid_t changed = waitpid(child, &status, WNOHANG | WUNTRACED);
    if (changed < 0 && errno == EINTR) continue;
    if (changed != child) return false;
    if (WIFSTOPPED(status)) {
      // The shell sees this process stop, and continues it.
      raise(SIGSTOP);
      kill(child, SIGCONT);
      continue;
    }
    outcome.was_killed = WIFSIGNALED(status);
    outcome.exit_status = outcome.was_killed ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return true;
  }
}

}  // namespace

ChildOutcome run_child(const std::vector<std::string>& command,
                       const std::vector<std::pair<std::string, std::string>>& variables) {
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> arguments;
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);

  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw Error(ErrorCode::resource_exhausted, fmt::format("cannot create a pipe: {}", std::strerror(errno)));
  const FileDescriptor read_end(ends[0]);
  FileDescriptor write_end(ends[1]);

  // From here on signals wait until they can be passed on.
  sigset_t all{}, previous{};
  sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) sigdelset(&all, fault);
  sigprocmask(SIG_BLOCK, &all, &previous);
  const pid_t self = getpid();
  const pid_t child = fork();
  if (child == 0) become(arguments.data(), previous, self, write_end.get());
  const int fork_error = errno;
  write_end = FileDescriptor();
  if (child < 0) {
    sigprocmask(SIG_SETMASK, &previous, nullptr);
    throw Error(ErrorCode::resource_exhausted, fmt::format("cannot start a process: {}", std::strerror(fork_error)));
  }

  int error = 0;
  ssize_t reported = 0;
  do reported = read(read_end.get(), &error, sizeof error);
  while (reported < 0 && errno == EINTR);
  ChildOutcome outcome;
  while (!has_ended(child, outcome)) {
    siginfo_t signal{};
    if (sigwaitinfo(&all, &signal) > 0 && signal.si_signo != SIGCHLD) pass_on(signal, child);
  }
  sigprocmask(SIG_SETMASK, &previous, nullptr);
  if (reported == sizeof error && error == EACCES && !is_there(command[0])) error = ENOENT;
  if (reported == sizeof error)
    throw Error(error == ENOENT   ? ErrorCode::not_found
                : error == EACCES ? ErrorCode::permission_denied
                                  : ErrorCode::unknown,
                fmt::format("cannot run '{}': {}", command[0], std::strerror(error)));
  return outcome;
}

}  // namespace tenon::cli

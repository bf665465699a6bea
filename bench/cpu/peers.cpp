#include "cpu/peers.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <sstream>

extern char** environ;

namespace bench {

Peers::Peers(const std::string& python, const std::string& script, int threads) {
  missing_ = "numpy, numexpr, torch (no peers process)";
  if (python.empty()) return;
  int to_child[2], from_child[2];
  if (pipe2(to_child, O_CLOEXEC) != 0 || pipe2(from_child, O_CLOEXEC) != 0) return;
  // A child that ends early is noticed when its answer is read, not by the signal of a broken pipe.
  std::signal(SIGPIPE, SIG_IGN);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to_child[0], 0);
  posix_spawn_file_actions_adddup2(&actions, from_child[1], 1);
  const std::string count = std::to_string(threads);
  const char* arguments[] = {python.c_str(), script.c_str(), count.c_str(), nullptr};
  const int error = posix_spawnp(&pid_, python.c_str(), &actions, nullptr, const_cast<char**>(arguments), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(to_child[0]);
  close(from_child[1]);
  to_ = fdopen(to_child[1], "w");
  from_ = fdopen(from_child[0], "r");
  if (error != 0) {
    pid_ = -1;
    return;
  }

  // Three lines: names, versions, what is missing.
  std::istringstream names(read_line());
  for (std::string name; names >> name;) names_.push_back(name);
  versions_ = read_line();
  if (!names_.empty() || !versions_.empty()) missing_ = read_line();
}

Peers::~Peers() {
  if (to_ != nullptr) std::fclose(to_);
  if (from_ != nullptr) std::fclose(from_);
  if (pid_ > 0) waitpid(pid_, nullptr, 0);
}

double Peers::measure(const std::string& peer, const std::string& op, std::int64_t size, int calls) {
  std::fprintf(to_, "%s %s %lld %d\n", peer.c_str(), op.c_str(), static_cast<long long>(size), calls);
  std::fflush(to_);
  const std::string answer = read_line();
  return answer.empty() ? -1 : std::strtod(answer.c_str(), nullptr);
}

std::string Peers::read_line() {
  std::string line;
  for (int c; (c = std::fgetc(from_)) != EOF && c != '\n';) line += static_cast<char>(c);
  return line;
}

}  // namespace bench

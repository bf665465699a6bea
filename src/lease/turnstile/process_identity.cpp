#include "lease/turnstile/process_identity.h"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <sstream>

#include "base/threads/fork_mutex.h"

namespace tenon {
namespace {

constexpr std::size_t kMaxCommand = 159;

std::string read_file(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string command_line() {
  std::string text = read_file("/proc/self/cmdline");
  while (!text.empty() && text.back() == '\0') text.pop_back();
  std::replace(text.begin(), text.end(), '\0', ' ');
  // The program's name says more than the directory it lies in.
  const std::size_t program_end = std::min(text.find(' '), text.size());
  if (const std::size_t slash = text.rfind('/', program_end); slash != std::string::npos && slash < program_end)
    text.erase(0, slash + 1);
  return text.substr(0, kMaxCommand);
}

std::uint64_t start_ticks() {
  const std::string stat = read_file("/proc/self/stat");
  // The second field is a name in parentheses that may hold anything; the start time is the 22nd.
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(stat.substr(name_end + 1));
  std::string field;
  for (int i = 3; i <= 21; ++i) fields >> field;
  std::uint64_t ticks = 0;
  fields >> ticks;
  return ticks;
}

ProcessIdentity find_identity() {
  ProcessIdentity identity;
  identity.pid = getpid();
  identity.uid = geteuid();
  struct stat info{};
  if (stat("/proc/self/ns/pid", &info) == 0) identity.pid_namespace = info.st_ino;
  identity.start_ticks = start_ticks();
  identity.boot_id = read_file("/proc/sys/kernel/random/boot_id").substr(0, 36);
  identity.command = command_line();
  return identity;
}

}  // namespace

const ProcessIdentity& ProcessIdentity::of_this_process() {
  // One entry for each pid this memory has lived under: a forked child finds its own, and references stay valid.
  static auto& mutex = *new ForkMutex;
  static std::map<pid_t, ProcessIdentity> identities;
  const std::lock_guard lock(mutex);
  const auto [entry, is_new] = identities.try_emplace(getpid());
  if (is_new) entry->second = find_identity();
  return entry->second;
}

std::string user_name(std::uint32_t uid) {
  std::array<char, 4096> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  if (getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr) return found->pw_name;
  return fmt::format("{}", uid);
}

}  // namespace tenon

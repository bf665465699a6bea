#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <string>
#include <system_error>

#include "array/host_memory.h"

namespace tenon::host_memory {
namespace {

constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();

// "max", a missing file and anything else that is no number mean: no limit here.
std::size_t read_number(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string word;
  if (!(in >> word)) return kUnlimited;
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc{} && end == word.data() + word.size() ? value : kUnlimited;
}

std::size_t machine_memory(const std::filesystem::path& root) {
  std::ifstream in(root / "proc/meminfo");
  std::string key;
  std::size_t kib = 0;
  while (in >> key >> kib) {
    if (key == "MemTotal:") return kib << 10;
    in.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return kUnlimited;
}

// A group is bound by its ancestors too. Inside a container the path is often that of the outer world and does not
// exist; the walk up then ends at the mount, which is the container's own group.
std::size_t group_limit(const std::filesystem::path& mount, std::filesystem::path group, const char* file) {
  std::size_t limit = kUnlimited;
  for (;; group = group.parent_path()) {
    limit = std::min(limit, read_number(mount / group / file));
    if (group.empty()) return limit;
  }
}

std::size_t control_group_limit(const std::filesystem::path& root) {
  std::ifstream in(root / "proc/self/cgroup");
  std::size_t limit = kUnlimited;
  for (std::string line; std::getline(in, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::filesystem::path group = std::filesystem::path(line.substr(second + 1)).relative_path();
    if (controllers == ",,") limit = std::min(limit, group_limit(root / "sys/fs/cgroup", group, "memory.max"));
    if (controllers.find(",memory,") != std::string::npos)
      limit = std::min(limit, group_limit(root / "sys/fs/cgroup/memory", group, "memory.limit_in_bytes"));
  }
  return limit;
}

}  // namespace

std::size_t read_memory_limit(const std::filesystem::path& root) {
  return std::min(machine_memory(root), control_group_limit(root));
}

std::size_t memory_limit() noexcept {
  static const std::size_t limit = [] {
    try {
      return read_memory_limit("/");
    } catch (...) {
      return kUnlimited;
    }
  }();
  return limit;
}

}  // namespace tenon::host_memory

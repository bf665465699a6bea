#include "base/system/memory_limit.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <string>
#include <system_error>

namespace tenon {
namespace {

constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();

// "max", a missing file and anything else that is not a number mean that there is no limit at this level.
std::size_t read_number(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string word;
  if (!(in >> word)) return kUnlimited;
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc{} && end == word.data() + word.size() ? value : kUnlimited;
}

std::size_t machine_memory(const std::filesystem::path& root, std::string_view wanted) {
  std::ifstream in(root / "proc/meminfo");
  std::string key;
  std::size_t kib = 0;
  while (in >> key >> kib) {
    if (key == wanted) return kib << 10;
    in.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return kUnlimited;
}

// The file names of a limit and of its usage, in the two versions of control groups.
struct Files {
  const char* limit;
  const char* used;
};
constexpr Files kVersion2{"memory.max", "memory.current"};
constexpr Files kVersion1{"memory.limit_in_bytes", "memory.usage_in_bytes"};

std::size_t limit_of(const std::filesystem::path& group, const Files& files) { return read_number(group / files.limit); }

std::size_t left_of(const std::filesystem::path& group, const Files& files) {
  const std::size_t limit = read_number(group / files.limit), used = read_number(group / files.used);
  if (limit == kUnlimited || used == kUnlimited) return limit;
  return limit - std::min(limit, used);
}

using Measure = std::size_t (*)(const std::filesystem::path&, const Files&);

// A group is also limited by its ancestors. Inside a container the path is often that of the host and does not
// exist; the walk up then ends at the mount point, which is the container's own group.
std::size_t lowest(const std::filesystem::path& mount, std::filesystem::path group, const Files& files, Measure measure) {
  std::size_t found = kUnlimited;
  for (;; group = group.parent_path()) {
    found = std::min(found, measure(mount / group, files));
    if (group.empty()) return found;
  }
}

std::size_t control_group(const std::filesystem::path& root, Measure measure) {
  std::ifstream in(root / "proc/self/cgroup");
  std::size_t found = kUnlimited;
  for (std::string line; std::getline(in, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::filesystem::path group = std::filesystem::path(line.substr(second + 1)).relative_path();
    if (controllers == ",,") found = std::min(found, lowest(root / "sys/fs/cgroup", group, kVersion2, measure));
    if (controllers.find(",memory,") != std::string::npos)
      found = std::min(found, lowest(root / "sys/fs/cgroup/memory", group, kVersion1, measure));
  }
  return found;
}

}  // namespace

std::size_t read_memory_limit(const std::filesystem::path& root) {
  return std::min(machine_memory(root, "MemTotal:"), control_group(root, limit_of));
}

std::size_t read_memory_available(const std::filesystem::path& root) {
  return std::min(machine_memory(root, "MemAvailable:"), control_group(root, left_of));
}

}  // namespace tenon

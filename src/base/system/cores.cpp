#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/threads/thread_pool.h"

namespace tenon {
namespace {

constexpr double kNoQuota = std::numeric_limits<double>::infinity();

double quota_of(double quota, double period) { return quota > 0 && period > 0 ? quota / period : kNoQuota; }

double read_number(const std::filesystem::path& file) {
  std::ifstream in(file);
  double value = 0;
  return in >> value ? value : 0;
}

// "200000 100000", or "max 100000" for no limit.
double quota_v2(const std::filesystem::path& group) {
  std::ifstream in(group / "cpu.max");
  std::string quota;
  double period = 0;
  if (!(in >> quota >> period) || quota == "max") return kNoQuota;
  std::istringstream number(quota);
  double value = 0;
  return number >> value ? quota_of(value, period) : kNoQuota;
}

double quota_v1(const std::filesystem::path& group) {
  return quota_of(read_number(group / "cpu.cfs_quota_us"), read_number(group / "cpu.cfs_period_us"));
}

// The limits of all ancestor groups apply to the process too. Levels that the container cannot see are missing.
template <class Quota>
double lowest_on_the_way_up(const std::filesystem::path& mount, const std::filesystem::path& group, Quota&& quota) {
  double lowest = quota(mount);
  std::filesystem::path level = mount;
  for (const auto& part : group.relative_path()) {
    if (part == ".." || part == "." || part.empty()) continue;
    level /= part;
    lowest = std::min(lowest, quota(level));
  }
  return lowest;
}

bool names_cpu_controller(std::string_view controllers) {
  while (!controllers.empty()) {
    const auto comma = controllers.find(',');
    if (controllers.substr(0, comma) == "cpu") return true;
    if (comma == std::string_view::npos) break;
    controllers.remove_prefix(comma + 1);
  }
  return false;
}

double cgroup_quota(const std::filesystem::path& root) {
  const auto mount = root / "sys/fs/cgroup";
  std::ifstream memberships(root / "proc/self/cgroup");
  double lowest = kNoQuota;
  for (std::string line; std::getline(memberships, line);) {  // id:controllers:path
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) {
      lowest = std::min(lowest, lowest_on_the_way_up(mount, group, quota_v2));
    } else if (names_cpu_controller(controllers)) {
      for (const auto& hierarchy : {controllers, std::string("cpu")})
        lowest = std::min(lowest, lowest_on_the_way_up(mount / hierarchy, group, quota_v1));
    }
  }
  return lowest;
}

int cores_in_affinity_mask() {
  // The kernel refuses masks shorter than its own, and machines with more than 1024 cores exist.
  for (std::size_t cores = 1024; cores <= 65536; cores *= 2) {
    std::vector<cpu_set_t> mask(cores / (8 * sizeof(cpu_set_t)));
    const std::size_t bytes = mask.size() * sizeof(cpu_set_t);
    if (sched_getaffinity(0, bytes, mask.data()) == 0) return std::max(1, CPU_COUNT_S(bytes, mask.data()));
    if (errno != EINVAL) break;
  }
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace

int usable_cores(const std::filesystem::path& root, int affinity) {
  const double quota = cgroup_quota(root);
  if (quota >= affinity) return std::max(1, affinity);
  return std::max(1, static_cast<int>(std::ceil(quota)));
}

int usable_cores() { return usable_cores("/", cores_in_affinity_mask()); }

}  // namespace tenon

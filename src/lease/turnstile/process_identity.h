// ProcessIdentity: identifies a process to other processes, including those in other containers.
//
// A pid alone is ambiguous: another namespace has its own process 7, and pids are reused. Together with the namespace, the boot
// and the start time it is unique.
#pragma once

#include <cstdint>
#include <string>

namespace tenon {

struct ProcessIdentity {
  std::int32_t pid = 0;  // as the process itself sees it
  std::uint32_t uid = 0;
  std::uint64_t pid_namespace = 0;  // inode; 0 if /proc does not provide it
  std::uint64_t start_ticks = 0;    // since boot, in clock ticks
  std::string boot_id;
  std::string command;  // the command line, shortened

  static const ProcessIdentity& of_this_process();
};

// The name of a user, or the number if there is no name.
std::string user_name(std::uint32_t uid);

}  // namespace tenon

// ProcessIdentity: who a process is, as it can be told to other processes, in other containers too.
//
// A pid alone names nobody: another namespace has its own process 7, and numbers come round again. With the namespace, the boot
// and the start time it does.
#pragma once

#include <cstdint>
#include <string>

namespace tenon {

struct ProcessIdentity {
  std::int32_t pid = 0;  // as the process itself sees it
  std::uint32_t uid = 0;
  std::uint64_t pid_namespace = 0;  // inode; 0 when /proc does not tell
  std::uint64_t start_ticks = 0;    // since boot, in clock ticks
  std::string boot_id;
  std::string command;  // the command line, shortened

  static const ProcessIdentity& of_this_process();
};

// The name of a user, or the number where it has none.
std::string user_name(std::uint32_t uid);

}  // namespace tenon

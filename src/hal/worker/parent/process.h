// ChildProcess: the process of a worker, from its start until it is reaped.
//
// Lifetime: its destructor kills the process. Thread safety: end() by one thread at a time; the others by any.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/system/file_descriptor.h"

namespace tenon {

class ChildProcess {
 public:
  ChildProcess() = default;
  explicit ChildProcess(pid_t pid);
  ChildProcess(ChildProcess&& other) noexcept : pid_(std::exchange(other.pid_, -1)), fd_(std::move(other.fd_)) {}
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess() { end(0); }

  // Whoever talks to a killed process finds it gone.
  void send_stop(std::uint32_t request) const noexcept;
  bool kill_now() const noexcept;
  bool is_running() const noexcept;

  // Waits this long for the process to exit, then kills it, and reaps it. Returns how it ended.
  std::string end(int milliseconds) noexcept;

 private:
  pid_t pid_ = -1;
  FileDescriptor fd_;
  std::string ended_;
};

// Starts |command|, the program and its arguments, with |socket| as kWorkerSocket, no other descriptors than the first three, and
// |more| added to the environment; a variable with an empty value is removed from it. Throws unavailable.
ChildProcess spawn(std::vector<std::string> command, int socket, std::map<std::string, std::string> more);

}  // namespace tenon

// FreedMemory: gives memory that requests have freed back to the system, so that it does not add up beside the server's limit.
//
// The C library keeps freed memory in a heap for each of the server's many threads. When the process holds much more than the
// gate has given out, and more than after the last time, the heaps are trimmed: once a second at most, in a thread that may wait.
// Process-wide, as the heaps are. Thread safety: all calls may run concurrently.
#pragma once

#include <atomic>
#include <cstdint>

namespace tenon::server {

class FreedMemory {
 public:
  // Whether a trim is worth its time, given what the gate has given out and its limit. True once; then trim() must be called.
  bool is_wanted(std::uint64_t used, std::uint64_t limit) noexcept;
  void trim() noexcept;

  static std::uint64_t resident_bytes() noexcept;  // of this process; 0 if unknown

 private:
  std::atomic<bool> is_trimming_{false};
  std::atomic<std::uint64_t> left_{0};  // resident after the last trim
};

}  // namespace tenon::server

// FreedMemory: gives memory that requests have freed back to the system, so that it does not add up beside the server's limit.
//
// The C library serves blocks below a threshold from heaps, one for each of many threads, and keeps what is freed there. Each
// time a large block is freed it raises the threshold, up to 32 MiB: the holes of a few requests then hold more than all requests
// have. tame_heaps() ends that. Small blocks still leave holes, so the heaps are trimmed while the process holds much more than
// the gate has given out, in a thread that may wait, less often when it does not help. Process-wide, as the heaps are. Thread
// safety: all calls may run concurrently.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace tenon::server {

class FreedMemory {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds kShortest{1}, kLongest{16};  // between two trims

  // Large blocks go back to the system when they are freed, and there are few heaps. Before threads start.
  static void tame_heaps() noexcept;

  // Whether a trim is due, given what the gate has given out and its limit. True once; then trim() must be called.
  bool is_wanted(std::uint64_t used, std::uint64_t limit, Time now) noexcept;
  void trim() noexcept;

  static std::uint64_t resident_bytes() noexcept;  // of this process; 0 if unknown

 private:
  std::atomic<bool> is_trimming_{false};
  // Of who trims.
  Time next_{};
  std::chrono::seconds pause_ = kShortest;
  std::uint64_t worthwhile_ = 0;  // bytes
};

}  // namespace tenon::server

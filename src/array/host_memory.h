// The memory of host arrays: a process-wide pool of reused blocks.
//
// A released block of 64 KiB or more is kept and reused for a request of its size class (at most 12.5 % larger than
// requested), so a result of the size of an earlier one costs no system call and no page fault. Blocks of 2 MiB and
// more are mapped individually, aligned to 2 MiB, with huge pages requested. The kept memory is bounded; the oldest
// blocks are returned to the system first.
//
// Lifetime: the pool is never destroyed, so arrays of static duration may release during process exit.
// Thread safety: every function may be called from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>

namespace tenon::host_memory {

inline constexpr std::size_t kAlignment = 64;
inline constexpr std::size_t kPooledFrom = std::size_t{64} << 10;
inline constexpr std::size_t kMappedFrom = std::size_t{2} << 20;

// A block of at least |bytes| bytes (0 gives one byte), aligned to kAlignment, with undefined contents. Throws
// resource_exhausted naming the size if the arrays would exceed memory_limit(), before memory is requested from the
// system, or if the system refuses.
void* allocate(std::size_t bytes);
// Releases a block from allocate(); |bytes| is the size that was requested.
void release(void* block, std::size_t bytes) noexcept;

// A block that releases itself with its last owner.
std::shared_ptr<void> allocate_shared(std::size_t bytes);

struct Statistics {
  std::uint64_t allocations = 0;      // successful calls of allocate()
  std::uint64_t reuses = 0;           // of these, calls served from kept blocks
  std::uint64_t allocated_bytes = 0;  // sum of all requested sizes
  std::uint64_t in_use_bytes = 0;     // requested and not yet released
  std::uint64_t kept_bytes = 0;       // released and kept for reuse
  std::uint64_t kept_blocks = 0;
  std::uint64_t kept_limit_bytes = 0;
};
Statistics statistics() noexcept;

// The limit of kept bytes; blocks beyond it are freed at once. The default is a quarter of memory_limit(), at most 4 GiB.
void set_kept_limit(std::size_t bytes) noexcept;
// Frees every kept block.
void trim() noexcept;

// The memory available to this process: the machine's, or its control group's limit if that is smaller.
std::size_t memory_limit() noexcept;

// The size class of a request: itself below kPooledFrom, otherwise rounded up to a multiple of an eighth of the power
// of two below it.
constexpr std::size_t class_bytes(std::size_t bytes) noexcept {
  if (bytes < kPooledFrom) return bytes;
  int top = 0;
  for (std::size_t rest = bytes - 1; rest > 1; rest >>= 1) ++top;
  const std::size_t step = std::size_t{1} << (top - 3);
  return (bytes + step - 1) & ~(step - 1);
}

}  // namespace tenon::host_memory

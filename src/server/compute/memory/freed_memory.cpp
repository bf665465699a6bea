#include "server/compute/memory/freed_memory.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>

namespace tenon::server {

void FreedMemory::tame_heaps() noexcept {
#ifdef __GLIBC__
  // A block of 256 KiB costs 64 page faults, about 20 us: little beside what a request does with so much.
  mallopt(M_MMAP_THRESHOLD, 256 << 10);
  mallopt(M_ARENA_MAX, 4);
#endif
}

std::uint64_t FreedMemory::resident_bytes() noexcept {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen("/proc/self/statm", "re"),
                                                             [](std::FILE* f) { return f == nullptr ? 0 : std::fclose(f); });
  unsigned long long pages = 0;
  if (!file || std::fscanf(file.get(), "%*u %llu", &pages) != 1) return 0;
  return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

bool FreedMemory::is_wanted(std::uint64_t used, std::uint64_t limit, Time now) noexcept {
  if (is_trimming_.exchange(true)) return false;
  // What is below the sixteenth is the program itself and what it keeps for reuse.
  if (now < next_ || resident_bytes() < used + limit / 16) {
    is_trimming_ = false;
    return false;
  }
  next_ = now + pause_;
  worthwhile_ = limit / 32;
  return true;
}

void FreedMemory::trim() noexcept {
  const std::uint64_t before = resident_bytes();
#ifdef __GLIBC__
  malloc_trim(0);
#endif
  // The memory of devices, say, is no hole.
  const bool has_helped = resident_bytes() + worthwhile_ <= before;
  pause_ = has_helped ? kShortest : std::min(2 * pause_, kLongest);
  is_trimming_ = false;
}

}  // namespace tenon::server

#include "server/compute/freed_memory.h"

#include <malloc.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

namespace tenon::server {

std::uint64_t FreedMemory::resident_bytes() noexcept {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen("/proc/self/statm", "re"),
                                                             [](std::FILE* f) { return f == nullptr ? 0 : std::fclose(f); });
  unsigned long long pages = 0;
  if (!file || std::fscanf(file.get(), "%*u %llu", &pages) != 1) return 0;
  return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

bool FreedMemory::is_wanted(std::uint64_t used, std::uint64_t limit) noexcept {
  const std::uint64_t resident = resident_bytes();
  if (resident < used + limit / 16 || resident < left_ + limit / 32) return false;
  return !is_trimming_.exchange(true);
}

void FreedMemory::trim() noexcept {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
  left_ = resident_bytes();
  is_trimming_ = false;
}

}  // namespace tenon::server

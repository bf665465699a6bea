#include "base/memory_limit.h"

#include <limits>

#include "array/host_memory.h"

namespace tenon::host_memory {

std::size_t read_memory_limit(const std::filesystem::path& root) { return tenon::read_memory_limit(root); }

std::size_t memory_limit() noexcept {
  static const std::size_t limit = [] {
    try {
      return tenon::read_memory_limit("/");
    } catch (...) {
      return std::numeric_limits<std::size_t>::max();
    }
  }();
  return limit;
}

}  // namespace tenon::host_memory

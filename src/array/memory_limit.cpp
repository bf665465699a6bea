#include "base/system/memory_limit.h"

#include <limits>

#include "array/host_memory.h"

namespace tenon::host_memory {

std::size_t memory_limit() noexcept {
  static const std::size_t limit = [] {
    try {
      return read_memory_limit("/");
    } catch (...) {
      return std::numeric_limits<std::size_t>::max();
    }
  }();
  return limit;
}

}  // namespace tenon::host_memory

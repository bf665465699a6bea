#include "server/compute/memory_gate.h"

#include "base/units.h"
#include "server/http/problem.h"

namespace tenon::server {

MemoryGate::Share MemoryGate::take(std::uint64_t bytes) {
  reserve(bytes);
  return {this, bytes};
}

void MemoryGate::reserve(std::uint64_t bytes) {
  const std::uint64_t before = used_.fetch_add(bytes, std::memory_order_relaxed);
  if (before + bytes > limit_ || before + bytes < before) {
    used_.fetch_sub(bytes, std::memory_order_relaxed);
    throw Problem(503, "overloaded", "the server's memory for requests is used up", "try again in a moment").with_retry(1);
  }
}

}  // namespace tenon::server

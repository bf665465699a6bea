// KeptMemory: bounds what the pool of host arrays keeps for reuse while a server lives, so that memory which no request has any
// more stays small beside the server's limit. Process-wide, as the pool is; what was set before comes back at the end.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "array/host_memory.h"

namespace tenon::server {

class KeptMemory {
 public:
  explicit KeptMemory(std::uint64_t bytes) : before_(host_memory::statistics().kept_limit_bytes) {
    host_memory::set_kept_limit(std::min<std::size_t>(before_, bytes));
  }
  ~KeptMemory() { host_memory::set_kept_limit(before_); }
  KeptMemory(const KeptMemory&) = delete;
  KeptMemory& operator=(const KeptMemory&) = delete;

 private:
  const std::size_t before_;
};

}  // namespace tenon::server

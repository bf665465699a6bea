// ProgramCache: requests that were read before, by their whole text; LRU.
//
// Bounded by number and by bytes, graphs included. What it keeps counts as the server's own memory, not as that of the client who
// sent it first.
// A request is counted once, however often it is looked up: by find(), or by count_hit() where peek() was enough.
// Thread safety: all calls may run side by side.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "server/compute/program/compute_request.h"

namespace tenon::server {

class ProgramCache {
 public:
  static constexpr std::size_t kMaxPrograms = 512;
  static constexpr std::size_t kMaxTextBytes = 64 << 10;
  static constexpr std::uint64_t kMaxProgramBytes = 1 << 20;

  // At most an eighth of |gate|'s limit, and 64 MiB.
  explicit ProgramCache(MemoryGate& gate);

  std::shared_ptr<const ComputeRequest> find(std::string_view text);
  // The same, uncounted.
  std::shared_ptr<const ComputeRequest> peek(std::string_view text);
  void count_hit();
  // Kept if it is small, the text says all there is to it and the gate has room. The caller must not have shared it yet: its
  // share becomes the server's.
  void keep(std::string_view text, const std::shared_ptr<ComputeRequest>& program);

  std::uint64_t hits() const;
  std::uint64_t misses() const;

 private:
  struct Entry {
    std::string text;
    std::shared_ptr<const ComputeRequest> program;
    std::uint64_t bytes = 0;
  };
  std::shared_ptr<const ComputeRequest> use(std::string_view text);  // with mutex_ held

  MemoryGate& gate_;
  const std::uint64_t max_bytes_;
  mutable std::mutex mutex_;
  std::uint64_t bytes_ = 0;
  std::list<Entry> recent_;
  std::unordered_map<std::string_view, std::list<Entry>::iterator> programs_;  // views of Entry::text
  std::uint64_t hits_ = 0, misses_ = 0;
};

}  // namespace tenon::server

// ProgramCache: requests that were read before, by their whole text; LRU.
//
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

#include "server/compute/program.h"

namespace tenon::server {

class ProgramCache {
 public:
  static constexpr std::size_t kMaxPrograms = 512;
  static constexpr std::size_t kMaxTextBytes = 64 << 10;
  static constexpr std::uint64_t kMaxProgramBytes = 1 << 20;

  std::shared_ptr<const Program> find(std::string_view text);
  // The same, uncounted.
  std::shared_ptr<const Program> peek(std::string_view text);
  void count_hit();
  // Kept if it is small and the text says all there is to it.
  void keep(std::string_view text, std::shared_ptr<const Program> program);

  std::uint64_t hits() const;
  std::uint64_t misses() const;

 private:
  struct Entry {
    std::string text;
    std::shared_ptr<const Program> program;
  };
  std::shared_ptr<const Program> use(std::string_view text);  // with mutex_ held

  mutable std::mutex mutex_;
  std::list<Entry> recent_;
  std::unordered_map<std::string_view, std::list<Entry>::iterator> programs_;  // views of Entry::text
  std::uint64_t hits_ = 0, misses_ = 0;
};

}  // namespace tenon::server

// ExecutableCache: the compiled programs of one opening of a device, by the keys of their graphs; LRU, bounded by number and by
// estimated bytes. The most recent one is always kept.
//
// Thread safety: all calls may run side by side.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "tenon/backend.h"

namespace tenon {

class ExecutableCache {
 public:
  static constexpr std::size_t kMaxExecutables = 64;
  static constexpr std::uint64_t kMaxBytes = std::uint64_t{256} << 20;
  std::shared_ptr<Executable> find(const GraphKey& key);
  // |graph| is what was compiled.
  void keep(const Graph& graph, std::shared_ptr<Executable> executable);
  void clear();

 private:
  struct Entry {
    GraphKey key;
    std::shared_ptr<Executable> executable;
    std::uint64_t bytes = 0;
  };
  std::mutex mutex_;
  std::uint64_t bytes_ = 0;
  std::list<Entry> recent_;  // most recently used first
  std::unordered_map<GraphKey, std::list<Entry>::iterator> entries_;
};

}  // namespace tenon

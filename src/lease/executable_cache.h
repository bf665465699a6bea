// ExecutableCache: the compiled programs of one opening of a device, by the keys of their graphs; LRU.
//
// Thread safety: all calls may run side by side.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "tenon/backend.h"

namespace tenon {

class ExecutableCache {
 public:
  static constexpr std::size_t kMaxExecutables = 64;
  std::shared_ptr<Executable> find(const GraphKey& key);
  void keep(const GraphKey& key, std::shared_ptr<Executable> executable);

 private:
  struct Entry {
    GraphKey key;
    std::shared_ptr<Executable> executable;
  };
  std::mutex mutex_;
  std::list<Entry> recent_;  // most recently used first
  std::unordered_map<GraphKey, std::list<Entry>::iterator> entries_;
};

}  // namespace tenon

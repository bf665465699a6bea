// ExecutableCache: compiled programs of one opening of a device; the least recently used goes first.
//
// Thread safety: all calls may run side by side.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "tenon/backend.h"

namespace tenon {

class ExecutableCache {
 public:
  static constexpr std::size_t kMaxExecutables = 64;
  std::shared_ptr<Executable> find(std::string_view key);
  void keep(std::string_view key, std::shared_ptr<Executable> executable);

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<Executable> executable;
  };
  std::mutex mutex_;
  std::list<Entry> recent_;                                                   // most recently used first
  std::unordered_map<std::string_view, std::list<Entry>::iterator> entries_;  // views of Entry::key
};

}  // namespace tenon

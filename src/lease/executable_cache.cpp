#include "lease/executable_cache.h"

namespace tenon {

std::shared_ptr<Executable> ExecutableCache::find(std::string_view key) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end()) return nullptr;
  recent_.splice(recent_.begin(), recent_, found->second);
  return found->second->executable;
}

void ExecutableCache::keep(std::string_view key, std::shared_ptr<Executable> executable) {
  const std::lock_guard lock(mutex_);
  if (entries_.contains(key)) return;
  recent_.push_front({std::string(key), std::move(executable)});
  entries_.emplace(recent_.front().key, recent_.begin());
  if (recent_.size() > kMaxExecutables) {
    entries_.erase(recent_.back().key);
    recent_.pop_back();
  }
}

}  // namespace tenon

#include "lease/executable_cache.h"

namespace tenon {

std::shared_ptr<Executable> ExecutableCache::find(const GraphKey& key) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end()) return nullptr;
  recent_.splice(recent_.begin(), recent_, found->second);
  return found->second->executable;
}

void ExecutableCache::keep(const GraphKey& key, std::shared_ptr<Executable> executable) {
  const std::lock_guard lock(mutex_);
  if (entries_.contains(key)) return;
  recent_.push_front({key, std::move(executable)});
  entries_.emplace(key, recent_.begin());
  if (recent_.size() > kMaxExecutables) {
    entries_.erase(recent_.back().key);
    recent_.pop_back();
  }
}

}  // namespace tenon

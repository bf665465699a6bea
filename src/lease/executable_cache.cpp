#include "lease/executable_cache.h"

#include <iterator>

namespace tenon {
namespace {

// The simplified graph, its plan, and constants.
std::uint64_t executable_bytes(const Graph& graph) {
  constexpr std::uint64_t kNodeBytes = 1024;
  std::uint64_t bytes = static_cast<std::uint64_t>(graph.size()) * kNodeBytes;
  for (NodeId id = 0; id < graph.size(); ++id)
    if (graph[id].prim == Prim::constant) bytes += graph[id].as<ConstantAttr>().value.bytes();
  return bytes;
}

}  // namespace

std::shared_ptr<Executable> ExecutableCache::find(const GraphKey& key) {
  const std::lock_guard lock(mutex_);
  if (!recent_.empty() && recent_.front().key == key) return recent_.front().executable;
  const auto found = entries_.find(key);
  if (found == entries_.end()) return nullptr;
  recent_.splice(recent_.begin(), recent_, found->second);
  return found->second->executable;
}

void ExecutableCache::keep(const Graph& graph, std::shared_ptr<Executable> executable) {
  const GraphKey key = graph.key();
  const std::uint64_t bytes = executable_bytes(graph);
  std::list<Entry> dropped;  // freed outside the lock
  const std::lock_guard lock(mutex_);
  if (entries_.contains(key)) return;
  recent_.push_front({key, std::move(executable), bytes});
  entries_.emplace(key, recent_.begin());
  bytes_ += bytes;
  while (recent_.size() > 1 && (recent_.size() > kMaxExecutables || bytes_ > kMaxBytes)) {
    entries_.erase(recent_.back().key);
    bytes_ -= recent_.back().bytes;
    dropped.splice(dropped.begin(), recent_, std::prev(recent_.end()));
  }
}

void ExecutableCache::clear() {
  std::list<Entry> dropped;
  const std::lock_guard lock(mutex_);
  dropped.swap(recent_);
  entries_.clear();
  bytes_ = 0;
}

}  // namespace tenon

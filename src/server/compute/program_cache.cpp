#include "server/compute/program_cache.h"

namespace tenon::server {

std::shared_ptr<const Program> ProgramCache::find(std::string_view text) {
  if (text.size() > kMaxTextBytes) return nullptr;
  const std::lock_guard lock(mutex_);
  const auto found = programs_.find(text);
  if (found == programs_.end()) {
    ++misses_;
    return nullptr;
  }
  ++hits_;
  recent_.splice(recent_.begin(), recent_, found->second);
  return found->second->program;
}

void ProgramCache::keep(std::string_view text, std::shared_ptr<const Program> program) {
  if (!program->is_repeatable || text.size() > kMaxTextBytes || program->memory_bytes > kMaxProgramBytes) return;
  Entry dropped;
  const std::lock_guard lock(mutex_);
  if (programs_.contains(text)) return;
  recent_.push_front({std::string(text), std::move(program)});
  programs_.emplace(recent_.front().text, recent_.begin());
  if (recent_.size() <= kMaxPrograms) return;
  programs_.erase(recent_.back().text);
  dropped = std::move(recent_.back());
  recent_.pop_back();
}

std::uint64_t ProgramCache::hits() const {
  const std::lock_guard lock(mutex_);
  return hits_;
}

std::uint64_t ProgramCache::misses() const {
  const std::lock_guard lock(mutex_);
  return misses_;
}

}  // namespace tenon::server

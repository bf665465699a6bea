#include "server/compute/program_cache.h"

namespace tenon::server {

std::shared_ptr<const Program> ProgramCache::use(std::string_view text) {
  if (text.size() > kMaxTextBytes) return nullptr;
  const auto found = programs_.find(text);
  if (found == programs_.end()) return nullptr;
  recent_.splice(recent_.begin(), recent_, found->second);
  return found->second->program;
}

std::shared_ptr<const Program> ProgramCache::find(std::string_view text) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const Program> program = use(text);
  ++(program ? hits_ : misses_);
  return program;
}

std::shared_ptr<const Program> ProgramCache::peek(std::string_view text) {
  const std::lock_guard lock(mutex_);
  return use(text);
}

void ProgramCache::count_hit() {
  const std::lock_guard lock(mutex_);
  ++hits_;
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

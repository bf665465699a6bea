#include "server/compute/program/program_cache.h"

#include <algorithm>

namespace tenon::server {
namespace {

constexpr std::uint64_t kEntryBytes = 1024;

}  // namespace

ProgramCache::ProgramCache(MemoryGate& gate)
    : gate_(gate),
      max_bytes_(std::min<std::uint64_t>(gate.limit() / 8, std::uint64_t{64} << 20)) {}

std::shared_ptr<const ComputeRequest> ProgramCache::use(std::string_view text) {
  if (text.size() > kMaxTextBytes) return nullptr;
  const auto found = programs_.find(text);
  if (found == programs_.end()) return nullptr;
  recent_.splice(recent_.begin(), recent_, found->second);
  return found->second->program;
}

std::shared_ptr<const ComputeRequest> ProgramCache::find(std::string_view text) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const ComputeRequest> program = use(text);
  ++(program ? hits_ : misses_);
  return program;
}

std::shared_ptr<const ComputeRequest> ProgramCache::peek(std::string_view text) {
  const std::lock_guard lock(mutex_);
  return use(text);
}

void ProgramCache::count_hit() {
  const std::lock_guard lock(mutex_);
  ++hits_;
}

void ProgramCache::keep(std::string_view text, const std::shared_ptr<ComputeRequest>& program) {
  const std::uint64_t bytes = program->held_bytes + text.size() * 2 + kEntryBytes;
  if (!program->is_repeatable || text.size() > kMaxTextBytes || bytes > std::min(kMaxProgramBytes, max_bytes_)) return;
  std::list<Entry> dropped;  // freed outside the lock
  const std::lock_guard lock(mutex_);
  if (programs_.contains(text)) return;
  while (!recent_.empty() && (recent_.size() >= kMaxPrograms || bytes_ + bytes > max_bytes_)) {
    programs_.erase(recent_.back().text);
    bytes_ -= recent_.back().bytes;
    dropped.splice(dropped.begin(), recent_, std::prev(recent_.end()));
  }
  std::optional<MemoryGate::Share> share = gate_.try_take(MemoryGate::kServer, bytes);
  if (!share) return;
  program->memory.clear();
  program->memory.push_back(std::move(*share));
  recent_.push_front({std::string(text), program, bytes});
  programs_.emplace(recent_.front().text, recent_.begin());
  bytes_ += bytes;
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

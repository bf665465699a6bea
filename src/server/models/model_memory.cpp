#include "server/models/model_memory.h"

#include <utility>

#include "base/threads/stop_scope.h"
#include "server/compute/program/estimates.h"
#include "server/http/problem.h"
#include "server/models/batching/batch_run.h"

namespace tenon::server {

void ModelMemory::add(std::uint64_t bytes) {
  while (true) {
    try {
      const std::lock_guard lock(mutex_);
      return tally_.add(bytes);
    } catch (const Problem&) {
      if (!make_room_()) throw;
    }
  }
}

std::uint64_t ModelMemory::bytes() const {
  const std::lock_guard lock(mutex_);
  return tally_.bytes();
}

ModelScope::ModelScope(const ProgramLimits& limits, const ClientMemory& memory, std::shared_ptr<ModelMemory> kept)
    : limits_(limits),
      kept_(std::move(kept)),
      nodes_(memory),
      values_(memory),
      results_(memory),
      graphs_([this](NodeId nodes) {
        check_stop();
        nodes_.grow_to(static_cast<std::uint64_t>(nodes) * kNodeBytes);
      }) {}

void ModelScope::keeps(std::uint64_t bytes) {
  check_stop();
  if (kept_) kept_->add(bytes);
}

void ModelScope::uses(std::uint64_t bytes) {
  check_stop();
  used_ += bytes;
  values_.grow_to(used_);
}

void ModelScope::runs(const Graph& program) {
  check_size(program, limits_);
  const std::uint64_t bytes = peak_bytes(program);
  check_memory(bytes, limits_);
  results_.grow_to(bytes);
}

}  // namespace tenon::server

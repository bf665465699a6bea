#include "backends/cpu/products/packed_weights.h"

#include "array/host_memory.h"

namespace tenon::cpu {

std::shared_ptr<const float> PackedWeights::get(const Key& key, int uses, std::int64_t elements,
                                                const std::function<bool(float*)>& make) {
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[key];
  if (entry.copy) return entry.copy;
  if (entry.is_refused || ++entry.uses < uses) return nullptr;
  const std::shared_ptr<void> memory =
      host_memory::allocate_shared(static_cast<std::size_t>(elements > 0 ? elements : 1) * sizeof(float));
  auto* const data = static_cast<float*>(memory.get());
  if (!make(data)) {
    entry.is_refused = true;
    return nullptr;
  }
  entry.copy = std::shared_ptr<const float>(memory, data);
  return entry.copy;
}

void PackedWeights::clear() {
  const std::lock_guard lock(mutex_);
  entries_.clear();
}

}  // namespace tenon::cpu

// PackingMemory: room for the packed operands of one product.
//
// It comes from the blocks that the process keeps for reuse (array/host_memory.h). Memory of each thread's own would be kept by
// all threads that ever computed a product, of which a server has many.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "array/host_memory.h"

namespace tenon::cpu {

// |OnStack| bytes of small operands are on the stack instead: the blocks have a lock.
template <std::size_t OnStack = 0>
class PackingMemory {
 public:
  PackingMemory() {}  // leaves the stack as it is
  ~PackingMemory() {
    if (memory_) host_memory::release(memory_, bytes_);
  }
  PackingMemory(const PackingMemory&) = delete;
  PackingMemory& operator=(const PackingMemory&) = delete;

  // Called once.
  template <class T>
  T* get(std::int64_t elements) {
    constexpr std::size_t kLarge = std::size_t{256} << 10, kPage = host_memory::kMappedFrom;
    std::size_t bytes = static_cast<std::size_t>(elements) * sizeof(T);
    if (bytes <= OnStack) return reinterpret_cast<T*>(stack_);
    if (bytes >= kLarge) bytes = (bytes + kPage - 1) / kPage * kPage;  // huge pages: one translation for all of a panel
    memory_ = host_memory::allocate(bytes);
    bytes_ = bytes;
    return static_cast<T*>(memory_);
  }

 private:
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
  alignas(64) std::byte stack_[std::max<std::size_t>(OnStack, 1)];
};

}  // namespace tenon::cpu

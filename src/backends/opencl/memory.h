// Memory of an OpenCL context.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "backends/opencl/api.h"

namespace tenon::opencl {

// What PoCL hands to kernels as it is; their vector loads want it aligned.
inline constexpr std::size_t kHostAlignment = 64;

// A memory object, released with its owner.
class Memory {
 public:
  Memory() = default;
  explicit Memory(MemoryId id) : id_(id) {}
  Memory(Memory&& other) noexcept : id_(std::exchange(other.id_, nullptr)) {}
  Memory& operator=(Memory&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  ~Memory() {
    if (id_) api().clReleaseMemObject(id_);
  }
  MemoryId get() const { return id_; }

 private:
  MemoryId id_ = nullptr;
};

// How many work-groups of the kernel that runs now are taken (KernelTarget::claims_groups), in memory that kernels and the host
// share. Every start of a kernel counts one more than it takes.
class Claims {
 public:
  explicit Claims(ContextId context);
  MemoryId memory() const { return memory_.get(); }
  void clear() { taken_.store(0); }
  std::int32_t taken() const { return taken_.load(std::memory_order_relaxed); }

 private:
  static_assert(sizeof(std::atomic<std::int32_t>) == 4 && std::atomic<std::int32_t>::is_always_lock_free);
  alignas(kHostAlignment) std::atomic<std::int32_t> taken_{0};
  Memory memory_;
};

}  // namespace tenon::opencl

// Memory of an OpenCL context.
#pragma once

#include <cstddef>
#include <utility>

#include "backends/opencl/api.h"

namespace tenon::opencl {

// PoCL passes this memory directly to kernels, whose vector loads require the alignment.
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

}  // namespace tenon::opencl

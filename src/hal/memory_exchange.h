// Memory of a device that other libraries of this process use in place, and theirs that the device uses: what DLPack needs below
// tensors. A Backend and an OpenDevice offer it by these interfaces, which callers find by dynamic_cast.
//
// Streams are given as in DLPack for CUDA: 1 is the legacy default stream, 2 the per-thread one, -1 no stream, others handles.
#pragma once

#include <cstdint>
#include <memory>

#include "tenon/array/dlpack.h"
#include "tenon/backend.h"

namespace tenon {

inline constexpr std::int64_t kDefaultStream = 1, kNoStream = -1;

// An OpenDevice in this process. Thread safety: all calls may run concurrently.
class MemoryExchange {
 public:
  // Memory that stays usable, also after the device has closed, until the last copy of |hold| is dropped, by any thread.
  struct Lent {
    void* address = nullptr;
    std::shared_ptr<void> hold;
  };

  virtual ~MemoryExchange() = default;
  virtual dlpack::Device place() const = 0;
  // Work that is submitted to |stream| from now on sees the content. What was submitted there before |hold| is dropped still
  // finds it.
  virtual Lent lend(std::shared_ptr<const Buffer> buffer, std::int64_t stream) = 0;
  // A buffer over row-major memory of another library, as it is after all work submitted to |stream| so far. |owner| is dropped
  // when the device no longer reads it. Null if the device cannot use this memory in place.
  virtual std::unique_ptr<Buffer> adopt(const TensorType& type, void* address, std::shared_ptr<const void> owner,
                                        std::int64_t stream) = 0;
};

// A Backend whose devices may be MemoryExchanges. Neither call opens a device.
class ExchangingBackend {
 public:
  virtual ~ExchangingBackend() = default;
  // Whether another library of this process uses |device| now: then a process of its own would not free it at its end.
  virtual bool is_used_here(const DeviceInfo& device) const = 0;
  // Whether |place| is |device|, and would be opened in this process.
  virtual bool is_at(const DeviceInfo& device, const dlpack::Device& place) const = 0;
};

}  // namespace tenon

// DirectCopies: copies between the card and pinned memory of the caller, one event for each that is under way.
//
// Used by a worker process, whose parent shares memory with it (hal/worker/window.h). The copies go to the context's stream.
// Thread safety: calls must not overlap.
#pragma once

#include <array>
#include <cstddef>

#include "backends/cuda/api.h"
#include "hal/worker/hosted.h"

namespace tenon::cuda {

class Context;

class DirectCopies {
 public:
  explicit DirectCopies(Context& context) : context_(context) {}

  void pin(std::byte* memory, std::size_t bytes);
  void unpin(std::byte* memory) noexcept;
  void start_upload(DevicePointer to, const std::byte* from, std::size_t bytes, int slot);
  void start_download(std::byte* to, DevicePointer from, std::size_t bytes, int slot);
  bool is_complete(int slot);
  void close(bool is_lost) noexcept;

 private:
  void record(int slot);

  Context& context_;
  std::array<RawEvent, DirectTransfers::kSlots> events_{};
};

}  // namespace tenon::cuda

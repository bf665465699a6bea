// Transfers: bytes between host memory and the card.
//
// Ordinary host memory cannot be read by the card, so everything goes through memory that can. Up to kSmallBytes through a few
// slots that stay: uploads return as soon as the bytes are in one, and so do uploads of up to kStagedBytes, which several threads
// copy. Larger transfers go in pieces through a second stream, several threads copying pieces while the card fetches those
// before. The staging memory is made when first needed. Thread safety: all calls may run side by side.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "backends/cuda/api.h"

namespace tenon::cuda {

class Context;

class Transfers {
 public:
  static constexpr std::size_t kSmallBytes = 64 << 10, kStagedBytes = 2 << 20;
  static constexpr std::size_t kPieceBytes = std::size_t{1} << 20;  // at most
  static constexpr int kPieces = 32;
  static constexpr int kSlots = 16;

  explicit Transfers(Context& context) : context_(context) {}

  // |from| may be reused when it returns. Later work in the stream sees the bytes.
  void upload(DevicePointer to, const std::byte* from, std::size_t bytes);
  // Sees what was in the stream before; blocks until the bytes are there.
  void download(std::byte* to, DevicePointer from, std::size_t bytes);

  // kSmallBytes of memory that the card can write; null when none is free.
  void* take_slot();
  void give_back_slot(void* slot) noexcept;

  // Frees the staging memory; |is_lost|: it is gone already.
  void close(bool is_lost) noexcept;

 private:
  struct Pieces;
  void make_small();
  void upload_small(DevicePointer to, const std::byte* from, std::size_t bytes);
  void upload_staged(DevicePointer to, const std::byte* from, std::size_t bytes);
  void upload_large(DevicePointer to, const std::byte* from, std::size_t bytes);
  void download_large(std::byte* to, DevicePointer from, std::size_t bytes);
  Pieces& pieces();
  void follow_stream(Pieces& pieces);
  void await_staged(Pieces& pieces);

  Context& context_;
  std::mutex small_mutex_, large_mutex_;
  std::byte* small_ = nullptr;  // the ring, then the slots
  std::size_t ring_used_ = 0;   // since the stream was last known to be empty; under the context's queue
  std::vector<void*> free_slots_;
  struct PiecesDeleter {
    void operator()(Pieces*) const noexcept;
  };
  std::unique_ptr<Pieces, PiecesDeleter> pieces_;
};

}  // namespace tenon::cuda

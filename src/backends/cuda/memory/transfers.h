// Transfers: copies bytes between host memory and the card.
//
// The card cannot access ordinary host memory, so all transfers go through pinned staging memory. Transfers of up to kSmallBytes
// use a few permanent slots: an upload returns as soon as the bytes are in a slot. So do uploads of up to kStagedBytes, which
// several threads copy. Larger transfers go in pieces through a second stream: several threads copy pieces while the card
// transfers earlier ones. Staging memory is allocated on first use. Thread safety: all calls may run concurrently.
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

  // |from| may be reused when the call returns. Later work in the stream sees the bytes.
  void upload(DevicePointer to, const std::byte* from, std::size_t bytes);
  // Sees the results of earlier work in the stream; blocks until the bytes have arrived.
  void download(std::byte* to, DevicePointer from, std::size_t bytes);

  // kSmallBytes of memory that the card can write; null if no slot is free.
  void* take_slot();
  void give_back_slot(void* slot) noexcept;

  // Frees the staging memory; |is_lost|: it is already gone.
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

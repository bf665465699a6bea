// TransferWindow: memory shared by a worker and its parent through which large tensors pass in pieces.
//
// The parent copies pieces in or out with several threads while the worker's device transfers earlier ones, so a transfer takes
// about as long as one within a single process. Piece i uses place i % kPieces. The two processes meet in two counters for each
// place: the last piece that its producer has completed, and the last one that its consumer no longer needs.
//
// Thread safety: one transfer at a time; the parent announces it to the worker by a message after start().
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "hal/worker/channel.h"
#include "hal/worker/hosted.h"

namespace tenon {

class TransferWindow {
 public:
  static constexpr int kPieces = DirectTransfers::kSlots;
  static constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
  static constexpr std::size_t kHeaderBytes = 4096;
  static constexpr std::size_t kBytes = kHeaderBytes + kPieces * kPieceBytes;

  // |memory| has at least kBytes.
  explicit TransferWindow(SharedMemory memory) : memory_(std::move(memory)) {}

  std::byte* data() const noexcept { return memory_.data(); }
  int fd() const noexcept { return memory_.fd(); }

  // --- The parent ---
  void start() noexcept;
  // Return early if the worker gives up or |is_alive|, which is called now and then, returns false; the worker's answer tells.
  void fill(const std::byte* from, std::size_t bytes, const std::function<bool()>& is_alive);
  void empty(std::byte* to, std::size_t bytes, const std::function<bool()>& is_alive);

  // --- The worker; throws the device's errors ---
  void upload(DirectTransfers& device, Buffer& to, std::size_t bytes);
  void download(DirectTransfers& device, const Buffer& from, std::size_t bytes);
  // The transfer that the parent has started will not happen.
  void give_up() noexcept;

 private:
  struct Header;
  struct Pieces;
  Header& header() const noexcept;
  std::byte* place(std::int64_t piece) const noexcept;

  SharedMemory memory_;
};

}  // namespace tenon

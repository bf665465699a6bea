#include "hal/worker/window.h"

#include <algorithm>
#include <limits>
#include <thread>
#include <utility>

#include "base/stream_copy.h"
#include "base/threads/thread_pool.h"

namespace tenon {
namespace {

constexpr std::size_t kLeastPieceBytes = 256 << 10;

}  // namespace

struct TransferWindow::Header {
  std::atomic<bool> has_failed;
  std::atomic<std::int64_t> produced[kPieces], consumed[kPieces];
};

// How a transfer is divided; both processes come to the same answer.
struct TransferWindow::Pieces {
  std::size_t bytes, step;
  std::int64_t count;

  explicit Pieces(std::size_t all)
      : bytes(all),
        // Small enough to give many threads a piece each, large enough to be worth waking one.
        step(std::clamp(all / kPieces / kLeastPieceBytes * kLeastPieceBytes, kLeastPieceBytes, kPieceBytes)),
        count(static_cast<std::int64_t>((all + step - 1) / step)) {}
  std::size_t begin(std::int64_t piece) const { return static_cast<std::size_t>(piece) * step; }
  std::size_t length(std::int64_t piece) const { return std::min(step, bytes - begin(piece)); }
};

namespace {

std::atomic<std::int64_t>& of(std::atomic<std::int64_t>* all, std::int64_t piece) {
  return all[static_cast<std::size_t>(piece % TransferWindow::kPieces)];
}

// Both processes wait only while a transfer is under way, for a time that is shorter than waking a thread would take.
struct Spin {
  int turns = 0;
  void once() {
    if (++turns % 4096 == 0) std::this_thread::yield();
    pause_cpu();
  }
};

}  // namespace

TransferWindow::Header& TransferWindow::header() const noexcept {
  static_assert(sizeof(Header) <= kHeaderBytes && std::atomic<std::int64_t>::is_always_lock_free);
  return *reinterpret_cast<Header*>(memory_.data());
}

std::byte* TransferWindow::place(std::int64_t piece) const noexcept {
  return memory_.data() + kHeaderBytes + static_cast<std::size_t>(piece % kPieces) * kPieceBytes;
}

void TransferWindow::give_up() noexcept { header().has_failed.store(true); }

void TransferWindow::start() noexcept {
  header().has_failed.store(false);
  for (auto& last : header().produced) last.store(-1);
  for (auto& last : header().consumed) last.store(-1);
}

namespace {

bool await(const std::atomic<std::int64_t>& state, std::int64_t piece, const std::atomic<bool>& has_failed,
           const std::function<bool()>& is_alive) {
  for (Spin spin; state.load(std::memory_order_acquire) != piece; spin.once()) {
    if (has_failed.load(std::memory_order_relaxed)) return false;
    if (spin.turns % 65536 == 65535 && !is_alive()) return false;
  }
  return true;
}

}  // namespace

namespace {

// The worker's thread and the device's driver need a core, too.
template <class Body>
void for_each_piece(std::int64_t count, const Body& body) {
  std::atomic<std::int64_t> next{0};
  const int lanes = std::max(1, process_pool().threads() * 3 / 4);
  process_pool().for_each(std::min<std::int64_t>(lanes, count), [&](std::int64_t, int) {
    for (std::int64_t piece; (piece = next.fetch_add(1, std::memory_order_relaxed)) < count;)
      if (!body(piece)) return;
  });
}

}  // namespace

void TransferWindow::fill(const std::byte* from, std::size_t bytes, const std::function<bool()>& is_alive) {
  const Pieces pieces(bytes);
  Header& h = header();
  for_each_piece(pieces.count, [&](std::int64_t piece) {
    if (piece >= kPieces && !await(of(h.consumed, piece), piece - kPieces, h.has_failed, is_alive)) return false;
    stream_copy(place(piece), from + pieces.begin(piece), pieces.length(piece));
    of(h.produced, piece).store(piece, std::memory_order_release);
    return true;
  });
}

void TransferWindow::empty(std::byte* to, std::size_t bytes, const std::function<bool()>& is_alive) {
  const Pieces pieces(bytes);
  Header& h = header();
  for_each_piece(pieces.count, [&](std::int64_t piece) {
    if (!await(of(h.produced, piece), piece, h.has_failed, is_alive)) return false;
    stream_copy(to + pieces.begin(piece), place(piece), pieces.length(piece));
    of(h.consumed, piece).store(piece, std::memory_order_release);
    return true;
  });
}

namespace {

// Starts copies in the order in which their places become ready, which is not that of the pieces: the parent has many threads.
// The device completes them in the order they were started.
class Copies {
 public:
  explicit Copies(std::int64_t count) : count_(count) {
    for (int i = 0; i < TransferWindow::kPieces; ++i) next_[i] = i;
  }

  // is_ready(piece), start(piece, slot), finish(piece).
  template <class IsReady, class Start, class Finish>
  void run(DirectTransfers& device, const IsReady& is_ready, const Start& start, const Finish& finish) {
    std::int64_t started[TransferWindow::kPieces], first = 0, last = 0;
    const auto collect = [&] {
      for (; first < last; ++first) {
        const std::int64_t piece = started[first % TransferWindow::kPieces];
        if (!device.is_complete(static_cast<int>(piece % TransferWindow::kPieces))) return;
        finish(piece);
        next_[piece % TransferWindow::kPieces] = piece + TransferWindow::kPieces;
      }
    };
    for (Spin spin; first < count_;) {
      const std::int64_t before = first + last;
      for (std::int64_t& piece : next_)
        if (piece < count_ && is_ready(piece)) {
          start(piece, static_cast<int>(piece % TransferWindow::kPieces));
          started[last++ % TransferWindow::kPieces] = std::exchange(piece, kBusy);
          // The parent waits for the first pieces while the last are being started.
          collect();
        }
      collect();
      if (first + last == before) spin.once();
    }
  }

 private:
  static constexpr std::int64_t kBusy = std::numeric_limits<std::int64_t>::max();
  std::int64_t count_;
  std::int64_t next_[TransferWindow::kPieces];  // of each place: the piece to start next
};

}  // namespace

void TransferWindow::upload(DirectTransfers& device, Buffer& to, std::size_t bytes) {
  const Pieces pieces(bytes);
  Header& h = header();
  Copies(pieces.count)
      .run(
          device, [&](std::int64_t piece) { return of(h.produced, piece).load(std::memory_order_acquire) == piece; },
          [&](std::int64_t piece, int slot) {
            device.start_upload(to, pieces.begin(piece), place(piece), pieces.length(piece), slot);
          },
          [&](std::int64_t piece) { of(h.consumed, piece).store(piece, std::memory_order_release); });
}

void TransferWindow::download(DirectTransfers& device, const Buffer& from, std::size_t bytes) {
  const Pieces pieces(bytes);
  Header& h = header();
  Copies(pieces.count)
      .run(
          device,
          [&](std::int64_t piece) {
            return piece < kPieces || of(h.consumed, piece).load(std::memory_order_acquire) == piece - kPieces;
          },
          [&](std::int64_t piece, int slot) {
            device.start_download(place(piece), from, pieces.begin(piece), pieces.length(piece), slot);
          },
          [&](std::int64_t piece) { of(h.produced, piece).store(piece, std::memory_order_release); });
}

}  // namespace tenon

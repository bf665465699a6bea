#include "backends/cuda/memory/transfers.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>

#include "backends/cuda/context.h"
#include "base/stream_copy.h"
#include "base/threads/thread_pool.h"

namespace tenon::cuda {
namespace {

constexpr std::size_t kRingBytes = std::size_t{1} << 20;
constexpr std::size_t kRingAlignment = 256;

constexpr std::size_t kLeastPieceBytes = 256 << 10;

// Small enough to give many threads a piece each, large enough to be worth waking one.
std::size_t piece_bytes(std::size_t bytes) {
  return std::clamp(bytes / Transfers::kPieces / kLeastPieceBytes * kLeastPieceBytes, kLeastPieceBytes, Transfers::kPieceBytes);
}

}  // namespace

// Staging memory of large transfers: piece number i of a transfer uses place i % kPieces.
struct Transfers::Pieces {
  RawStream stream = nullptr;
  RawEvent main_event = nullptr;
  std::byte* memory = nullptr;
  std::array<RawEvent, kPieces> events{};
  std::array<std::atomic<std::int64_t>, kPieces> enqueued{};  // the last piece whose copy by the card is in the stream
  std::atomic<bool> failed{false};
  RawEvent staged_event = nullptr;
  std::size_t staged = 0;  // bytes of |memory| that the main stream reads until staged_event

  std::byte* place(std::int64_t piece) { return memory + static_cast<std::size_t>(piece % kPieces) * kPieceBytes; }
  RawEvent event(std::int64_t piece) { return events[static_cast<std::size_t>(piece % kPieces)]; }
  std::atomic<std::int64_t>& state(std::int64_t piece) { return enqueued[static_cast<std::size_t>(piece % kPieces)]; }

  // Pieces are claimed in order, so the awaited piece is being processed. False if the transfer failed.
  bool await_enqueued(std::int64_t piece) {
    while (state(piece).load(std::memory_order_acquire) != piece) {
      if (failed.load(std::memory_order_relaxed)) return false;
      pause_cpu();
    }
    return true;
  }
  void start() {
    failed.store(false);
    for (auto& last : enqueued) last.store(-1);
  }
  // Calls body(piece) for all pieces on the available threads.
  template <class Body>
  void run(Context& context, std::int64_t count, const Body& body) {
    try {
      process_pool().for_each(count, [&](std::int64_t piece, int) {
        try {
          context.enter();
          body(piece);
        } catch (...) {
          failed.store(true);
          throw;
        }
      });
    } catch (...) {
      context.driver().stream_synchronize(stream);  // the card lets go of the staging memory
      throw;
    }
  }
};
void Transfers::PiecesDeleter::operator()(Pieces* pieces) const noexcept { delete pieces; }

void Transfers::make_small() {
  if (small_) return;
  void* memory = nullptr;
  context_.check(context_.driver().host_allocate(&memory, kRingBytes + kSlots * kSmallBytes, 0), "allocating staging memory");
  small_ = static_cast<std::byte*>(memory);
  free_slots_.reserve(kSlots);
  for (int i = 0; i < kSlots; ++i) free_slots_.push_back(small_ + kRingBytes + static_cast<std::size_t>(i) * kSmallBytes);
}

void* Transfers::take_slot() {
  const std::lock_guard lock(small_mutex_);
  make_small();
  if (free_slots_.empty()) return nullptr;
  void* const slot = free_slots_.back();
  free_slots_.pop_back();
  return slot;
}

void Transfers::give_back_slot(void* slot) noexcept {
  const std::lock_guard lock(small_mutex_);
  if (small_) free_slots_.push_back(slot);
}

void Transfers::upload(DevicePointer to, const std::byte* from, std::size_t bytes) {
  if (bytes == 0) return;
  if (bytes <= kSmallBytes)
    upload_small(to, from, bytes);
  else if (bytes <= kStagedBytes)
    upload_staged(to, from, bytes);
  else
    upload_large(to, from, bytes);
}

void Transfers::upload_small(DevicePointer to, const std::byte* from, std::size_t bytes) {
  {
    const std::lock_guard lock(small_mutex_);
    make_small();
  }
  const std::lock_guard queue(context_.queue());
  if (ring_used_ + bytes > kRingBytes) {
    context_.wait();
    ring_used_ = 0;
  }
  std::byte* const staged = small_ + ring_used_;
  std::memcpy(staged, from, bytes);
  ring_used_ += (bytes + kRingAlignment - 1) / kRingAlignment * kRingAlignment;
  context_.check(context_.driver().copy_to_device(to, staged, bytes, context_.stream()), "an upload");
}

Transfers::Pieces& Transfers::pieces() {
  if (pieces_) return *pieces_;
  const Driver& driver = context_.driver();
  std::unique_ptr<Pieces, PiecesDeleter> made(new Pieces);
  void* memory = nullptr;
  context_.check(driver.host_allocate(&memory, kPieces * kPieceBytes, 0), "allocating staging memory");
  made->memory = static_cast<std::byte*>(memory);
  // From here on the context's end frees what is left, should one of these fail.
  context_.check(driver.stream_create(&made->stream, kStreamNonBlocking), "creating a stream");
  context_.check(driver.event_create(&made->main_event, kEventDisableTiming), "creating an event");
  context_.check(driver.event_create(&made->staged_event, kEventDisableTiming), "creating an event");
  for (RawEvent& event : made->events) context_.check(driver.event_create(&event, kEventDisableTiming), "creating an event");
  pieces_ = std::move(made);
  return *pieces_;
}

// The memory may have been used by work that is still queued.
void Transfers::follow_stream(Pieces& pieces) {
  const std::lock_guard queue(context_.queue());
  context_.check(context_.driver().event_record(pieces.main_event, context_.stream()), "recording an event");
  context_.check(context_.driver().stream_wait_event(pieces.stream, pieces.main_event, 0), "waiting for an event");
}

// In pieces: the card transfers one while the next is copied, and the call does not wait for the last one. Waking other threads
// would take longer.
void Transfers::upload_staged(DevicePointer to, const std::byte* from, std::size_t bytes) {
  const std::lock_guard lock(large_mutex_);
  const Driver& driver = context_.driver();
  Pieces& p = pieces();
  // Starts from the beginning whenever possible, because the memory used last is still in the caches.
  if (p.staged > 0 && driver.event_query(p.staged_event) == kSuccess) p.staged = 0;
  if (p.staged + bytes > kPieces * kPieceBytes) await_staged(p);
  std::byte* const staged = p.memory + p.staged;
  p.staged += (bytes + kRingAlignment - 1) / kRingAlignment * kRingAlignment;
  for (std::size_t begin = 0; begin < bytes; begin += kLeastPieceBytes) {
    const std::size_t length = std::min(kLeastPieceBytes, bytes - begin);
    std::memcpy(staged + begin, from + begin, length);
    const std::lock_guard queue(context_.queue());
    context_.check(driver.copy_to_device(to + begin, staged + begin, length, context_.stream()), "an upload");
  }
  const std::lock_guard queue(context_.queue());
  context_.check(driver.event_record(p.staged_event, context_.stream()), "recording an event");
}

void Transfers::await_staged(Pieces& pieces) {
  if (pieces.staged > 0) context_.check(context_.driver().event_synchronize(pieces.staged_event), "an upload");
  pieces.staged = 0;
}

void Transfers::upload_large(DevicePointer to, const std::byte* from, std::size_t bytes) {
  const std::lock_guard lock(large_mutex_);
  const Driver& driver = context_.driver();
  Pieces& p = pieces();
  await_staged(p);
  follow_stream(p);
  p.start();
  const std::size_t step = piece_bytes(bytes);
  const auto count = static_cast<std::int64_t>((bytes + step - 1) / step);
  p.run(context_, count, [&](std::int64_t piece) {
    if (piece >= kPieces) {
      if (!p.await_enqueued(piece - kPieces)) return;
      context_.check(driver.event_synchronize(p.event(piece)), "an upload");
    }
    const std::size_t begin = static_cast<std::size_t>(piece) * step, length = std::min(step, bytes - begin);
    stream_copy(p.place(piece), from + begin, length);
    context_.check(driver.copy_to_device(to + begin, p.place(piece), length, p.stream), "an upload");
    context_.check(driver.event_record(p.event(piece), p.stream), "recording an event");
    p.state(piece).store(piece, std::memory_order_release);
  });
  context_.check(driver.stream_synchronize(p.stream), "an upload");
}

void Transfers::download(std::byte* to, DevicePointer from, std::size_t bytes) {
  if (bytes == 0) return;
  if (bytes > kSmallBytes) return download_large(to, from, bytes);
  void* const slot = take_slot();
  // Without a slot the driver stages the data, which is slower.
  void* const target = slot ? slot : to;
  try {
    {
      const std::lock_guard queue(context_.queue());
      context_.check(context_.driver().copy_to_host(target, from, bytes, context_.stream()), "a download");
    }
    context_.wait();
  } catch (...) {
    if (slot) give_back_slot(slot);
    throw;
  }
  if (!slot) return;
  std::memcpy(to, slot, bytes);
  give_back_slot(slot);
}

void Transfers::download_large(std::byte* to, DevicePointer from, std::size_t bytes) {
  const std::lock_guard lock(large_mutex_);
  const Driver& driver = context_.driver();
  Pieces& p = pieces();
  await_staged(p);
  follow_stream(p);
  p.start();
  const std::size_t step = piece_bytes(bytes);
  const auto count = static_cast<std::int64_t>((bytes + step - 1) / step);
  const auto begin_of = [&](std::int64_t piece) { return static_cast<std::size_t>(piece) * step; };
  const auto length_of = [&](std::int64_t piece) { return std::min(step, bytes - begin_of(piece)); };
  const auto fetch = [&](std::int64_t piece) {
    context_.check(driver.copy_to_host(p.place(piece), from + begin_of(piece), length_of(piece), p.stream), "a download");
    context_.check(driver.event_record(p.event(piece), p.stream), "recording an event");
    p.state(piece).store(piece, std::memory_order_release);
  };
  for (std::int64_t piece = 0; piece < std::min<std::int64_t>(count, kPieces); ++piece) fetch(piece);
  p.run(context_, count, [&](std::int64_t piece) {
    if (!p.await_enqueued(piece)) return;
    context_.check(driver.event_synchronize(p.event(piece)), "a download");
    stream_copy(to + begin_of(piece), p.place(piece), length_of(piece));
    if (piece + kPieces < count) fetch(piece + kPieces);
  });
}

void Transfers::close(bool is_lost) noexcept {
  const Driver& driver = context_.driver();
  const std::scoped_lock lock(small_mutex_, large_mutex_);
  if (!is_lost) {
    if (small_) driver.host_free(small_);
    if (pieces_) {
      driver.host_free(pieces_->memory);
      for (RawEvent event : pieces_->events) driver.event_destroy(event);
      driver.event_destroy(pieces_->main_event);
      driver.event_destroy(pieces_->staged_event);
      driver.stream_destroy(pieces_->stream);
    }
  }
  small_ = nullptr;
  free_slots_.clear();
  pieces_.reset();
}

}  // namespace tenon::cuda

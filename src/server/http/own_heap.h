// OwnHeap: memory that one thread keeps for itself, so that it takes no lock of the C library's heaps.
//
// A thread that computes may be interrupted by the system while it has such a lock. The thread of all connections would then wait
// for it, mostly to free what another thread has allocated. While an OwnHeap lives on its stack, blocks that it frees are kept
// for what it allocates next; larger ones, and what would be too much, are freed by another thread. Small ones that are not there
// come from addresses of their own, to which any thread may give them back. operator new and delete of the whole program look for
// all this.
//
// Thread safety: it is its thread's own.
#pragma once

#include <semaphore.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <thread>

namespace tenon::server {

class OwnHeap {
 public:
  static constexpr std::size_t kLargest = 64 << 10, kMostBytes = 4 << 20;

  OwnHeap();
  ~OwnHeap();
  OwnHeap(const OwnHeap&) = delete;
  OwnHeap& operator=(const OwnHeap&) = delete;

  std::size_t kept_bytes() const noexcept { return kept_bytes_; }

  // For operator new and delete. nullptr: there is no memory.
  void* allocate(std::size_t bytes) noexcept;
  void free(void* block) noexcept;
  // Of a block that another thread frees: false if it is one of the C library's.
  static bool give_back(void* block) noexcept;

 private:
  struct Block {
    Block* next;
  };
  struct Region;
  void hand_over(Block* block) noexcept;
  void free_handed_over() noexcept;

  // Sizes of blocks as the C library makes them: 24, 40, 56 ... 1032, then four for each power of two.
  static constexpr std::size_t kSmall = 64, kSizes = kSmall + 24;
  static const std::array<std::size_t, kSizes> sizes_;
  static Region region_;

  std::array<Block*, kSizes> kept_{};  // of the C library's, each at least as large as its size
  bool has_region_ = false;
  std::size_t kept_bytes_ = 0;
  std::atomic<Block*> handed_over_{nullptr};
  std::atomic<bool> is_ending_{false};
  sem_t bell_;
  std::thread other_;
};

}  // namespace tenon::server

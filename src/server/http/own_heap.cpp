#include "server/http/own_heap.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <system_error>
#include <utility>

#include "server/compute/thread_priority.h"

namespace tenon::server {
namespace {

constinit thread_local OwnHeap* own_heap = nullptr;

constexpr std::size_t kMapped = 256 << 10;  // as FreedMemory::tame_heaps() sets it

template <std::size_t kCount, std::size_t kSmall>
constexpr std::array<std::size_t, kCount> make_sizes() {
  std::array<std::size_t, kCount> sizes{};
  for (std::size_t i = 0; i < kCount; ++i) {
    if (i < kSmall) {
      sizes[i] = 24 + 16 * i;
      continue;
    }
    const std::size_t power = std::size_t{1024} << ((i - kSmall) / 4);
    sizes[i] = power + power / 4 * ((i - kSmall) % 4 + 1) - 8;
  }
  return sizes;
}

}  // namespace

constexpr std::array<std::size_t, OwnHeap::kSizes> OwnHeap::sizes_ = make_sizes<kSizes, kSmall>();

// Small blocks, each behind a word with the number of its size. For the whole life of the process, because blocks may outlive the
// heap they came from.
struct OwnHeap::Region {
  static constexpr std::size_t kBytes = 64 << 20;
  std::atomic<char*> begin{nullptr};
  std::atomic<bool> is_owned{false};
  std::atomic<Block*> returned{nullptr};  // by other threads
  // Of the owner.
  std::size_t used = 8;  // the first block is at a multiple of 16
  std::array<Block*, kSmall> kept{};

  bool has(const void* block) const noexcept {
    const char* const first = begin.load(std::memory_order_relaxed);
    return first && reinterpret_cast<std::uintptr_t>(block) - reinterpret_cast<std::uintptr_t>(first) < kBytes;
  }
  static std::size_t& number_of(void* block) noexcept { return static_cast<std::size_t*>(block)[-1]; }

  bool take_over() noexcept {
    if (is_owned.exchange(true)) return false;
    if (begin.load()) return true;
    void* const memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return is_owned = false;
    begin = static_cast<char*>(memory);
    return true;
  }
  void keep(Block* block) noexcept { block->next = std::exchange(kept[number_of(block)], block); }

  void* allocate(std::size_t number) noexcept {
    if (!kept[number])
      for (Block* block = returned.exchange(nullptr); block;) keep(std::exchange(block, block->next));
    if (Block*& first = kept[number]) return std::exchange(first, first->next);
    const std::size_t bytes = sizes_[number] + 8;
    if (bytes > kBytes - used) return nullptr;
    char* const block = begin.load(std::memory_order_relaxed) + used + 8;
    used += bytes;
    number_of(block) = number;
    return block;
  }
};

constinit OwnHeap::Region OwnHeap::region_;

bool OwnHeap::give_back(void* pointer) noexcept {
  if (!region_.has(pointer)) return false;
  auto* const block = static_cast<Block*>(pointer);
  Block* before = region_.returned.load(std::memory_order_relaxed);
  do block->next = before;
  while (!region_.returned.compare_exchange_weak(before, block));
  return true;
}

OwnHeap::OwnHeap() {
  static_assert(sizes_.back() + 8 == kLargest);
  sem_init(&bell_, 0, 0);
  try {
    other_ = std::thread([this, nice = own_nice()] {
      pthread_setname_np(pthread_self(), "tenon-free");
      set_own_nice(nice);  // what waits to be freed is beyond the limit of memory
      while (!is_ending_.load()) {
        while (sem_wait(&bell_) != 0) {
        }
        free_handed_over();
      }
    });
  } catch (const std::system_error&) {
    return;  // the system refuses more threads: without a heap of its own
  }
  has_region_ = region_.take_over();
  own_heap = this;
}

OwnHeap::~OwnHeap() {
  own_heap = nullptr;
  is_ending_ = true;
  sem_post(&bell_);
  if (other_.joinable()) other_.join();
  free_handed_over();
  for (Block* block : kept_)
    while (block) std::free(std::exchange(block, block->next));
  if (has_region_) region_.is_owned = false;
  sem_destroy(&bell_);
}

void* OwnHeap::allocate(std::size_t bytes) noexcept {
  std::size_t number = bytes <= 24 ? 0 : (bytes - 24 + 15) / 16;
  if (number >= kSmall)
    number = static_cast<std::size_t>(std::lower_bound(sizes_.begin() + kSmall, sizes_.end(), bytes) - sizes_.begin());
  if (number == kSizes) return std::malloc(bytes);
  if (Block*& first = kept_[number]) {
    kept_bytes_ -= sizes_[number];
    return std::exchange(first, first->next);
  }
  if (has_region_ && number < kSmall)
    if (void* const block = region_.allocate(number)) return block;
  return std::malloc(sizes_[number]);
}

void OwnHeap::free(void* pointer) noexcept {
  if (!pointer) return;
  auto* const block = static_cast<Block*>(pointer);
  if (region_.has(pointer)) {
    if (has_region_)
      region_.keep(block);
    else
      give_back(pointer);
    return;
  }
  const std::size_t usable = malloc_usable_size(pointer);
  // The C library gives such blocks back to the system without a lock of its own, and they must not wait beyond the memory limit.
  if (usable >= kMapped) return std::free(pointer);
  if (usable < sizes_[0] || usable > kLargest) return hand_over(block);
  std::size_t number = (usable - 24) / 16;
  if (number >= kSmall)
    number = static_cast<std::size_t>(std::upper_bound(sizes_.begin() + kSmall, sizes_.end(), usable) - sizes_.begin()) - 1;
  if (kept_bytes_ + sizes_[number] > kMostBytes) return hand_over(block);
  kept_bytes_ += sizes_[number];
  block->next = std::exchange(kept_[number], block);
}

void OwnHeap::hand_over(Block* block) noexcept {
  Block* before = handed_over_.load(std::memory_order_relaxed);
  do block->next = before;
  while (!handed_over_.compare_exchange_weak(before, block));
  if (!before) sem_post(&bell_);
}

void OwnHeap::free_handed_over() noexcept {
  for (Block* block = handed_over_.exchange(nullptr); block;) std::free(std::exchange(block, block->next));
}

[[maybe_unused]] static void* allocate_or_throw(std::size_t bytes) {
  while (true) {
    void* const block = own_heap ? own_heap->allocate(bytes) : std::malloc(std::max<std::size_t>(bytes, 1));
    if (block) return block;
    const std::new_handler handler = std::get_new_handler();
    if (!handler) throw std::bad_alloc();
    handler();
  }
}

[[maybe_unused]] static void free_block(void* block) noexcept {
  if (own_heap) return own_heap->free(block);
  if (!OwnHeap::give_back(block)) std::free(block);
}

}  // namespace tenon::server

// AddressSanitizer has its own, which find more.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define TENON_KEEPS_OPERATOR_NEW
#endif
#endif
#ifndef TENON_KEEPS_OPERATOR_NEW
void* operator new(std::size_t bytes) { return tenon::server::allocate_or_throw(bytes); }
void operator delete(void* block) noexcept { tenon::server::free_block(block); }
void operator delete(void* block, std::size_t) noexcept { tenon::server::free_block(block); }
#endif

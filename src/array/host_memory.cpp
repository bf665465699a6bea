#include "array/host_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <mutex>
#include <string>

#include "base/threads/fork_mutex.h"
#include "tenon/error.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TENON_ASAN 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define TENON_ASAN 1
#endif
#ifdef TENON_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace tenon::host_memory {
namespace {

// Kept blocks and the unused tail of a block in use are poisoned, so that AddressSanitizer works with the pool.
void poison([[maybe_unused]] void* block, [[maybe_unused]] std::size_t bytes) noexcept {
#ifdef TENON_ASAN
  ASAN_POISON_MEMORY_REGION(block, bytes);
#endif
}
void unpoison([[maybe_unused]] void* block, [[maybe_unused]] std::size_t bytes) noexcept {
#ifdef TENON_ASAN
  ASAN_UNPOISON_MEMORY_REGION(block, bytes);
#endif
}

std::string size_text(std::size_t bytes) {
  if (bytes < (std::size_t{1} << 20)) return fmt::format("{} bytes", bytes);
  if (bytes < (std::size_t{1} << 30)) return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / 0x1p20);
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / 0x1p30);
}

// malloc's fast path supports alignments up to 16, so the block is shifted and stores its original address.
void* heap_allocate(std::size_t bytes) noexcept {
  if (bytes > std::numeric_limits<std::size_t>::max() - kAlignment) return nullptr;
  void* raw = std::malloc(bytes + kAlignment);
  if (raw == nullptr) return nullptr;
  const auto address = (reinterpret_cast<std::uintptr_t>(raw) + kAlignment) & ~(kAlignment - 1);
  auto* block = reinterpret_cast<void**>(address);
  block[-1] = raw;
  return block;
}
void heap_free(void* block) noexcept { std::free(static_cast<void**>(block)[-1]); }

// |bytes| is a size class, so a multiple of the page size.
void* map_allocate(std::size_t bytes) noexcept {
  constexpr std::size_t huge = kMappedFrom;
  if (bytes > std::numeric_limits<std::size_t>::max() - huge) return nullptr;
  void* const raw = mmap(nullptr, bytes + huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  const std::size_t head = -reinterpret_cast<std::uintptr_t>(raw) & (huge - 1);
  char* const block = static_cast<char*>(raw) + head;
  if (head != 0) munmap(raw, head);
  munmap(block + bytes, huge - head);
  madvise(block, bytes, MADV_HUGEPAGE);
  return block;
}

void* system_allocate(std::size_t class_size) noexcept {
  return class_size >= kMappedFrom ? map_allocate(class_size) : heap_allocate(class_size);
}
void system_free(void* block, std::size_t class_size) noexcept {
  unpoison(block, class_size);
  if (class_size >= kMappedFrom)
    munmap(block, class_size);
  else
    heap_free(block);
}

// Lives in the first bytes of a kept block.
struct KeptBlock {
  KeptBlock* below;  // in the stack of its size class
  KeptBlock* above;
  KeptBlock* older;  // in the order of release
  KeptBlock* newer;
  std::size_t class_size;
};

constexpr std::size_t class_index(std::size_t class_size) noexcept {
  const auto top = static_cast<std::size_t>(std::bit_width(class_size - 1)) - 1;
  const std::size_t eighths = ((class_size - 1) >> (top - 3)) - 8;
  return (top - 15) * 8 + eighths;
}
constexpr std::size_t kClassCount = 8 * 49;
static_assert(class_index(kPooledFrom) == 7 && class_index(class_bytes(kPooledFrom + 1)) == 8);

class Pool {
 public:
  Pool() : kept_limit_(std::min<std::size_t>(memory_limit() / 4, std::size_t{4} << 30)) {}

  void* take(std::size_t class_size) noexcept {
    const std::lock_guard lock(mutex_);
    KeptBlock* block = stacks_[class_index(class_size)];
    if (block == nullptr) return nullptr;
    unlink(block);
    ++reuses_;
    return block;
  }

  void keep(void* memory, std::size_t class_size) noexcept {
    poison(memory, class_size);
    unpoison(memory, sizeof(KeptBlock));
    KeptBlock* freed = nullptr;
    {
      const std::lock_guard lock(mutex_);
      link(static_cast<KeptBlock*>(memory), class_size);
      freed = drop_beyond(kept_limit_);
    }
    free_chain(freed);
  }

  void set_limit(std::size_t bytes) noexcept {
    KeptBlock* freed = nullptr;
    {
      const std::lock_guard lock(mutex_);
      kept_limit_ = bytes;
      freed = drop_beyond(bytes);
    }
    free_chain(freed);
  }

  void trim() noexcept {
    KeptBlock* freed = nullptr;
    {
      const std::lock_guard lock(mutex_);
      freed = drop_beyond(0);
    }
    free_chain(freed);
  }

  void fill(Statistics& out) noexcept {
    const std::lock_guard lock(mutex_);
    out.reuses = reuses_;
    out.kept_bytes = kept_bytes_;
    out.kept_blocks = kept_blocks_;
    out.kept_limit_bytes = kept_limit_;
  }

 private:
  void link(KeptBlock* block, std::size_t class_size) noexcept {
    KeptBlock*& stack = stacks_[class_index(class_size)];
    *block = {.below = stack, .above = nullptr, .older = newest_, .newer = nullptr, .class_size = class_size};
    if (stack != nullptr) stack->above = block;
    if (newest_ != nullptr) newest_->newer = block;
    stack = newest_ = block;
    if (oldest_ == nullptr) oldest_ = block;
    kept_bytes_ += class_size;
    ++kept_blocks_;
  }

  void unlink(KeptBlock* block) noexcept {
    (block->above != nullptr ? block->above->below : stacks_[class_index(block->class_size)]) = block->below;
    if (block->below != nullptr) block->below->above = block->above;
    (block->newer != nullptr ? block->newer->older : newest_) = block->older;
    (block->older != nullptr ? block->older->newer : oldest_) = block->newer;
    kept_bytes_ -= block->class_size;
    --kept_blocks_;
  }

  // Removes the oldest blocks, chained through |below|; the caller frees them outside the lock.
  KeptBlock* drop_beyond(std::size_t limit) noexcept {
    KeptBlock* chain = nullptr;
    while (kept_bytes_ > limit) {
      KeptBlock* block = oldest_;
      unlink(block);
      block->below = chain;
      chain = block;
    }
    return chain;
  }

  static void free_chain(KeptBlock* chain) noexcept {
    while (chain != nullptr) {
      KeptBlock* const next = chain->below;
      system_free(chain, chain->class_size);
      chain = next;
    }
  }

  ForkMutex mutex_;
  std::array<KeptBlock*, kClassCount> stacks_{};
  KeptBlock* oldest_ = nullptr;
  KeptBlock* newest_ = nullptr;
  std::size_t kept_bytes_ = 0;
  std::size_t kept_blocks_ = 0;
  std::size_t kept_limit_;
  std::uint64_t reuses_ = 0;
};

Pool& pool() noexcept {
  static Pool& instance = *new Pool;
  return instance;
}

std::atomic<std::uint64_t> allocations{0};
std::atomic<std::uint64_t> allocated_bytes{0};
std::atomic<std::uint64_t> in_use_bytes{0};

[[noreturn]] void refuse(std::size_t bytes, const std::string& why, const char* hint) {
  throw Error(ErrorCode::resource_exhausted, fmt::format("cannot allocate {} for an array: {}", size_text(bytes), why), hint);
}

void reserve(std::size_t bytes) {
  const std::size_t limit = memory_limit();
  if (bytes > limit)
    refuse(bytes, fmt::format("the limit of this process is {}", size_text(limit)), "use a smaller shape or a smaller dtype");
  const std::uint64_t before = in_use_bytes.fetch_add(bytes, std::memory_order_relaxed);
  if (before + bytes <= limit) return;
  in_use_bytes.fetch_sub(bytes, std::memory_order_relaxed);
  refuse(bytes, fmt::format("arrays already use {} of the {} available to this process", size_text(before), size_text(limit)),
         "release arrays that are no longer needed");
}

}  // namespace

void* allocate(std::size_t bytes) {
  bytes = std::max<std::size_t>(bytes, 1);
  reserve(bytes);
  const std::size_t class_size = class_bytes(bytes);
  void* block = nullptr;
  if (class_size >= kPooledFrom) block = pool().take(class_size);
  if (block == nullptr) block = system_allocate(class_size);
  if (block == nullptr) {
    pool().trim();
    block = system_allocate(class_size);
  }
  if (block == nullptr) {
    in_use_bytes.fetch_sub(bytes, std::memory_order_relaxed);
    refuse(bytes, "the system is out of memory", "release arrays that are no longer needed");
  }
  if (class_size >= kPooledFrom) {
    unpoison(block, bytes);
    poison(static_cast<char*>(block) + bytes, class_size - bytes);
  }
  allocations.fetch_add(1, std::memory_order_relaxed);
  allocated_bytes.fetch_add(bytes, std::memory_order_relaxed);
  return block;
}

void release(void* block, std::size_t bytes) noexcept {
  bytes = std::max<std::size_t>(bytes, 1);
  in_use_bytes.fetch_sub(bytes, std::memory_order_relaxed);
  if (bytes < kPooledFrom)
    heap_free(block);
  else
    pool().keep(block, class_bytes(bytes));
}

std::shared_ptr<void> allocate_shared(std::size_t bytes) {
  return std::shared_ptr<void>(allocate(bytes), [bytes](void* block) { release(block, bytes); });
}

Statistics statistics() noexcept {
  Statistics out;
  pool().fill(out);
  out.allocations = allocations.load(std::memory_order_relaxed);
  out.allocated_bytes = allocated_bytes.load(std::memory_order_relaxed);
  out.in_use_bytes = in_use_bytes.load(std::memory_order_relaxed);
  return out;
}

void set_kept_limit(std::size_t bytes) noexcept { pool().set_limit(bytes); }
void trim() noexcept { pool().trim(); }

}  // namespace tenon::host_memory

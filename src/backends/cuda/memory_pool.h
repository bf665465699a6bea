// MemoryPool: a card's memory in blocks that are kept and handed out again.
//
// Small blocks are cut from slabs of 2 MiB, each slab for one size class; larger ones come from the driver one by one. A block
// given back stays for the next request of its class. When the driver has no more, or when what is held would pass the budget,
// everything nobody uses goes back to the driver first.
// Lifetime: blocks may be given back after close(), which frees everything. Thread safety: all calls may run side by side.
//
//   MemoryPool::Block block = pool.allocate(bytes);   // block.bytes >= bytes, aligned to 256
//   pool.give_back(block);
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "backends/cuda/api.h"

namespace tenon::cuda {

class MemoryPool {
 public:
  struct Block {
    DevicePointer address = 0;
    std::uint64_t bytes = 0;  // of its class
  };
  struct Source {
    std::function<std::optional<DevicePointer>(std::uint64_t bytes)> take;  // nothing when there is no more
    std::function<void(DevicePointer)> give_back;
    std::function<std::uint64_t()> limit_bytes;  // the most to hold; may change
  };
  static constexpr std::uint64_t kSlabBytes = std::uint64_t{2} << 20;
  static constexpr std::uint64_t kLargestSmall = std::uint64_t{512} << 10;

  explicit MemoryPool(Source source);
  ~MemoryPool() { close(); }
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  // Nothing when the card has no more memory even after trimming.
  std::optional<Block> allocate(std::uint64_t bytes);
  void give_back(const Block& block) noexcept;

  // Gives what nobody uses back to the driver.
  void trim() noexcept;
  // Frees everything, used or not; blocks given back afterwards are dropped.
  void close() noexcept;
  // The memory is gone with its device: nothing is freed any more.
  void abandon() noexcept;

  std::uint64_t held_bytes() const;

 private:
  struct Class {
    std::uint64_t bytes;
    std::vector<DevicePointer> kept;
  };
  Class* small_class(std::uint64_t bytes) noexcept;
  std::optional<DevicePointer> take(std::uint64_t bytes);
  bool cut_slab(Class& of);
  void trim_locked() noexcept;

  mutable std::mutex mutex_;
  Source source_;
  std::vector<Class> small_;
  std::unordered_map<std::uint64_t, std::vector<DevicePointer>> large_;  // kept, by class
  std::map<DevicePointer, std::uint64_t> from_driver_;                   // every slab and large block: its bytes
  std::map<DevicePointer, Class*> slabs_;
  std::uint64_t held_bytes_ = 0;
  bool is_closed_ = false;
};

}  // namespace tenon::cuda

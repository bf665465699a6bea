// MemoryPool: a pool of reused blocks of a card's memory.
//
// Small blocks are cut from slabs of 2 MiB, each for one size class; larger blocks come from the driver individually. A released
// block is kept for the next request of its class; of several the one with the lowest address is used, so that a program that is
// run again and again gets the same blocks in the same order. If the driver is out of memory, or the pool would exceed the
// budget, all unused memory is first returned to the driver. Lifetime: blocks may be released after close(), which frees
// everything. Thread safety: all calls may run concurrently.
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
    std::function<std::optional<DevicePointer>(std::uint64_t bytes)> take;  // nullopt if the card is out of memory
    std::function<void(DevicePointer)> give_back;
    std::function<std::uint64_t()> limit_bytes;  // the current limit of the pool
  };
  static constexpr std::uint64_t kSlabBytes = std::uint64_t{2} << 20;
  static constexpr std::uint64_t kLargestSmall = std::uint64_t{512} << 10;

  explicit MemoryPool(Source source);
  ~MemoryPool() { close(); }
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  // nullopt if the card is out of memory even after trimming.
  std::optional<Block> allocate(std::uint64_t bytes);
  void give_back(const Block& block) noexcept;

  // Keeps the memory of |block| beyond close(), until it was taken back as often as it was lent. A block is given back after it
  // was taken back.
  void lend(const Block& block);
  void take_back(const Block& block) noexcept;

  // Returns unused memory to the driver.
  void trim() noexcept;
  // Frees everything that is not lent, used or not; blocks released afterwards are ignored.
  void close() noexcept;
  // The memory was lost with its device: nothing is freed any more.
  void abandon() noexcept;

  std::uint64_t held_bytes() const;

 private:
  struct Class {
    std::uint64_t bytes;
    std::vector<DevicePointer> kept;  // a heap with the lowest address first
  };
  static DevicePointer lowest(std::vector<DevicePointer>& kept);
  static void keep(std::vector<DevicePointer>& kept, DevicePointer address);
  Class* small_class(std::uint64_t bytes) noexcept;
  std::optional<DevicePointer> take(std::uint64_t bytes);
  bool cut_slab(Class& of);
  void trim_locked() noexcept;
  // The allocation of the driver that |block| is a part of.
  DevicePointer base_of(const Block& block) const;

  mutable std::mutex mutex_;
  Source source_;
  std::vector<Class> small_;
  std::unordered_map<std::uint64_t, std::vector<DevicePointer>> large_;  // kept, by class
  std::map<DevicePointer, std::uint64_t> from_driver_;                   // every slab and large block: its bytes
  std::map<DevicePointer, Class*> slabs_;
  std::map<DevicePointer, int> lent_;  // of from_driver_: how often
  std::uint64_t held_bytes_ = 0;
  bool is_closed_ = false;
};

}  // namespace tenon::cuda

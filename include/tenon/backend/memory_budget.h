// MemoryBudget: how much of a device's memory this process may use, and how much is in use.
//
// Every buffer of a device holds a Share of the device's budget during its lifetime. A reservation that would exceed the limit
// fails before anything is allocated.
// Lifetime: Shares keep the budget alive. Thread safety: all calls may run concurrently; the limit is never exceeded.
//
//   auto budget = MemoryBudget::make("cuda:0", 0.75 * total);
//   MemoryBudget::Share share = budget->reserve(bytes);     // released when destroyed
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace tenon {

class MemoryBudget : public std::enable_shared_from_this<MemoryBudget> {
 public:
  class Share {
   public:
    Share() = default;
    Share(Share&& other) noexcept : budget_(std::move(other.budget_)), bytes_(std::exchange(other.bytes_, 0)) {}
    Share& operator=(Share&& other) noexcept {
      std::swap(budget_, other.budget_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Share() {
      if (budget_) budget_->give_back(bytes_);
    }
    std::uint64_t bytes() const noexcept { return bytes_; }

   private:
    friend class MemoryBudget;
    Share(std::shared_ptr<MemoryBudget> budget, std::uint64_t bytes) : budget_(std::move(budget)), bytes_(bytes) {}
    std::shared_ptr<MemoryBudget> budget_;
    std::uint64_t bytes_ = 0;
  };

  // |device_bytes|: all memory of the device, for messages; 0: not known.
  static std::shared_ptr<MemoryBudget> make(std::string device, std::uint64_t limit_bytes, std::uint64_t device_bytes = 0);

  // Throws resource_exhausted naming the budget, the memory in use and the requested size.
  Share reserve(std::uint64_t bytes);

  const std::string& device() const noexcept { return device_; }
  std::uint64_t limit_bytes() const noexcept { return limit_bytes_.load(std::memory_order_relaxed); }
  // A limit below the memory in use blocks new reservations until enough is released.
  void set_limit(std::uint64_t bytes) noexcept { limit_bytes_.store(bytes, std::memory_order_relaxed); }
  std::uint64_t used_bytes() const noexcept { return used_bytes_.load(std::memory_order_relaxed); }
  std::uint64_t peak_bytes() const noexcept { return peak_bytes_.load(std::memory_order_relaxed); }

 private:
  MemoryBudget(std::string device, std::uint64_t limit_bytes, std::uint64_t device_bytes)
      : device_(std::move(device)),
        device_bytes_(device_bytes),
        limit_bytes_(limit_bytes) {}
  void give_back(std::uint64_t bytes) noexcept { used_bytes_.fetch_sub(bytes, std::memory_order_relaxed); }

  const std::string device_;
  const std::uint64_t device_bytes_;
  std::atomic<std::uint64_t> limit_bytes_;
  std::atomic<std::uint64_t> used_bytes_{0}, peak_bytes_{0};
};

}  // namespace tenon

// MemoryGate: how much memory all requests together may have at one time.
//
// A share is taken before memory is, from an estimate, and given back when it is dropped. Thread safety: all calls may run side
// by side.
//
//   MemoryGate::Share share = gate.take(body_bytes);   // throws Problem 503 when there is no room now
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace tenon::server {

class MemoryGate {
 public:
  class Share {
   public:
    Share() = default;
    Share(Share&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)), bytes_(other.bytes_) {}
    Share& operator=(Share&& other) noexcept {
      std::swap(gate_, other.gate_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Share() {
      if (gate_ != nullptr) gate_->used_.fetch_sub(bytes_, std::memory_order_relaxed);
    }

    explicit operator bool() const noexcept { return gate_ != nullptr; }
    // For memory that is filled bit by bit: the share has at least |bytes| afterwards. Throws Problem 503 and keeps what it has.
    void grow_to(std::uint64_t bytes) {
      if (bytes <= bytes_) return;
      gate_->reserve(bytes - bytes_);
      bytes_ = bytes;
    }

   private:
    friend class MemoryGate;
    Share(MemoryGate* gate, std::uint64_t bytes) : gate_(gate), bytes_(bytes) {}
    MemoryGate* gate_ = nullptr;
    std::uint64_t bytes_ = 0;
  };

  explicit MemoryGate(std::uint64_t limit) : limit_(limit) {}
  MemoryGate(const MemoryGate&) = delete;
  MemoryGate& operator=(const MemoryGate&) = delete;

  // Throws Problem 503.
  Share take(std::uint64_t bytes);
  std::uint64_t used() const noexcept { return used_.load(std::memory_order_relaxed); }
  std::uint64_t limit() const noexcept { return limit_; }

 private:
  void reserve(std::uint64_t bytes);

  const std::uint64_t limit_;
  std::atomic<std::uint64_t> used_{0};
};

}  // namespace tenon::server

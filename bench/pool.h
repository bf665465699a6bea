// SpinPool: the smallest fair way to put a hand-written loop on several threads, for the limit we compare with.
//
// The caller takes part; chunks are claimed from one atomic counter; a worker that finds no work spins for some 50 us and then
// sleeps, so that it does not take a core from whatever is measured next. One call at a time.
//
//   pool.run(chunks, [&](std::int64_t chunk) { ... });
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace bench {

class SpinPool {
 public:
  explicit SpinPool(int threads) {
    for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { work(); });
  }
  ~SpinPool() {
    stop_ = true;
    generation_.fetch_add(1);
    generation_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  void run(std::int64_t chunks, const std::function<void(std::int64_t)>& body) {
    body_ = &body;
    chunks_ = chunks;
    next_.store(0, std::memory_order_relaxed);
    busy_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
    generation_.fetch_add(1);
    generation_.notify_all();
    claim();
    while (busy_.load(std::memory_order_acquire) != 0) __builtin_ia32_pause();
  }

 private:
  void claim() {
    for (std::int64_t i; (i = next_.fetch_add(1, std::memory_order_relaxed)) < chunks_;) (*body_)(i);
  }

  void work() {
    std::uint64_t seen = 0;
    while (true) {
      for (int spin = 0; spin < 1500 && generation_.load(std::memory_order_acquire) == seen; ++spin) __builtin_ia32_pause();
      generation_.wait(seen, std::memory_order_acquire);
      seen = generation_.load(std::memory_order_acquire);
      if (stop_) return;
      claim();
      busy_.fetch_sub(1, std::memory_order_release);
    }
  }

  std::vector<std::thread> workers_;
  const std::function<void(std::int64_t)>* body_ = nullptr;
  std::int64_t chunks_ = 0;
  std::atomic<bool> stop_{false};
  alignas(64) std::atomic<std::int64_t> next_{0};
  alignas(64) std::atomic<int> busy_{0};
  alignas(64) std::atomic<std::uint64_t> generation_{0};
};

}  // namespace bench

// SpinPool: the smallest fair way to put a hand-written loop on several threads, for the limit we compare with.
//
// The caller takes part and waits for chunks that were claimed, never for a thread to wake up: on a busy machine it does all the
// work itself. A worker that finds no work spins for some 50 us and then sleeps, so that it does not take a core from whatever is
// measured next. One call at a time.
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
    calls_.fetch_add(1);
    calls_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  // At most 2^20 - 1 chunks.
  void run(std::int64_t chunks, const std::function<void(std::int64_t)>& body) {
    body_ = &body;
    done_.store(0, std::memory_order_relaxed);
    const std::uint64_t call = (work_.load(std::memory_order_relaxed) >> 40) + 1;
    work_.store((call << 40) | (static_cast<std::uint64_t>(chunks) << 20), std::memory_order_release);
    calls_.fetch_add(1);
    calls_.notify_all();
    claim();
    while (done_.load(std::memory_order_acquire) != chunks) __builtin_ia32_pause();
  }

 private:
  // |work_| holds the call's number (24 bits), its chunks and the next of them (20 bits each) in one word: a claim by a worker
  // that was late for its call fails instead of taking a chunk of the next one.
  void claim() {
    std::uint64_t seen = work_.load(std::memory_order_acquire);
    while (true) {
      const std::uint64_t next = seen & kMask, chunks = (seen >> 20) & kMask;
      if (next >= chunks) return;
      if (!work_.compare_exchange_weak(seen, seen + 1, std::memory_order_acquire)) continue;
      (*body_)(static_cast<std::int64_t>(next));
      done_.fetch_add(1, std::memory_order_release);
      seen = work_.load(std::memory_order_acquire);
    }
  }

  void work() {
    std::uint32_t seen = 0;
    while (true) {
      for (int spin = 0; spin < 1500 && calls_.load(std::memory_order_acquire) == seen; ++spin) __builtin_ia32_pause();
      calls_.wait(seen, std::memory_order_acquire);
      seen = calls_.load(std::memory_order_acquire);
      if (stop_) return;
      claim();
    }
  }

  static constexpr std::uint64_t kMask = (1 << 20) - 1;
  std::vector<std::thread> workers_;
  const std::function<void(std::int64_t)>* body_ = nullptr;
  std::atomic<bool> stop_{false};
  alignas(64) std::atomic<std::uint64_t> work_{0};
  alignas(64) std::atomic<std::int64_t> done_{0};
  alignas(64) std::atomic<std::uint32_t> calls_{0};
};

}  // namespace bench

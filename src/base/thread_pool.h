// ThreadPool: a fixed set of threads that run one loop at a time together with the caller.
//
// for_each(chunks, body) calls body(chunk, worker) once for every chunk in [0, chunks), chunks being claimed from an
// atomic counter, and returns when all are done. The caller takes part, so a pool of n threads has n - 1 of its own. Idle threads
// spin briefly, then sleep on a futex. Which thread runs which chunk is not fixed: results must not depend on it.
//
// Lifetime: the destructor waits for the threads. process_pool() lives until the process ends.
// Thread safety: for_each may be called from several threads; calls that find the pool busy run their chunks in the
// calling thread alone. A body that calls for_each runs that inner loop alone, too. Exceptions of a body are passed on (the first
// one).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <type_traits>

namespace tenon {

class ThreadPool {
 public:
  // |threads| counts the caller; at least 1.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Upper bound of |worker| + 1 in bodies.
  int threads() const noexcept { return threads_; }

  // body(std::int64_t chunk, int worker); worker in [0, threads()) is unique among bodies running at one time in this
  // call, for per-thread scratch memory. The caller is worker 0. Allocates nothing.
  template <class Body>
  void for_each(std::int64_t chunks, Body&& body) {
    using B = std::remove_reference_t<Body>;
    run(
        chunks, [](void* context, std::int64_t chunk, int worker) { (*static_cast<B*>(context))(chunk, worker); },
        const_cast<std::remove_const_t<B>*>(&body));
  }

 private:
  using Call = void (*)(void* context, std::int64_t chunk, int worker);
  void run(std::int64_t chunks, Call call, void* context);

  struct State;
  int threads_;
  std::unique_ptr<State> state_;
};

// Cores this process may use: its affinity mask, lowered by the cgroup's CPU quota (rounded up), at least 1.
int usable_cores();
// The same, read below |root| ("proc/self/cgroup", "sys/fs/cgroup/...") for a process that may run on |affinity| cores.
int usable_cores(const std::filesystem::path& root, int affinity);

// The pool all of Tenon shares: TENON_THREADS, or usable_cores(), threads. Started on first use.
ThreadPool& process_pool();

}  // namespace tenon

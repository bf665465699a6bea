// ThreadPool: a fixed set of threads that run one loop at a time together with the caller.
//
// for_each(chunks, body) calls body(chunk, worker) once for every chunk in [0, chunks) and returns when all are done. Threads
// claim chunks one by one, each first those of its own part, so that loops over the same arrays find them in their caches. The
// caller takes part, so a pool of n threads owns n - 1. Idle threads spin briefly, then sleep on a futex. Which thread runs which
// chunk is not fixed, so results must not depend on it.
//
// Lifetime: the destructor waits for the threads. process_pool() lives until the process ends.
// Thread safety: for_each may be called from several threads; a call that finds the pool busy runs its chunks on the calling
// thread alone, and so does a nested call from inside a body. If bodies throw, the first exception is rethrown to the
// caller. A StopScope of the caller holds for all threads; it is checked between chunks, and for_each throws if it is met.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <type_traits>

namespace tenon {

class ThreadPool {
 public:
  // |threads| includes the caller; at least 1.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // An upper bound of |worker| + 1 in bodies.
  int threads() const noexcept { return threads_; }

  // body(std::int64_t chunk, int worker); worker in [0, threads()) is unique among the bodies running at the same time in this
  // call and can index per-thread scratch memory. The caller is worker 0. Allocates no memory.
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

// The cores this process may use: its affinity mask, reduced by the cgroup's CPU quota (rounded up), at least 1.
int usable_cores();
// The same, read under |root| ("proc/self/cgroup", "sys/fs/cgroup/...") for a process that may run on |affinity| cores.
int usable_cores(const std::filesystem::path& root, int affinity);

// The pool shared by all of Tenon, with TENON_THREADS or usable_cores() threads. Started on first use.
ThreadPool& process_pool();

}  // namespace tenon

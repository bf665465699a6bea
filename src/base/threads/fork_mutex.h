// ForkMutex: a mutex that is free in a forked child.
//
// fork() copies a mutex as it is. If another thread holds it at that moment, nobody in the child will ever release it, as that
// thread does not exist there. The thread that forks therefore locks all of these before, and releases them afterwards in both
// processes. For what the whole process shares: caches, registries, the memory pool.
//
// They may be locked within each other in any order. A thread must not fork while it holds one.
//
//   ForkMutex mutex;
//   const std::lock_guard lock(mutex);
#pragma once

#include <mutex>

namespace tenon {

class ForkMutex {
 public:
  ForkMutex();
  ~ForkMutex();
  ForkMutex(const ForkMutex&) = delete;
  ForkMutex& operator=(const ForkMutex&) = delete;

  void lock() { mutex_.lock(); }
  bool try_lock() noexcept { return mutex_.try_lock(); }
  void unlock() noexcept { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

}  // namespace tenon

#include "base/threads/fork_mutex.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

namespace tenon {
namespace {

struct Registry {
  std::mutex mutex;
  std::vector<ForkMutex*> all;

  bool try_lock_all() {
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i]->try_lock()) continue;
      while (i > 0) all[--i]->unlock();
      return false;
    }
    return true;
  }
  void unlock_all() {
    for (ForkMutex* each : all) each->unlock();
  }
};

Registry& registry();

// Never waits while it holds one: other threads lock them in orders of their own, and make new ones meanwhile.
void before_fork() {
  constexpr std::chrono::microseconds kBetweenAttempts{20};
  for (;;) {
    registry().mutex.lock();
    if (registry().try_lock_all()) return;
    registry().mutex.unlock();
    std::this_thread::sleep_for(kBetweenAttempts);
  }
}

void after_fork() {
  registry().unlock_all();
  registry().mutex.unlock();
}

// Never destroyed: a fork may come while the program ends.
Registry& registry() {
  static Registry* const instance = [] {
    auto* made = new Registry;
    pthread_atfork(&before_fork, &after_fork, &after_fork);
    return made;
  }();
  return *instance;
}

}  // namespace

ForkMutex::ForkMutex() {
  const std::lock_guard lock(registry().mutex);
  registry().all.push_back(this);
}

ForkMutex::~ForkMutex() {
  const std::lock_guard lock(registry().mutex);
  std::erase(registry().all, this);
}

}  // namespace tenon

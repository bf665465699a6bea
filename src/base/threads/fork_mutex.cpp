#include "base/threads/fork_mutex.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "base/threads/fork_section.h"

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

// Never destroyed: a fork may come while the program ends.
Registry& registry() {
  static Registry* const instance = new Registry;
  return *instance;
}

// Never waits while it holds one: other threads lock them in orders of their own, and make new ones meanwhile.
void before_fork() {
  constexpr std::chrono::microseconds kBetweenAttempts{20};
  constexpr std::chrono::seconds kLongestSection{5};  // one may hang with its device
  const auto until = std::chrono::steady_clock::now() + kLongestSection;
  for (;;) {
    registry().mutex.lock();
    if (registry().try_lock_all()) {
      if (hold_fork_sections() || std::chrono::steady_clock::now() > until) return;
      registry().unlock_all();
    }
    registry().mutex.unlock();
    std::this_thread::sleep_for(kBetweenAttempts);
  }
}

void after_fork_in_the_parent() {
  release_fork_sections();
  registry().unlock_all();
  registry().mutex.unlock();
}

void after_fork_in_the_child() {
  forget_fork_sections();
  registry().unlock_all();
  registry().mutex.unlock();
}

// When the library is loaded: sections may be entered before there is any mutex.
[[maybe_unused]] const int registered = pthread_atfork(&before_fork, &after_fork_in_the_parent, &after_fork_in_the_child);

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

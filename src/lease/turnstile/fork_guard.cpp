#include "lease/turnstile/fork_guard.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

#include "base/threads/fork_mutex.h"

namespace tenon::fork_guard {
namespace {

struct Guard {
  ForkMutex mutex;
  std::vector<int> descriptors;
  std::atomic<std::uint64_t> generation{1};
};

// Never destroyed: a fork may come while the program ends.
Guard& guard() {
  static Guard* const instance = [] {
    auto* made = new Guard;
    pthread_atfork(nullptr, nullptr, [] {
      for (const int fd : guard().descriptors) ::close(fd);
      guard().descriptors.clear();
      guard().generation.fetch_add(1);
    });
    return made;
  }();
  return *instance;
}

}  // namespace

FileDescriptor open(const std::function<FileDescriptor()>& open_one) {
  const std::lock_guard lock(guard().mutex);
  guard().descriptors.reserve(guard().descriptors.size() + 1);
  FileDescriptor fd = open_one();
  guard().descriptors.push_back(fd.get());
  return fd;
}

void close(FileDescriptor fd, std::uint64_t generation) noexcept {
  const std::lock_guard lock(guard().mutex);
  if (generation != guard().generation.load()) {
    fd.release();
    return;
  }
  std::erase(guard().descriptors, fd.get());
  fd = FileDescriptor();  // closes here, under the lock
}

std::uint64_t generation() noexcept { return guard().generation.load(); }

}  // namespace tenon::fork_guard

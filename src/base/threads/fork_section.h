// ForkSection: work that a fork never cuts in two.
//
// A forked child has only the thread that forked. What another thread had half done, a lock it held, a static value it was
// making, stays so in the child for ever. fork() therefore waits until no thread is within a section. Meant for short work: a
// fork waits at most a few seconds, so that a section that hangs with its device does not stop it. Sections may be within each
// other.
//
//   const ForkSection section;
#pragma once

#include <mutex>

namespace tenon {

class ForkSection {
 public:
  ForkSection() noexcept { enter(); }
  ~ForkSection() { leave(); }
  ForkSection(const ForkSection&) = delete;
  ForkSection& operator=(const ForkSection&) = delete;

  static void enter() noexcept;
  static void leave() noexcept;
};

// A mutex that is free in a forked child, for objects of which there are many (ForkMutex is for few, and costs less to lock).
class SectionMutex {
 public:
  void lock() {
    ForkSection::enter();
    mutex_.lock();
  }
  bool try_lock() noexcept {
    ForkSection::enter();
    if (mutex_.try_lock()) return true;
    ForkSection::leave();
    return false;
  }
  void unlock() noexcept {
    mutex_.unlock();
    ForkSection::leave();
  }

 private:
  std::mutex mutex_;
};

// For the handlers around fork(). The first waits a moment until no other thread is within a section, keeps them from entering
// one, and says whether it succeeded; the second ends that.
bool hold_fork_sections() noexcept;
void release_fork_sections() noexcept;
// Also ends it, in the child: threads within sections did not come along.
void forget_fork_sections() noexcept;

}  // namespace tenon

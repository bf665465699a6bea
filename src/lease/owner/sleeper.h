// Sleeper: the sleep of a device's owner thread, which ends at a deadline, when a descriptor becomes readable, or when another
// thread calls wake().
//
// Thread safety: all calls with the owner's mutex held; sleep() releases it meanwhile.
#pragma once

#include <poll.h>
#include <sys/eventfd.h>

#include <mutex>

#include "base/clock.h"
#include "base/system/file_descriptor.h"
#include "tenon/error.h"

namespace tenon {

class Sleeper {
 public:
  // Before the first sleep. Throws resource_exhausted.
  void prepare() {
    event_ = FileDescriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!event_) throw Error(ErrorCode::resource_exhausted, "no file descriptor is left for the thread of a device");
  }
  // A system call only where the thread is asleep.
  void wake() {
    if (std::exchange(is_asleep_, false)) eventfd_write(event_.get(), 1);
  }
  // The same where it would sleep beyond |time|.
  void wake_by(Clock::Time time) {
    if (time < wakes_at_) wake();
  }
  // True if |fd|, which may be -1, became readable. May return early.
  bool sleep(std::unique_lock<std::mutex>& lock, const Clock& clock, Clock::Time deadline, int fd) {
    const std::chrono::nanoseconds limit = clock.wait_limit(deadline);
    const auto whole = std::chrono::duration_cast<std::chrono::seconds>(limit);
    const timespec timeout{whole.count(), (limit - whole).count()};
    pollfd fds[2] = {{event_.get(), POLLIN, 0}, {fd, POLLIN, 0}};
    wakes_at_ = deadline;
    is_asleep_ = true;
    lock.unlock();
    ppoll(fds, 2, &timeout, nullptr);
    eventfd_t ignored;
    if (fds[0].revents) eventfd_read(event_.get(), &ignored);
    lock.lock();
    is_asleep_ = false;
    wakes_at_ = Clock::Time::min();
    return fds[1].revents != 0;
  }

 private:
  FileDescriptor event_;
  bool is_asleep_ = false;
  Clock::Time wakes_at_ = Clock::Time::min();  // awake: the thread looks at everything before it sleeps again
};

}  // namespace tenon

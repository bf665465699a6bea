#include "server/compute/thread_priority.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <system_error>
#include <thread>

namespace tenon::server {
namespace {

// As in the kernel's headers; the C library has no function for it.
struct SchedulingAttributes {
  std::uint32_t size = 48, policy = SCHED_OTHER;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime = 0, deadline = 0, period = 0;
};
static_assert(sizeof(SchedulingAttributes) == 48);
constexpr std::uint64_t kResetInChildren = 1;

}  // namespace

int own_nice() noexcept { return getpriority(PRIO_PROCESS, static_cast<id_t>(gettid())); }

bool may_prefer_threads() noexcept {
  bool may = false;
  try {
    std::thread([&may] {
      const int before = own_nice();
      set_own_nice(kConnectionsNice);
      may = own_nice() < before;
    }).join();
  } catch (const std::system_error&) {
    return false;
  }
  return may;
}

void set_own_nice(int nice) noexcept {
  if (nice >= 0) {
    setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), nice);
    return;
  }
  if (sched_getscheduler(0) != SCHED_OTHER) return;  // somebody has chosen another policy for the whole process
  SchedulingAttributes wanted;
  wanted.flags = kResetInChildren;
  wanted.nice = nice;
  syscall(SYS_sched_setattr, 0, &wanted, 0);
}

}  // namespace tenon::server

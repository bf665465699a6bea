// Local static values that are being made count as fork sections.
//
// The compiler calls these functions around the first initialisation of a `static` within a function. The standard library's do
// the same without regard to fork(): a child forked while another thread makes a value would wait for that thread, which it does
// not have. Local to this library; the layout of a guard is that of the Itanium C++ ABI: its first byte says that the value is
// there.
#include <atomic>
#include <cstdint>

#include "base/system/sanitizers.h"
#include "base/threads/fork_section.h"

// The thread sanitizer has such functions of its own.
#if defined(__x86_64__) && !TENON_THREAD_SANITIZER

namespace {

constexpr std::uint32_t kMade = 1, kBeingMade = 1 << 8;

std::atomic_ref<std::uint32_t> state_of(std::uint64_t* guard) {
  return std::atomic_ref(*reinterpret_cast<std::uint32_t*>(guard));
}

void end(std::uint64_t* guard, std::uint32_t state) {
  state_of(guard).store(state, std::memory_order_release);
  state_of(guard).notify_all();
  tenon::ForkSection::leave();
}

}  // namespace

// NOLINTBEGIN(bugprone-reserved-identifier): the compiler's names
extern "C" {
// Returns 1 if the caller is to make the value.
__attribute__((visibility("hidden"))) int __cxa_guard_acquire(std::uint64_t* guard) {
  for (;;) {
    tenon::ForkSection::enter();
    std::uint32_t state = 0;
    if (state_of(guard).compare_exchange_strong(state, kBeingMade, std::memory_order_acquire)) return 1;
    tenon::ForkSection::leave();  // who waits is not needed for the value
    if (state == kMade) return 0;
    state_of(guard).wait(state, std::memory_order_acquire);
  }
}
__attribute__((visibility("hidden"))) void __cxa_guard_release(std::uint64_t* guard) noexcept { end(guard, kMade); }
__attribute__((visibility("hidden"))) void __cxa_guard_abort(std::uint64_t* guard) noexcept { end(guard, 0); }
}
// NOLINTEND(bugprone-reserved-identifier)

#endif

#include "base/threads/fork_section.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <thread>

namespace tenon {
namespace {

constexpr std::chrono::microseconds kPause{20};
constexpr std::chrono::milliseconds kDrain{20};

// Threads share these counters by turns, so that they seldom write to the same cache line.
struct alignas(64) Slot {
  std::atomic<int> inside{0};
};
constinit std::array<Slot, 16> slots;
constinit std::atomic<unsigned> next_slot{0};
constinit std::atomic<bool> is_held{false};
// The model is that of a program's own variables: a few bytes, asked for often.
__attribute__((tls_model("initial-exec"))) constinit thread_local int depth = 0;
__attribute__((tls_model("initial-exec"))) constinit thread_local Slot* own = nullptr;

// Whether nobody but this thread is within a section.
bool is_drained() noexcept {
  int inside = depth > 0 ? -1 : 0;
  for (const Slot& slot : slots) inside += slot.inside.load();
  return inside == 0;
}

}  // namespace

void ForkSection::enter() noexcept {
  if (depth++ > 0) return;
  if (!own) own = &slots[next_slot.fetch_add(1) % slots.size()];
  for (;;) {
    own->inside.fetch_add(1);
    if (!is_held.load()) return;
    own->inside.fetch_sub(1);
    while (is_held.load()) std::this_thread::sleep_for(kPause);
  }
}

void ForkSection::leave() noexcept {
  if (--depth == 0) own->inside.fetch_sub(1);
}

bool hold_fork_sections() noexcept {
  is_held = true;
  const auto until = std::chrono::steady_clock::now() + kDrain;
  while (!is_drained()) {
    // Somebody in a section may wait for a thread that this keeps out.
    if (std::chrono::steady_clock::now() > until) {
      is_held = false;
      return false;
    }
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

void release_fork_sections() noexcept { is_held = false; }

void forget_fork_sections() noexcept {
  for (Slot& slot : slots) slot.inside = 0;
  if (depth > 0) own->inside = 1;
  is_held = false;
}

}  // namespace tenon

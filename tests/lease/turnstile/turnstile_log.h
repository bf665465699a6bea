// What processes in a turnstile write down while they are inside, in shared memory.
#pragma once

#include <atomic>
#include <cstdint>

struct TurnstileLog {
  std::atomic<int> left;                   // processes that have not finished
  std::atomic<int> queued;                 // processes that have a place and wait
  std::atomic<int> inside;                 // how many are, at this moment
  std::atomic<std::uint64_t> collisions;   // somebody else was inside already
  std::atomic<std::uint64_t> overtakings;  // a grant with an older ticket than the one before
  std::atomic<std::uint64_t> last_epoch;
  std::atomic<std::uint64_t> grants;
  std::atomic<std::uint64_t> most_grants_before;  // grants to others between a ticket and its grant, at most
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

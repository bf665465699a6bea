#include "base/threads/thread_pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/threads/stop_scope.h"
#include "base/threads/turn.h"
#include "tenon/error.h"

namespace tenon {
namespace {

using Clock = std::chrono::steady_clock;

// Long enough to bridge the gap between two steps of a program, short enough not to show in the profile of an idle process.
constexpr auto kWorkerSpin = std::chrono::microseconds(40);
// The caller has nothing else to do; but if a worker lost its core, yielding ours lets it continue.
constexpr auto kCallerSpin = std::chrono::microseconds(60);

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

template <class Done>
bool spin_until(Done&& done, Clock::duration limit) {
  if (done()) return true;
  if (limit == Clock::duration::zero()) return false;
  const auto end = Clock::now() + limit;
  do {
    for (int i = 0; i < 32; ++i) {
      pause();
      if (done()) return true;
    }
  } while (Clock::now() < end);
  return false;
}

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t seen) {
  static_assert(sizeof(word) == 4 && std::atomic<std::uint32_t>::is_always_lock_free);
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
}

void futex_wake(std::atomic<std::uint32_t>& word, int waiters) {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE_PRIVATE, waiters, nullptr, nullptr, 0);
}

}  // namespace

// The protocol. A thread enters a loop only through |unclaimed|: the thread that decrements it from a positive value owns one
// chunk, and the loop cannot end before that chunk is counted in |done|. So the fields of the loop (call, context, chunks,
// shares) may be read only after a successful claim; a thread that arrives late finds a value <= 0, or claims a chunk of the
// current loop. The caller waits for claimed chunks, never for threads.
//
// Which chunk it is, the shares decide: each thread has a contiguous part of the chunks, the same one in every loop of as many
// chunks, and takes those of others only when its own are used up. Loops over the same arrays so find them in the caches of the
// cores that used them last, which on many cores is worth more than the loop itself.
struct ThreadPool::State {
  // How many chunks of a thread's part are taken in the loop |number|. A share of an earlier loop counts as untouched, so that no
  // thread has to reset the cache lines of others.
  struct alignas(64) Share {
    static constexpr int kTakenBits = 40;
    std::atomic<std::uint64_t> value{0};  // loop number << kTakenBits | taken
  };

  alignas(64) std::atomic<std::int64_t> unclaimed{0};

  alignas(64) std::atomic<std::int64_t> done{0};
  std::atomic<std::uint32_t> caller_sleeps{0};

  alignas(64) Call call = nullptr;
  void* context = nullptr;
  std::int64_t chunks = 0;
  std::uint64_t number = 0;          // of the loop; below 2^24
  const StopScope* scope = nullptr;  // of the caller
  std::vector<Share> shares;         // one per thread

  alignas(64) std::atomic<bool> busy{false};
  std::atomic<bool> failed{false};
  std::exception_ptr error;

  alignas(64) std::atomic<std::uint32_t> wakeups{0};
  std::atomic<int> sleepers{0};
  std::atomic<bool> stop{false};

  Clock::duration worker_spin{}, caller_spin{};
  std::vector<std::thread> workers;

  // Runs chunks until none is unclaimed. Returns at once if there is none.
  void take_part(int worker);
  void serve(int worker);
  void wait_for_claimed_chunks(std::int64_t all);
  void wake_workers(std::int64_t wanted);
  std::int64_t run_chunk(std::int64_t chunk, int worker);
  std::int64_t choose_chunk(int worker);
  bool take_from(Share& share, std::int64_t count, std::int64_t& taken) const;
  void begin_loop();
};

void ThreadPool::State::begin_loop() {
  if (++number < std::uint64_t{1} << (64 - Share::kTakenBits)) return;
  number = 1;
  for (Share& share : shares) share.value.store(0, std::memory_order_relaxed);
}

bool ThreadPool::State::take_from(Share& share, std::int64_t count, std::int64_t& taken) const {
  const std::uint64_t untouched = number << Share::kTakenBits;
  std::uint64_t value = share.value.load(std::memory_order_relaxed);
  while (true) {
    const std::uint64_t now = value >> Share::kTakenBits == number ? value : untouched;
    taken = static_cast<std::int64_t>(now - untouched);
    if (taken >= count) return false;
    if (share.value.compare_exchange_weak(value, now + 1, std::memory_order_relaxed)) return true;
  }
}

// A chunk of the thread's own part, otherwise of the next thread that has one. The caller has claimed a chunk, so there is one.
std::int64_t ThreadPool::State::choose_chunk(int worker) {
  const auto threads = static_cast<std::int64_t>(shares.size());
  const std::int64_t each = chunks / threads, more = chunks % threads;  // the first |more| parts have one more
  for (std::int64_t part = worker;; part = part + 1 == threads ? 0 : part + 1) {
    std::int64_t taken = 0;
    if (take_from(shares[static_cast<std::size_t>(part)], each + (part < more ? 1 : 0), taken))
      return part * each + std::min(part, more) + taken;
  }
}

// Returns how many chunks this completes: one, or after an exception also all unclaimed ones.
std::int64_t ThreadPool::State::run_chunk(std::int64_t chunk, int worker) {
  try {
    const StopScope::Borrow borrowed(scope);
    if (scope) scope->check();
    call(context, chunk, worker);
    return 1;
  } catch (...) {
    if (!failed.exchange(true)) error = std::current_exception();
    return 1 + std::max<std::int64_t>(0, unclaimed.exchange(0, std::memory_order_acq_rel));
  }
}

void ThreadPool::State::take_part(int worker) {
  std::int64_t settled = 0, all = 0;
  while (unclaimed.load(std::memory_order_relaxed) > 0) {
    const std::int64_t left = unclaimed.fetch_sub(1, std::memory_order_acq_rel);
    if (left <= 0) break;
    all = chunks;
    settled += run_chunk(choose_chunk(worker), worker);
  }
  if (settled == 0) return;
  // Sequentially consistent, like the caller's store to caller_sleeps: at least one of the two sees the other's store.
  if (done.fetch_add(settled) + settled == all && worker != 0 && caller_sleeps.load() != 0) {
    caller_sleeps.store(0);
    futex_wake(caller_sleeps, 1);
  }
}

void ThreadPool::State::serve(int worker) {
  while (!stop.load(std::memory_order_acquire)) {
    take_part(worker);
    const auto has_work = [this] {
      return unclaimed.load(std::memory_order_relaxed) > 0 || stop.load(std::memory_order_relaxed);
    };
    if (spin_until(has_work, worker_spin)) continue;
    const std::uint32_t seen = wakeups.load();
    sleepers.fetch_add(1);
    if (unclaimed.load() <= 0 && !stop.load()) futex_wait(wakeups, seen);
    sleepers.fetch_sub(1);
  }
}

void ThreadPool::State::wake_workers(std::int64_t wanted) {
  const int asleep = sleepers.load();
  if (asleep == 0) return;
  wakeups.fetch_add(1);
  futex_wake(wakeups, static_cast<int>(std::min<std::int64_t>(wanted, asleep)));
}

void ThreadPool::State::wait_for_claimed_chunks(std::int64_t all) {
  const auto finished = [&] { return done.load(std::memory_order_acquire) == all; };
  while (!spin_until(finished, caller_spin)) {
    caller_sleeps.store(1);
    if (done.load() != all) futex_wait(caller_sleeps, 1);
    caller_sleeps.store(0);
  }
}

ThreadPool::ThreadPool(int threads) : threads_(std::max(1, threads)), state_(std::make_unique<State>()) {
  if (threads_ == 1) return;
  state_->shares = std::vector<State::Share>(static_cast<std::size_t>(threads_));
  if (threads_ <= usable_cores()) {
    state_->worker_spin = kWorkerSpin;
    state_->caller_spin = kCallerSpin;
  }
  // Leave signals to the threads of the program.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    for (int worker = 1; worker < threads_; ++worker) {
      state_->workers.emplace_back([state = state_.get(), worker] { state->serve(worker); });
      pthread_setname_np(state_->workers.back().native_handle(), ("tenon-" + std::to_string(worker)).c_str());
    }
  } catch (const std::system_error&) {
    // The system refuses more threads: run loops on the existing ones.
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

ThreadPool::~ThreadPool() {
  state_->stop.store(true);
  state_->wakeups.fetch_add(1);
  futex_wake(state_->wakeups, threads_);
  for (auto& worker : state_->workers) worker.join();
}

void ThreadPool::run(std::int64_t chunks, Call call, void* context) {
  State& state = *state_;
  const StopScope* const scope = StopScope::current();
  const Turn* const turn = Turn::current();
  if (chunks <= 1 || threads_ == 1 || (turn && turn->is_crowded()) || state.busy.exchange(true, std::memory_order_acquire)) {
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
      if (scope && chunk > 0) scope->check();
      call(context, chunk, 0);
    }
    return;
  }
  state.call = call;
  state.context = context;
  state.chunks = chunks;
  state.scope = scope;
  state.begin_loop();
  state.done.store(0, std::memory_order_relaxed);
  // Sequentially consistent: a worker that goes to sleep either sees these chunks or is seen among the sleepers.
  state.unclaimed.store(chunks);
  state.wake_workers(chunks - 1);
  state.take_part(0);
  state.wait_for_claimed_chunks(chunks);

  std::exception_ptr error;
  if (state.failed.load()) {
    error = std::exchange(state.error, nullptr);
    state.failed.store(false);
  }
  state.busy.store(false, std::memory_order_release);
  if (error) std::rethrow_exception(error);
}

ThreadPool& process_pool() {
  // Never destroyed, because threads may still compute while static objects are destroyed.
  static ThreadPool* const pool = [] {
    int threads = usable_cores();
    if (const char* wanted = std::getenv("TENON_THREADS"); wanted && *wanted) {
      const std::string_view text = wanted;
      int value = 0;
      const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (failure != std::errc() || end != text.data() + text.size() || value < 1 || value > 4096)
        throw Error(ErrorCode::invalid_argument, "TENON_THREADS is \"" + std::string(text) + "\", not a number of threads",
                    "set it to a number from 1 to 4096, or unset it to use all cores");
      threads = value;
    }
    return new ThreadPool(threads);
  }();
  return *pool;
}

}  // namespace tenon

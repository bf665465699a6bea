#include "emulated/block.h"

#include <fmt/format.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "tenon/error.h"

// Saves where the caller is in |from| and goes on where |to| was saved.
#if defined(__x86_64__)
extern "C" void tenon_switch_stack(void** from, void* to);
asm(R"(
.text
.p2align 4
.type tenon_switch_stack, @function
tenon_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size tenon_switch_stack, . - tenon_switch_stack
)");
#elif defined(__aarch64__)
extern "C" void tenon_switch_stack(void** from, void* to);
asm(R"(
.text
.p2align 4
.type tenon_switch_stack, %function
tenon_switch_stack:
  sub sp, sp, #160
  stp x19, x20, [sp]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size tenon_switch_stack, . - tenon_switch_stack
)");
#endif

namespace tenon::emulated {
namespace {

constexpr int kMost = 1024;  // work-items of a block
constexpr std::size_t kStack = std::size_t{128} << 10, kSignalStack = std::size_t{64} << 10;
constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE};

Block* running = nullptr;
sigjmp_buf after_signal;

std::byte* mapped(std::size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw Error(ErrorCode::resource_exhausted, "no memory for the stacks of work-items");
  return static_cast<std::byte*>(memory);
}

// The stack of a function that has not begun.
void* first_stack(std::byte* end, void (*function)()) {
#if defined(__x86_64__)
  auto* const words = reinterpret_cast<void**>(end) - 10;  // six registers, the function, where it would return
  std::memset(words, 0, 10 * sizeof(void*));
  words[6] = reinterpret_cast<void*>(function);
  return words;
#elif defined(__aarch64__)
  auto* const words = reinterpret_cast<void**>(end) - 20;
  std::memset(words, 0, 20 * sizeof(void*));
  words[11] = reinterpret_cast<void*>(function);
  return words;
#endif
}

}  // namespace

Block::Block()
    : stacks_(mapped(kMost * kStack)),
      signal_stack_(mapped(kSignalStack)),
      saved_(kMost),
      next_(kMost),
      before_(kMost) {
  for (std::size_t i = 0; i < kMost; ++i) mprotect(stacks_ + i * kStack, 4096, PROT_NONE);
  runner_.barrier = [](int line) { running->meet(Waits::at_barrier, line); };
  runner_.exchange = [](unsigned long long mine, int line) { return running->exchange(mine, line); };
  runner_.wait_for_last = [] { running->meet(Waits::for_last, 0); };
}

Block::~Block() {
  munmap(stacks_, kMost * kStack);
  munmap(signal_stack_, kSignalStack);
}

void Block::run(const std::array<std::uint32_t, 3>& blocks, const std::array<int, 3>& size, const std::function<void()>& item,
                const BlockHooks& hooks) {
  size_ = size;
  count_ = size[0] * size[1] * size[2];
  if (count_ < 1 || count_ > kMost) throw Error(ErrorCode::internal, fmt::format("a block of {} work-items", count_));
  item_ = &item;
  hooks_ = &hooks;
  running = this;
  for (std::size_t i = 0; i < 3; ++i) {
    runner_.blocks[i] = blocks[i];
    runner_.threads[i] = static_cast<unsigned>(size[i]);
  }
  stack_t stack{}, old_stack{};
  stack.ss_sp = signal_stack_;
  stack.ss_size = kSignalStack;
  sigaltstack(&stack, &old_stack);
  std::array<struct sigaction, std::size(kSignals)> old{};
  for (std::size_t i = 0; i < std::size(kSignals); ++i) {
    struct sigaction action{};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(kSignals[i], &action, &old[i]);
  }
  error_.clear();
  std::uint64_t number = 0;
  auto& [x, y, z] = runner_.block;
  for (z = 0; z < blocks[2] && error_.empty(); ++z)
    for (y = 0; y < blocks[1] && error_.empty(); ++y)
      for (x = 0; x < blocks[0] && error_.empty(); ++x) run_block(number++ % 2 == 1, hooks);
  for (std::size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &old[i], nullptr);
  sigaltstack(&old_stack, nullptr);
  running = nullptr;
  if (!error_.empty()) throw Error(ErrorCode::internal, error_);
}

void Block::run_block(bool is_backwards, const BlockHooks& hooks) {
  live_ = count_;
  idle_ = arrived_ = have_waited_ = 0;
  reason_ = Waits::not_at_all;
  warps_.assign(static_cast<std::size_t>(count_ + 31) / 32, {});
  for (std::size_t w = 0; w < warps_.size(); ++w) {
    warps_[w].lanes = std::min(32, count_ - static_cast<int>(w) * 32);
    for (auto& values : warps_[w].values) values.fill(~0ull);
  }
  for (int i = 0; i < count_; ++i) {
    const int other = is_backwards ? count_ - 1 - i : i, step = is_backwards ? count_ - 1 : 1;
    next_[static_cast<std::size_t>(other)] = (other + step) % count_;
    before_[static_cast<std::size_t>((other + step) % count_)] = other;
    saved_[static_cast<std::size_t>(i)] = first_stack(stacks_ + static_cast<std::size_t>(i + 1) * kStack, enter);
  }
  if (hooks.begin) hooks.begin();
  if (sigsetjmp(after_signal, 1) != 0) return;
  resume(is_backwards ? count_ - 1 : 0);
  tenon_switch_stack(&main_, saved_[static_cast<std::size_t>(now_)]);
}

void Block::enter() {
  (*running->item_)();
  running->finished();
}

void Block::resume(int item) {
  now_ = item;
  runner_.thread[0] = static_cast<unsigned>(item % size_[0]);
  runner_.thread[1] = static_cast<unsigned>(item / size_[0] % size_[1]);
  runner_.thread[2] = static_cast<unsigned>(item / size_[0] / size_[1]);
  runner_.lane = item % 32;
  runner_.lanes = warps_[static_cast<std::size_t>(item) / 32].lanes;
}

void Block::yield() {
  if (++idle_ > 2 * live_) fail("work-items wait for others that do not come");
  const auto from = static_cast<std::size_t>(now_);
  resume(next_[from]);
  if (now_ != static_cast<int>(from)) tenon_switch_stack(&saved_[from], saved_[static_cast<std::size_t>(now_)]);
}

void Block::release() {
  if (reason_ == Waits::for_last && hooks_->passed) hooks_->passed();
  arrived_ = idle_ = 0;
  reason_ = Waits::not_at_all;
  ++turn_;
}

void Block::meet(Waits reason, int line) {
  if (reason == Waits::for_last) ++have_waited_;
  if (arrived_ == 0) {
    reason_ = reason;
    line_ = line;
  } else if (reason_ != reason || line_ != line) {
    fail(fmt::format("barriers at lines {} and {} met", line_, line));
  }
  idle_ = 0;
  const std::uint64_t turn = turn_;
  if (++arrived_ == live_) return release();
  while (turn_ == turn) yield();
}

const unsigned long long* Block::exchange(unsigned long long mine, int line) {
  Warp& warp = warps_[static_cast<std::size_t>(now_) / 32];
  const std::uint64_t turn = warp.turn;
  auto& values = warp.values[turn % 2];
  if (warp.arrived == 0)
    warp.line = line;
  else if (warp.line != line)
    fail(fmt::format("lanes of a warp exchange at lines {} and {}", warp.line, line));
  values[static_cast<std::size_t>(now_) % 32] = mine;
  idle_ = 0;
  if (++warp.arrived == warp.lanes) {
    warp.arrived = 0;
    ++warp.turn;
  } else {
    while (warp.turn == turn) yield();
  }
  return values.data();
}

void Block::finished() {
  const auto item = static_cast<std::size_t>(now_);
  if (have_waited_ == 0 && hooks_->passed) fail("the kernel ends without having waited for the one before");
  Warp& warp = warps_[item / 32];
  if (warp.arrived > 0) fail(fmt::format("a lane ends while others exchange at line {}", warp.line));
  idle_ = 0;
  --live_;
  const int next = next_[item], before = before_[item];
  next_[static_cast<std::size_t>(before)] = next;
  before_[static_cast<std::size_t>(next)] = before;
  void* unused = nullptr;
  if (live_ == 0) tenon_switch_stack(&unused, main_);
  if (arrived_ == live_) release();
  resume(next);
  tenon_switch_stack(&unused, saved_[static_cast<std::size_t>(next)]);
}

std::string Block::where() const {
  const auto& b = runner_.block;
  return fmt::format("block ({}, {}, {}), work-item {}", b[0], b[1], b[2], now_);
}

void Block::fail(const std::string& what) {
  error_ = fmt::format("{}: {}", where(), what);
  void* unused = nullptr;
  tenon_switch_stack(&unused, main_);
  __builtin_unreachable();
}

void Block::on_signal(int number, siginfo_t* info, void*) {
  Block& block = *running;
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  const bool is_memory = number == SIGSEGV || number == SIGBUS;
  block.error_ = fmt::format("{}: {}", block.where(),
                             is_memory && block.hooks_->place ? "memory at " + block.hooks_->place(address)
                                                              : fmt::format("signal {}, as after a failed check", number));
  siglongjmp(after_signal, 1);
}

}  // namespace tenon::emulated

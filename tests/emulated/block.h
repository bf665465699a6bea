// The work-items of a block as fibers on one thread: each runs until it waits for others, at a barrier, at an exchange of a warp,
// or for the kernel before. So the result does not depend on time, and what a work-item reads before another has written it, with
// no barrier between, is found unwritten: blocks of odd numbers run their work-items in the opposite order.
//
// Throws internal, naming the block and the work-item, for memory that is not there, for an instruction that is not valid (the
// checks that were compiled in end in one), and for work-items that wait in different places or forever.
// Thread safety: none; one at a time in a process, whose handlers of signals it takes while it runs.
//
//   Block block;
//   block.run({132, 1, 1}, {256, 1, 1}, memory, kernel, arguments, hooks);
#pragma once

#include <signal.h>

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "emulated/runner.h"

namespace tenon::emulated {

struct BlockHooks {
  std::function<void()> begin;                       // before the work-items of a block
  std::function<void()> passed;                      // once all of them have waited for the kernel before
  std::function<std::string(std::uintptr_t)> place;  // says where an address is
};

class Block {
 public:
  Block();
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  // What the text asks of; it must not outlive this.
  Runner& runner() { return runner_; }
  // All blocks of a launch, one after the other. |item| runs as every work-item.
  void run(const std::array<std::uint32_t, 3>& blocks, const std::array<int, 3>& size, const std::function<void()>& item,
           const BlockHooks& hooks);

 private:
  enum class Waits : std::uint8_t { not_at_all, at_barrier, for_last };
  struct Warp {
    int lanes = 0, arrived = 0, line = 0;
    std::uint64_t turn = 0;
    std::array<std::array<unsigned long long, 32>, 2> values{};
  };

  void run_block(bool is_backwards, const BlockHooks& hooks);
  void start(int item);
  static void enter();
  void resume(int item);
  void yield();
  void meet(Waits reason, int line);
  const unsigned long long* exchange(unsigned long long mine, int line);
  void finished();
  [[noreturn]] void fail(const std::string& what);
  void release();
  static void on_signal(int number, siginfo_t* info, void*);
  std::string where() const;

  Runner runner_{};
  std::byte* stacks_ = nullptr;
  std::byte* signal_stack_ = nullptr;
  std::vector<void*> saved_;  // the stack of each work-item that does not run
  void* main_ = nullptr;
  std::vector<int> next_, before_;
  std::vector<Warp> warps_;
  std::array<int, 3> size_{};
  const std::function<void()>* item_ = nullptr;
  const BlockHooks* hooks_ = nullptr;
  int count_ = 0, now_ = 0, live_ = 0, idle_ = 0;
  // Of the barrier.
  int arrived_ = 0, line_ = 0, have_waited_ = 0;
  Waits reason_ = Waits::not_at_all;
  std::uint64_t turn_ = 0;
  std::string error_;
};

}  // namespace tenon::emulated

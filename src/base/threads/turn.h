// Turn: the right of a thread to compute on the CPU, where more threads want to than there are cores.
//
// A thread that is interrupted by the system may hold a lock that others need, the heap's for one; with many threads on few cores
// it gets the next core much later. So whoever has many tasks lets only some of them compute at a time, and these make room for
// others where they hold no lock: StopScope::check(), which long loops call between tiles, offers the turn. A thread that
// is about to wait for something else makes a WithoutTurn. Threads without a turn (all, unless somebody gives turns out) are not
// concerned.
//
// Thread safety: a turn is its thread's own.
#pragma once

namespace tenon {

class Turn {
 public:
  // Of the calling thread; nullptr if it has none.
  static Turn* current() noexcept;

  // May block until it is this thread's turn again.
  virtual void offer() noexcept = 0;
  virtual void give_back() noexcept = 0;
  virtual void take_again() noexcept = 0;
  // Whether others have or want all cores, so that helping threads would be in their way.
  virtual bool is_crowded() const noexcept = 0;

 protected:
  Turn() = default;
  ~Turn() = default;
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  static void set_current(Turn* turn) noexcept;
};

// On the stack of a thread that waits, or computes where few can. Make it before locks are taken, so that it is destroyed after
// they are released: the destructor waits for a turn.
class WithoutTurn {
 public:
  WithoutTurn() noexcept : turn_(Turn::current()) {
    if (turn_) turn_->give_back();
  }
  ~WithoutTurn() {
    if (turn_) turn_->take_again();
  }
  WithoutTurn(const WithoutTurn&) = delete;
  WithoutTurn& operator=(const WithoutTurn&) = delete;

 private:
  Turn* const turn_;
};

}  // namespace tenon

// StopScope: lets a long computation of this thread be stopped from outside: its requester has gone, or its time is over.
//
// Whoever starts a computation makes a scope. Loops below call check_stop() between tiles; ThreadPool does so between chunks, on
// all of its threads. Scopes nest: an inner one is met as soon as one of the outer ones is.
//
// Lifetime: on the stack of the thread it is for. Thread safety: the const members may be called from any thread while it lives.
//
//   const StopScope scope(cancel, std::chrono::seconds(300));
//   executable.run(inputs, outputs);        // throws cancelled or deadline_exceeded between two tiles
#pragma once

#include <chrono>
#include <optional>
#include <stop_token>

namespace tenon {

class StopScope {
 public:
  using Clock = std::chrono::steady_clock;

  // |limit| runs from now on.
  explicit StopScope(std::stop_token cancel, std::optional<std::chrono::nanoseconds> limit = std::nullopt) noexcept;
  ~StopScope();
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;

  // The innermost scope of this thread; nullptr if there is none.
  static const StopScope* current() noexcept;

  bool is_cancelled() const noexcept;
  bool is_expired() const noexcept;
  bool is_met() const noexcept { return is_cancelled() || is_expired(); }
  // Throws if the scope is met. Before that, offers the turn of this thread (turn.h): no lock may be held.
  void check() const;
  [[noreturn]] void raise() const;

  // Makes a scope of another thread, which works for it, the current one of this thread.
  class Borrow {
   public:
    explicit Borrow(const StopScope* scope) noexcept;
    ~Borrow();
    Borrow(const Borrow&) = delete;
    Borrow& operator=(const Borrow&) = delete;

   private:
    const StopScope* const own_;
  };

 private:
  const StopScope* const outer_;
  const std::stop_token cancel_;
  const std::optional<std::chrono::nanoseconds> limit_;
  const Clock::time_point deadline_;
};

// Throws cancelled or deadline_exceeded if a scope of this thread is met. May wait for a turn, as StopScope::check().
inline void check_stop() {
  if (const StopScope* scope = StopScope::current()) scope->check();
}

}  // namespace tenon

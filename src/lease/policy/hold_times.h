// HoldTimes: how long this process may keep one device: idle, by the keep-open policy; in use while others wait, by a quantum.
// Learns from what it is told of openings, closings and idle times. Thread safety: none of its own.
#pragma once

#include <algorithm>
#include <optional>

#include "base/clock.h"
#include "lease/policy/keep_open.h"

namespace tenon {

class HoldTimes {
 public:
  // |quantum|, |min_hold| in seconds; none: from the measured times of opening and closing.
  HoldTimes(KeepOpen policy, BreakEven break_even, std::optional<double> quantum, std::optional<double> min_hold)
      : policy_(std::move(policy)),
        break_even_(break_even),
        quantum_(quantum),
        min_hold_(min_hold) {}

  const KeepOpen& policy() const noexcept { return policy_; }
  double expected_open_seconds() const noexcept { return break_even_.open_seconds(); }
  // After this long a holder gives the device to a waiter.
  Clock::Duration quantum() const { return Clock::duration(quantum_.value_or(std::max(1.0, 10 * break_even_.cycle_seconds()))); }
  // For this long a short pause between two operations does not count as idle.
  Clock::Duration min_hold() const { return Clock::duration(min_hold_.value_or(std::max(0.05, break_even_.cycle_seconds()))); }
  // When a device that is idle from |now| on is closed.
  Clock::Time idle_until(Clock::Time now) const {
    const double threshold = policy_.threshold();
    return threshold < 1e9 ? now + Clock::duration(threshold) : Clock::kNever;
  }

  void opened(double seconds) {
    break_even_.record_open(seconds);
    update();
  }
  void closed(double seconds) {
    break_even_.record_close(seconds);
    update();
  }

  // The time without work runs from the end of the last lease to the request for the next, through closings by the policy.
  void work_ended(Clock::Time now) { idle_since_ = now; }
  void opened_for_nobody(Clock::Time now) { idle_since_ = idle_since_.value_or(now); }
  // A request that came before the last lease ended left no time without work.
  void work_came(Clock::Time asked_at) {
    if (idle_since_ && asked_at > *idle_since_) policy_.record_gap(Clock::seconds_between(*idle_since_, asked_at));
    idle_since_.reset();
  }
  // The device was closed for another reason than the policy's: nobody knows how long the idle time would have been.
  void idle_time_cut_short(Clock::Time now) {
    if (idle_since_) policy_.record_gap(std::max(0.0, Clock::seconds_between(*idle_since_, now)), /*censored=*/true);
    idle_since_.reset();
  }
  void forget_idle_time() { idle_since_.reset(); }

 private:
  void update() {
    if (break_even_.seconds() > 0) policy_.set_break_even(break_even_.seconds());
  }

  KeepOpen policy_;
  BreakEven break_even_;
  const std::optional<double> quantum_, min_hold_;
  std::optional<Clock::Time> idle_since_;
};

}  // namespace tenon

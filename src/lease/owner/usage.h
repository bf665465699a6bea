// Usage: what happened to one device and how long that took; DeviceStatus is made from it.
//
// The device is in one period at any time. A period counts while it runs: a device that has been idle for an hour has been open
// for an hour. Thread safety: none of its own.
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "tenon/lease/device_status.h"

namespace tenon {

class Usage {
 public:
  enum class Period : std::uint8_t { closed, opening, idle, busy, closing };

  explicit Usage(Clock::Time now) : since_(now) {}

  // Without the times of periods: at() has those.
  DeviceCounters counters;
  DeviceCounters at(Clock::Time now) const {
    DeviceCounters all = counters;
    if (double* seconds = seconds_of(period_, all)) *seconds += Clock::seconds_between(since_, now);
    return all;
  }

  // Ends the period that runs and begins |period|.
  void begin(Period period, Clock::Time now) {
    if (double* seconds = seconds_of(period_, counters)) *seconds += Clock::seconds_between(since_, now);
    period_ = period;
    since_ = now;
  }
  double period_seconds(Clock::Time now) const { return Clock::seconds_between(since_, now); }

  // A lease was granted without a wait.
  void granted() {
    ++counters.warm;
    ++counters.warm_waits.counts.front();
  }
  // A lease was granted after |seconds|, of which |queued_seconds| were not spent opening the device.
  void granted_after(double seconds, double queued_seconds, bool found_open) {
    ++(found_open ? counters.warm : counters.cold);
    (found_open ? counters.queued_waits : counters.cold_waits).record(seconds);
    counters.queue_seconds += queued_seconds;
  }
  void released(double held_seconds, Clock::Time now) {
    constexpr double kSmoothing = 0.1;
    usual_hold_seconds_ =
        usual_hold_seconds_ ? *usual_hold_seconds_ + kSmoothing * (held_seconds - *usual_hold_seconds_) : held_seconds;
    last_used_ = now;
  }
  void opened(double seconds) {
    ++counters.opens;
    last_open_seconds_ = seconds;
  }
  // How many closes in a row have failed.
  int closed(bool failed) {
    ++counters.closes;
    counters.close_failures += failed;
    return close_failures_in_a_row_ = failed ? close_failures_in_a_row_ + 1 : 0;
  }

  // Tells one opening of the device from another.
  std::uint64_t openings() const noexcept { return counters.opens + counters.open_failures; }
  double last_open_seconds() const noexcept { return last_open_seconds_; }
  // Recent holds weigh more. None before the first has ended.
  std::optional<double> usual_hold_seconds() const noexcept { return usual_hold_seconds_; }
  Clock::Time last_used() const noexcept { return last_used_; }

 private:
  static double* seconds_of(Period period, DeviceCounters& of) {
    switch (period) {
      case Period::opening: return &of.open_seconds;
      case Period::idle: return &of.idle_seconds;
      case Period::busy: return &of.busy_seconds;
      case Period::closing: return &of.close_seconds;
      case Period::closed: break;
    }
    return nullptr;
  }

  Period period_ = Period::closed;
  Clock::Time since_, last_used_{};
  double last_open_seconds_ = 0;
  std::optional<double> usual_hold_seconds_;
  int close_failures_in_a_row_ = 0;
};

}  // namespace tenon

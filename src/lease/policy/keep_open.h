// KeepOpen: how long a device stays open when there is no work. Decisions only: no clock, no device, no thread.
//
// Idle time costs one unit a second; closing and opening again costs as much as B seconds of it, the break-even. After work ends,
// hold the device for threshold() seconds, then close it; when the next work comes, tell record_gap() how long the idle time was.
// The best anyone could have done who knew the future is to hold through gaps shorter than B and to close at once before the
// others: cost over that optimum is kept as it goes.
//
//   policy       threshold
//   on_demand    0
//   linger       fixed; B if none is given, which never costs more than twice the optimum
//   adaptive     B, or the one of {0, 1/16, 1/8, 1/4, 1/2, 1, 2, 4} x B that was clearly better on recent gaps; guarded, so that
//                cost <= 2 x optimum + 5 B, always
//   always       infinite
//
// Costs and losses are kept in units of B, so that B may be corrected as openings and closings are measured.
// Lifetime: a value. Thread safety: as for a standard container.
//
//   KeepOpen policy = KeepOpen::adaptive(break_even.seconds());
//   ... work ends; no more for policy.threshold() seconds: close ...
//   policy.record_gap(idle_seconds);
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

namespace tenon {

// The break-even of a device: W x (open + close), where W says how many seconds of holding an idle device one second of waiting
// for it to open is worth. Times are averages that follow what is measured.
class BreakEven {
 public:
  static constexpr double kDefaultWorth = 10;
  // Starts from what the backend declares.
  BreakEven(double open_seconds, double close_seconds, double worth = kDefaultWorth);
  void record_open(double seconds);
  void record_close(double seconds);
  double seconds() const noexcept { return worth_ * (open_ + close_); }
  double open_seconds() const noexcept { return open_; }
  double cycle_seconds() const noexcept { return open_ + close_; }

 private:
  double open_, close_, worth_;
};

class KeepOpen {
 public:
  static constexpr double kForever = std::numeric_limits<double>::infinity();

  // |break_even| in seconds, above 0; throws invalid_argument otherwise.
  static KeepOpen on_demand(double break_even);
  static KeepOpen linger(double break_even, std::optional<double> seconds = std::nullopt);
  static KeepOpen adaptive(double break_even);
  static KeepOpen always(double break_even);

  // "on_demand", "linger", "adaptive", "always".
  std::string_view name() const noexcept;
  // Seconds to hold the device idle from now on; the same until the next record_gap() or set_break_even().
  double threshold() const noexcept;
  // An idle time that ended with work. |censored|: it ended because the device was given to somebody else or closed for another
  // reason, and says only that it would have been at least that long; it counts if it was longer than the threshold.
  void record_gap(double seconds, bool censored = false);
  void set_break_even(double seconds);

  double break_even() const noexcept { return break_even_; }
  // Since the beginning, in units of B.
  double cost() const noexcept { return cost_; }
  double optimum() const noexcept { return optimum_; }
  // 1 before anything was recorded.
  double cost_over_optimum() const noexcept { return optimum_ > 0 ? cost_ / optimum_ : 1; }

 private:
  enum class Kind : std::uint8_t { on_demand, linger, adaptive, always };
  static constexpr std::array<double, 8> kCandidates{0, 1.0 / 16, 1.0 / 8, 1.0 / 4, 1.0 / 2, 1, 2, 4};

  KeepOpen(Kind kind, double break_even);
  double threshold_in_units() const noexcept;

  Kind kind_;
  double break_even_;
  std::optional<double> linger_seconds_;
  double cost_ = 0, optimum_ = 0;
  std::array<double, 8> losses_{};  // of each candidate, recent gaps weighing more
};

}  // namespace tenon

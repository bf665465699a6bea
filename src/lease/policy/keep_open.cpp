#include "lease/policy/keep_open.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tenon/error.h"

namespace tenon {
namespace {

constexpr double kSmoothing = 0.2;  // of measured open and close times
constexpr double kDecay = 0.99;     // of a candidate's losses, per gap
constexpr double kPriorGaps = 4;    // head start of the threshold B
constexpr double kMargin = 1;       // one reopening: by as much another threshold must be better than B to be played
constexpr double kSlack = 2;        // in units of B, before the guard plays B

// With everything in units of B.
double cost_of(double gap, double threshold) { return gap <= threshold ? gap : threshold + 1; }

double checked_seconds(double seconds, const char* what) {
  if (!(seconds >= 0) || !std::isfinite(seconds))
    throw Error(ErrorCode::invalid_argument, fmt::format("{} must be a number of seconds, not {}", what, seconds));
  return seconds;
}

double checked_break_even(double seconds) {
  if (!(seconds > 0) || !std::isfinite(seconds))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the break-even must be a number of seconds greater than 0, not {}", seconds));
  return seconds;
}

}  // namespace

BreakEven::BreakEven(double open_seconds, double close_seconds, double worth)
    : open_(checked_seconds(open_seconds, "open time")),
      close_(checked_seconds(close_seconds, "close time")),
      worth_(worth) {}
void BreakEven::record_open(double seconds) { open_ += kSmoothing * (checked_seconds(seconds, "open time") - open_); }
void BreakEven::record_close(double seconds) { close_ += kSmoothing * (checked_seconds(seconds, "close time") - close_); }

KeepOpen::KeepOpen(Kind kind, double break_even) : kind_(kind), break_even_(checked_break_even(break_even)) {
  for (std::size_t j = 0; j < kCandidates.size(); ++j) losses_[j] = kCandidates[j] == 1 ? 0 : kPriorGaps;
}

KeepOpen KeepOpen::on_demand(double break_even) { return {Kind::on_demand, break_even}; }
KeepOpen KeepOpen::adaptive(double break_even) { return {Kind::adaptive, break_even}; }
KeepOpen KeepOpen::always(double break_even) { return {Kind::always, break_even}; }
KeepOpen KeepOpen::linger(double break_even, std::optional<double> seconds) {
  KeepOpen policy(Kind::linger, break_even);
  if (seconds) policy.linger_seconds_ = checked_seconds(*seconds, "the linger time");
  return policy;
}

std::string_view KeepOpen::name() const noexcept {
  switch (kind_) {
    case Kind::on_demand: return "on_demand";
    case Kind::linger: return "linger";
    case Kind::adaptive: return "adaptive";
    case Kind::always: return "always";
  }
  return "";
}

double KeepOpen::threshold_in_units() const noexcept {
  switch (kind_) {
    case Kind::on_demand: return 0;
    case Kind::linger: return linger_seconds_ ? *linger_seconds_ / break_even_ : 1;
    case Kind::always: return kForever;
    case Kind::adaptive: break;
  }
  // The guard. A step at threshold B never raises cost - 2 x optimum (a gap g <= 1 lowers it by g, a longer one adds 2 - 2), any
  // other step adds at most 3 (threshold 4, longer gap: 5 - 2) to what was at most kSlack: so cost <= 2 x optimum + 5, whatever
  // comes.
  if (cost_ > 2 * optimum_ + kSlack) return 1;
  // On gaps that tell little, thresholds differ by next to nothing; the margin keeps the safe one until there is evidence.
  double best = kForever, threshold = 1;
  for (std::size_t j = 0; j < kCandidates.size(); ++j) {
    const double loss = losses_[j] + (kCandidates[j] == 1 ? 0 : kMargin);
    if (loss < best) best = loss, threshold = kCandidates[j];
  }
  return threshold;
}

double KeepOpen::threshold() const noexcept { return threshold_in_units() * break_even_; }

void KeepOpen::record_gap(double seconds, bool censored) {
  const double gap = checked_seconds(seconds, "an idle time") / break_even_;
  const double threshold = threshold_in_units();
  // The device was taken away while it was held: nobody learned whether holding would have paid.
  if (censored && gap <= threshold) return;
  cost_ += cost_of(gap, threshold);
  optimum_ += std::min(gap, 1.0);
  for (std::size_t j = 0; j < kCandidates.size(); ++j) losses_[j] = kDecay * losses_[j] + cost_of(gap, kCandidates[j]);
}

void KeepOpen::set_break_even(double seconds) { break_even_ = checked_break_even(seconds); }

}  // namespace tenon

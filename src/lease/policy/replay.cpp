#include "lease/policy/replay.h"

#include <algorithm>
#include <functional>

namespace tenon {
namespace {

// The wait that |share| of evenly drawn arrivals do not exceed, when one that falls into a period waits for its end. Waits longer
// than w come from the parts of periods that lie more than w before the end.
double wait_quantile(const std::vector<BusyPeriod>& periods, double span, double share) {
  const double wanted = (1 - share) * span;
  const auto time_waiting_longer = [&](double wait) {
    double total = 0;
    for (const BusyPeriod& period : periods) total += std::max(0.0, period.end - period.begin - wait);
    return total;
  };
  if (time_waiting_longer(0) <= wanted) return 0;
  double low = 0, high = 0;
  for (const BusyPeriod& period : periods) high = std::max(high, period.end - period.begin);
  for (int step = 0; step < 60; ++step) {
    const double middle = (low + high) / 2;
    (time_waiting_longer(middle) > wanted ? low : high) = middle;
  }
  return high;
}

WaiterTimes waiter_times(const std::vector<BusyPeriod>& held, double span) {
  return {.p50_seconds = wait_quantile(held, span, 0.5), .p99_seconds = wait_quantile(held, span, 0.99)};
}

// |hold|: for how long each gap is held, and is told of each gap in turn.
ReplayResult replay_with(std::span<const BusyPeriod> periods, double break_even, const std::function<double(double)>& hold) {
  ReplayResult result;
  if (periods.empty()) return result;
  std::vector<BusyPeriod> busy(periods.begin(), periods.end()), held{periods[0]};
  double optimum = 0;
  std::size_t cold = 0;
  for (std::size_t i = 1; i < periods.size(); ++i) {
    const double gap = periods[i].begin - periods[i - 1].end;
    const double held_seconds = std::min(gap, hold(gap));
    const bool is_cold = held_seconds < gap;
    result.held_seconds += held_seconds;
    cold += is_cold ? 1 : 0;
    optimum += std::min(gap, break_even);
    held.back().end += held_seconds;
    if (is_cold)
      held.push_back(periods[i]);
    else
      held.back().end = periods[i].end;
  }
  const double span = periods.back().end - periods.front().begin;
  const std::size_t gaps = periods.size() - 1;
  result.cost_seconds = result.held_seconds + break_even * static_cast<double>(cold);
  result.cost_ratio = optimum > 0 ? result.cost_seconds / optimum : 1;
  result.cold_fraction = gaps > 0 ? static_cast<double>(cold) / static_cast<double>(gaps) : 0;
  result.opens = cold + 1;
  result.waiter = waiter_times(busy, span);
  result.patient_waiter = waiter_times(held, span);
  return result;
}

}  // namespace

std::vector<BusyPeriod> busy_periods(std::span<const Arrival> arrivals) {
  std::vector<BusyPeriod> periods;
  for (const Arrival& arrival : arrivals) {
    const double end = arrival.seconds + arrival.service_seconds;
    if (!periods.empty() && arrival.seconds <= periods.back().end)
      periods.back().end = std::max(periods.back().end, end);
    else
      periods.push_back({arrival.seconds, end});
  }
  return periods;
}

ReplayResult replay(std::span<const BusyPeriod> periods, KeepOpen policy) {
  return replay_with(periods, policy.break_even(), [&](double gap) {
    const double threshold = policy.threshold();
    policy.record_gap(gap);
    return threshold;
  });
}

ReplayResult replay_optimum(std::span<const BusyPeriod> periods, double break_even) {
  return replay_with(periods, break_even, [&](double gap) { return gap <= break_even ? gap : 0; });
}

}  // namespace tenon

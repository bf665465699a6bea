// Replaying arrivals against keep-open policies in virtual time: what each would have cost.
//
// Work overlapping in time makes one busy period; the idle gaps between busy periods are what a policy decides about. The first
// opening and the last closing are common to all policies and left out.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lease/policy/arrival_trace.h"
#include "lease/policy/keep_open.h"

namespace tenon {

struct BusyPeriod {
  double begin = 0, end = 0;  // seconds
};
// The union of the times from arrival to completion, in order; periods that touch are one.
std::vector<BusyPeriod> busy_periods(std::span<const Arrival> arrivals);

// How long another process waits that arrives at a random time of the trace (uniformly distributed).
struct WaiterTimes {
  double p50_seconds = 0, p99_seconds = 0;
};

struct ReplayResult {
  double cost_seconds = 0;     // idle holding, plus one break-even for each closing and opening again
  double cost_ratio = 1;       // over the optimum's
  double cold_fraction = 0;    // of the gaps: those whose next work found the device closed
  double held_seconds = 0;     // open without work
  std::size_t opens = 0;       // the first one included
  WaiterTimes waiter;          // a waiter ends the hold at once: the rest of the busy period
  WaiterTimes patient_waiter;  // if it had to wait until the policy closes the device
};

// |policy| is taken as it is at the beginning; its break-even is the one of the whole replay.
ReplayResult replay(std::span<const BusyPeriod> periods, KeepOpen policy);
// What the best possible decisions would have cost.
ReplayResult replay_optimum(std::span<const BusyPeriod> periods, double break_even);

}  // namespace tenon

// A fleet of simulated devices under load, in virtual time: the real routing and keep-open decisions, without the devices.
//
// Jobs arrive, a policy gives each to a device, a device works on one job at a time in order of arrival, opens when it is needed
// and closes when its keep-open policy says so. What is simulated is labelled so wherever it is shown.
//
// Thread safety: pure function.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/manager/config.h"

namespace tenon {

enum class Balancing : std::uint8_t {
  fastest,       // as DeviceManager routes: route() with what is known of every device's queue
  expected,      // the least expected completion time, whatever that does to others
  least_loaded,  // the fewest jobs, the faster device if equal
  two_choices,   // of two drawn by speed, the one with the lesser expected completion time
  round_robin,
  random,
};
std::string_view name(Balancing balancing) noexcept;
// Throws invalid_argument listing the names.
Balancing parse_balancing(std::string_view text);

struct FleetClass {
  int count = 1;
  double speed = 1;  // jobs of mean size per second
};

struct FleetOptions {
  std::vector<FleetClass> classes{{1, 1}};
  // Seconds at which jobs arrive; empty: |jobs| at random times, at |load| of what all devices together can do.
  std::vector<double> arrivals = {};
  std::int64_t jobs = 100'000;
  double load = 0.7;
  bool has_equal_jobs = false;  // else sizes are drawn from an exponential distribution of mean 1
  double open_seconds = 0, close_seconds = 0;
  KeepOpenPolicy keep_open = KeepOpenPolicy::always;
  double view_age_seconds = 0;  // how old the dispatcher's knowledge of queues is
  double seconds_between_deaths =
      0;  // a random device dies, is back after |repair_seconds|; its jobs are given out again. 0: none
  double repair_seconds = 1;
  double dollars_per_hour = 0;  // while a device is open, for each unit of speed
  std::uint64_t seed = 1;
};

struct FleetResult {
  std::int64_t jobs = 0;
  double mean_seconds = 0, p50_seconds = 0, p90_seconds = 0, p99_seconds = 0, max_seconds = 0;  // from arrival to the end
  double span_seconds = 0;
  double busy = 0, open = 0;  // share of the devices' time
  std::int64_t opens = 0, deaths = 0, repeated = 0;
  double dollars = 0;
  std::vector<double> share_of_class;  // of the jobs
};

// Throws invalid_argument for options out of range.
FleetResult simulate_fleet(const FleetOptions& options, Balancing balancing);

}  // namespace tenon

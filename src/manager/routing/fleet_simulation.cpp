#include "manager/routing/fleet_simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <numeric>
#include <queue>
#include <random>
#include <utility>

#include "lease/policy/keep_open.h"
#include "tenon/error.h"
#include "tenon/manager/routing.h"

namespace tenon {
namespace {

constexpr std::string_view kNames[] = {"fastest", "expected", "least_loaded", "two_choices", "round_robin", "random"};
constexpr double kNever = std::numeric_limits<double>::infinity();
// In a larger fleet only this many devices, drawn by speed, are considered for a job.
constexpr std::size_t kLookedAt = 64;

struct Job {
  std::int64_t number = 0;
  double arrival = 0, size = 1;
  double end = kNever;  // as planned
};

struct Device {
  double speed = 1;
  std::size_t of_class = 0;
  std::deque<Job> queue;  // the first is being worked on
  double free_at = 0;     // when all planned work is done
  double dead_until = 0;
  bool is_open = false;
  double idle_since = 0, opened_at = 0;
  double open_seconds = 0, busy_seconds = 0;
  KeepOpen policy = KeepOpen::always(1);
};

KeepOpen policy_for(const FleetOptions& options) {
  const double break_even = std::max(1e-9, BreakEven(options.open_seconds, options.close_seconds).seconds());
  switch (options.keep_open) {
    case KeepOpenPolicy::on_demand: return KeepOpen::on_demand(break_even);
    case KeepOpenPolicy::linger: return KeepOpen::linger(break_even);
    case KeepOpenPolicy::adaptive: return KeepOpen::adaptive(break_even);
    case KeepOpenPolicy::always: break;
  }
  return KeepOpen::always(break_even);
}

class Fleet {
 public:
  Fleet(const FleetOptions& options, Balancing balancing) : options_(options), balancing_(balancing), random_(options.seed) {
    for (std::size_t c = 0; c < options.classes.size(); ++c)
      for (int i = 0; i < options.classes[c].count; ++i) {
        Device device;
        device.speed = options.classes[c].speed;
        device.of_class = c;
        device.policy = policy_for(options);
        devices_.push_back(std::move(device));
        capacity_ += options.classes[c].speed;
        speeds_.push_back(options.classes[c].speed);
      }
    by_speed_ = std::discrete_distribution<std::size_t>(speeds_.begin(), speeds_.end());
    result_.share_of_class.assign(options.classes.size(), 0);
    config_.routing = RoutingMode::fastest;
    config_.allow_simulated = true;
  }

  FleetResult run() {
    const std::int64_t jobs = options_.arrivals.empty() ? options_.jobs : static_cast<std::int64_t>(options_.arrivals.size());
    responses_.assign(static_cast<std::size_t>(jobs), 0);
    std::exponential_distribution<double> gap(options_.load * capacity_), size(1);
    double next_death = options_.seconds_between_deaths > 0 ? options_.seconds_between_deaths : kNever;
    double now = 0;
    for (std::int64_t number = 0; number < jobs; ++number) {
      now = options_.arrivals.empty() ? now + gap(random_) : options_.arrivals[static_cast<std::size_t>(number)];
      for (; next_death <= now; next_death += options_.seconds_between_deaths) kill_one(next_death);
      give({number, now, options_.has_equal_jobs ? 1.0 : size(random_)}, now);
    }
    for (Device& device : devices_) finish(device, kNever);
    return summary(now);
  }

 private:
  // --- Time ---

  // Jobs that end by |now| have ended.
  void finish(Device& device, double now) {
    while (!device.queue.empty() && device.queue.front().end <= now) {
      const Job& job = device.queue.front();
      responses_[static_cast<std::size_t>(job.number)] = job.end - job.arrival;
      device.busy_seconds += job.size / device.speed;
      ++ended_[device.of_class];
      device.idle_since = job.end;
      last_end_ = std::max(last_end_, job.end);
      device.queue.pop_front();
    }
  }

  void kill_one(double now) {
    Device& device = devices_[std::uniform_int_distribution<std::size_t>(0, devices_.size() - 1)(random_)];
    finish(device, now);
    ++result_.deaths;
    if (device.is_open) device.open_seconds += now - device.opened_at;
    device.is_open = false;
    device.free_at = device.dead_until = now + options_.repair_seconds;
    device.idle_since = now;
    // Nothing is lost: what it had not answered is given out again.
    std::deque<Job> orphans = std::exchange(device.queue, {});
    for (Job& job : orphans) {
      ++result_.repeated;
      give(job, now);
    }
  }

  void give(Job job, double now) {
    Device& device = devices_[choose(job, now)];
    finish(device, now);
    if (device.queue.empty()) device.free_at = std::max({device.free_at, now, device.dead_until}) + open_before_work(device, now);
    device.free_at += job.size / device.speed;
    job.end = device.free_at;
    device.queue.push_back(job);
  }

  // The device is idle: whether it closed meanwhile, and how long opening it takes.
  double open_before_work(Device& device, double now) {
    const double idle = std::max(0.0, now - device.idle_since);
    if (device.is_open) {
      const double threshold = device.policy.threshold();
      if (idle > threshold) {
        device.is_open = false;
        device.open_seconds += device.idle_since + threshold - device.opened_at;
      }
      device.policy.record_gap(idle);
    }
    if (device.is_open) return 0;
    device.is_open = true;
    device.opened_at = now;
    ++result_.opens;
    return options_.open_seconds;
  }

  // --- Choice ---

  struct View {
    std::size_t jobs = 0;
    double wait = 0;
  };
  // What the dispatcher knows of a device: its queue as it was some time ago.
  View view(Device& device, double now) {
    const double then = now - options_.view_age_seconds;
    finish(device, then);
    View seen;
    for (const Job& job : device.queue)
      if (job.arrival <= then && job.end > then) ++seen.jobs;
    // The dispatcher knows how many jobs wait, and how long a job usually takes there.
    seen.wait = std::max(static_cast<double>(seen.jobs) / device.speed, device.dead_until - now);
    return seen;
  }
  double opening(const Device& device, double now) const {
    return device.queue.empty() && (!device.is_open || now - device.idle_since > device.policy.threshold())
               ? options_.open_seconds
               : 0;
  }
  double expected_end(Device& device, const Job& job, double now) {
    return view(device, now).wait + opening(device, now) + job.size / device.speed;
  }

  std::vector<std::size_t> looked_at() {
    std::vector<std::size_t> some;
    if (devices_.size() <= kLookedAt) {
      some.resize(devices_.size());
      std::iota(some.begin(), some.end(), std::size_t{0});
    } else {
      for (std::size_t i = 0; i < kLookedAt; ++i) some.push_back(by_speed_(random_));
    }
    return some;
  }

  std::size_t choose(const Job& job, double now) {
    switch (balancing_) {
      case Balancing::fastest: return routed(job, now);
      case Balancing::expected: return least(looked_at(), [&](Device& d) { return expected_end(d, job, now); });
      case Balancing::least_loaded:
        return least(looked_at(), [&](Device& d) { return static_cast<double>(view(d, now).jobs) - 1e-9 * d.speed; });
      case Balancing::two_choices:
        return least({by_speed_(random_), by_speed_(random_)}, [&](Device& d) { return expected_end(d, job, now); });
      case Balancing::round_robin: return turn_++ % devices_.size();
      case Balancing::random: break;
    }
    return std::uniform_int_distribution<std::size_t>(0, devices_.size() - 1)(random_);
  }

  template <class Score>
  std::size_t least(const std::vector<std::size_t>& among, const Score& score) {
    std::size_t best = among[0];
    double best_score = kNever;
    for (const std::size_t i : among)
      if (const double own = score(devices_[i]); own < best_score) {
        best = i;
        best_score = own;
      }
    return best;
  }

  // The real routing decision.
  std::size_t routed(const Job& job, double now) {
    const std::vector<std::size_t> some = looked_at();
    std::vector<Candidate> candidates;
    for (const std::size_t i : some) {
      const View seen = view(devices_[i], now);
      Candidate& candidate = candidates.emplace_back();
      candidate.device.id = std::to_string(i);
      candidate.device.kind = DeviceKind::gpu;
      candidate.is_open = opening(devices_[i], now) == 0;
      candidate.ahead = static_cast<int>(seen.jobs);
      candidate.queue_seconds = seen.wait;
    }
    const Decision decision = route(config_, "auto", candidates, [&](const Candidate& candidate) {
      Device& device = devices_[std::stoul(candidate.device.id)];
      Stages stages;
      stages.queue_seconds = *candidate.queue_seconds;
      stages.open_seconds = opening(device, now);
      stages.compute_seconds = job.size / device.speed;
      stages.is_measured = true;
      return stages;
    });
    return std::stoul(decision.device.id);
  }

  // --- Result ---

  FleetResult summary(double last_arrival) {
    result_.jobs = static_cast<std::int64_t>(responses_.size());
    result_.span_seconds = std::max(last_arrival, last_end_);
    // The first tenth fills the queues.
    std::vector<double> counted(responses_.begin() + static_cast<std::ptrdiff_t>(responses_.size() / 10), responses_.end());
    std::sort(counted.begin(), counted.end());
    const auto at = [&](double share) {
      return counted[std::min(counted.size() - 1, static_cast<std::size_t>(share * static_cast<double>(counted.size())))];
    };
    result_.mean_seconds = std::accumulate(counted.begin(), counted.end(), 0.0) / static_cast<double>(counted.size());
    result_.p50_seconds = at(0.5);
    result_.p90_seconds = at(0.9);
    result_.p99_seconds = at(0.99);
    result_.max_seconds = counted.back();
    double total = 0;
    for (Device& device : devices_) {
      if (device.is_open) {
        const double until = std::min(result_.span_seconds, device.idle_since + device.policy.threshold());
        device.open_seconds += std::max(0.0, until - device.opened_at);
      }
      result_.busy += device.busy_seconds;
      result_.open += device.open_seconds;
      result_.dollars += device.open_seconds / 3600 * device.speed * options_.dollars_per_hour;
      total += result_.span_seconds;
    }
    result_.busy /= total;
    result_.open /= total;
    for (std::size_t c = 0; c < ended_.size(); ++c)
      result_.share_of_class[c] = static_cast<double>(ended_[c]) / static_cast<double>(result_.jobs);
    return result_;
  }

  const FleetOptions& options_;
  const Balancing balancing_;
  std::mt19937_64 random_;
  std::vector<Device> devices_;
  std::vector<double> speeds_;
  std::discrete_distribution<std::size_t> by_speed_;
  double capacity_ = 0;
  Config config_;
  std::size_t turn_ = 0;
  std::vector<double> responses_;
  std::vector<std::int64_t> ended_ = std::vector<std::int64_t>(options_.classes.size());
  double last_end_ = 0;
  FleetResult result_;
};

void check(const FleetOptions& options) {
  std::int64_t devices = 0;
  for (const FleetClass& one : options.classes) {
    if (one.count < 1 || !(one.speed > 0 && one.speed < 1e12))
      throw Error(ErrorCode::invalid_argument, "every class needs at least one device, of positive speed");
    devices += one.count;
  }
  if (devices < 1 || devices > 1'000'000)
    throw Error(ErrorCode::invalid_argument, fmt::format("{} devices cannot be simulated", devices));
  if (!(options.load > 0)) throw Error(ErrorCode::invalid_argument, "the load must be positive");
  if (options.jobs < 10 && options.arrivals.empty()) throw Error(ErrorCode::invalid_argument, "at least 10 jobs are needed");
}

}  // namespace

std::string_view name(Balancing balancing) noexcept { return kNames[static_cast<int>(balancing)]; }

Balancing parse_balancing(std::string_view text) {
  for (std::size_t i = 0; i < std::size(kNames); ++i)
    if (kNames[i] == text) return static_cast<Balancing>(i);
  throw Error(ErrorCode::invalid_argument, fmt::format("unknown policy '{}'", text),
              "the policies are fastest, expected, least_loaded, two_choices, round_robin and random");
}

FleetResult simulate_fleet(const FleetOptions& options, Balancing balancing) {
  check(options);
  return Fleet(options, balancing).run();
}

}  // namespace tenon

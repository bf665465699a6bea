// The simulation against what is known of queues, and our routing beside the usual policies.
#include "manager/routing/fleet_simulation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tenon/error.h"

namespace tenon {
namespace {

FleetOptions fleet(std::vector<FleetClass> classes, double load, std::int64_t jobs) {
  FleetOptions options;
  options.classes = std::move(classes);
  options.load = load;
  options.jobs = jobs;
  return options;
}

TEST(FleetSimulation, OneDeviceIsAnMM1Queue) {
  for (const double load : {0.5, 0.7}) {
    const FleetResult result = simulate_fleet(fleet({{1, 1}}, load, 400'000), Balancing::random);
    EXPECT_NEAR(result.mean_seconds, 1 / (1 - load), 0.05 / (1 - load)) << load;
    EXPECT_NEAR(result.busy, load, 0.02);
  }
}

TEST(FleetSimulation, TwoChoicesAreAsMitzenmacherSays) {
  const FleetResult result = simulate_fleet(fleet({{1000, 1}}, 0.7, 300'000), Balancing::two_choices);
  // Here the choice is by expected completion, which for equal devices is the shorter queue; the limit for many devices is 1.614.
  EXPECT_NEAR(result.mean_seconds, 1.614, 0.05);
}

// Random routing splits the arrivals into independent queues, each of which is M/M/1; two choices come to the limit for many.
TEST(FleetSimulation, TenThousandDevicesAreAsTheoryHasThem) {
  const double load = 0.5;
  const FleetResult apart = simulate_fleet(fleet({{10'000, 1}}, load, 400'000), Balancing::random);
  // The devices begin idle: in a run twice as long the mean would be half as far from the limit.
  EXPECT_NEAR(apart.mean_seconds, 1 / (1 - load), 0.06 / (1 - load));
  // Mitzenmacher's sum over i >= 1 of load ^ (2 ^ i - 2), for two choices: 1 + 0.25 + 0.0156 + ...
  double limit = 0;
  for (int i = 1; i < 8; ++i) limit += std::pow(load, std::pow(2, i) - 2);
  EXPECT_NEAR(simulate_fleet(fleet({{10'000, 1}}, load, 400'000), Balancing::two_choices).mean_seconds, limit, 0.06 * limit);
}

TEST(FleetSimulation, OurRoutingIsNearTheBestAtEveryLoad) {
  for (const double load : {0.5, 0.7, 0.9}) {
    const FleetOptions options = fleet({{4, 4}, {4, 1}}, load, 60'000);
    const FleetResult ours = simulate_fleet(options, Balancing::fastest);
    double mean = ours.mean_seconds, p99 = ours.p99_seconds;
    for (const Balancing other : {Balancing::expected, Balancing::least_loaded, Balancing::two_choices}) {
      const FleetResult result = simulate_fleet(options, other);
      mean = std::min(mean, result.mean_seconds);
      p99 = std::min(p99, result.p99_seconds);
    }
    EXPECT_LE(ours.mean_seconds, 1.1 * mean) << load;
    EXPECT_LE(ours.p99_seconds, 1.1 * p99) << load;
  }
}

TEST(FleetSimulation, NothingIsLostWhenDevicesDie) {
  FleetOptions options = fleet({{8, 1}}, 0.6, 20'000);
  options.seconds_between_deaths = 5;
  options.repair_seconds = 2;
  const FleetResult result = simulate_fleet(options, Balancing::fastest);
  EXPECT_GT(result.deaths, 100);
  EXPECT_GT(result.repeated, 10);
  EXPECT_NEAR(result.share_of_class[0], 1, 1e-12) << "every job ended once";
}

TEST(FleetSimulation, ClosingIdleDevicesSavesTime) {
  FleetOptions options = fleet({{4, 10}}, 0.05, 5'000);
  options.open_seconds = 0.01;
  options.keep_open = KeepOpenPolicy::on_demand;
  const FleetResult closing = simulate_fleet(options, Balancing::fastest);
  options.keep_open = KeepOpenPolicy::always;
  const FleetResult holding = simulate_fleet(options, Balancing::fastest);
  EXPECT_GT(closing.opens, 1000);
  EXPECT_LE(holding.opens, 4);
  EXPECT_LT(closing.open, 0.3 * holding.open);
  EXPECT_GT(closing.mean_seconds, holding.mean_seconds);
}

TEST(FleetSimulation, RefusesNonsense) {
  EXPECT_THROW(simulate_fleet(fleet({{0, 1}}, 0.5, 100), Balancing::random), Error);
  EXPECT_THROW(simulate_fleet(fleet({{1, -1}}, 0.5, 100), Balancing::random), Error);
  EXPECT_THROW(simulate_fleet(fleet({{1, 1}}, 0, 100), Balancing::random), Error);
  EXPECT_THROW(parse_balancing("fair"), Error);
}

}  // namespace
}  // namespace tenon

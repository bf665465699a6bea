// Routing mode and preference of one run, devices by other names than their ids, and what a run cost.
#include <gtest/gtest.h>

#include "tenon/error.h"
#include "tenon/expression.h"
#include "tenon/manager.h"

namespace tenon {
namespace {

Config with_card() {
  Config config;
  SimulatedDevice card = parse_simulated("gpu,open=0,close=0");
  config.simulated = {card};
  config.prices = {{"sim:0", 3600}};
  config.ledger = config.profile = false;
  return config;
}

TEST(Preference, OfOneRunReplacesTheConfiguration) {
  DeviceManager manager(with_card());
  const Graph graph = parse_expression("1 + 1");
  EXPECT_EQ(manager.run(graph, {}).device->id, "cpu:0");
  EXPECT_EQ(manager.run(graph, {}, {.prefer = "sim:0"}).device->id, "sim:0");
  EXPECT_EQ(manager.run(graph, {}, {.routing = RoutingMode::pinned, .prefer = "gpu"}).device->id, "sim:0");
  EXPECT_EQ(manager.run(graph, {}).device->id, "cpu:0") << "only that run";
  EXPECT_EQ(manager.explain(graph, RunOptions{.prefer = "sim:0"}).device.id, "sim:0");
  try {
    manager.run(graph, {}, {.routing = RoutingMode::pinned});
    FAIL() << "pinned to nothing";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  }
}

TEST(Preference, IsFollowedUnderEveryNameOfADevice) {
  DeviceManager manager(with_card());
  for (const char* name : {"sim", "SIM:0", "Sim:0"}) EXPECT_EQ(manager.find(name).id, "sim:0") << name;
  EXPECT_EQ(manager.find("0").id, manager.devices().front().id);
}

TEST(RunCost, IsThePriceOfTheTimeTheDeviceWasHeld) {
  DeviceManager manager(with_card());
  const RunResult result = manager.run(parse_expression("1 + 1"), {}, {.device = "sim:0"});
  double held = 0;
  for (const Span& span : result.timeline)
    if (span.stage != "queued") held += span.seconds;
  const std::optional<RunCost> cost = cost_of(result, manager.config());
  ASSERT_TRUE(cost);
  EXPECT_DOUBLE_EQ(cost->dollars, held);  // a dollar a second
  EXPECT_FALSE(cost->is_estimate);
}

}  // namespace
}  // namespace tenon

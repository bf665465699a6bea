// A program whose device fails is repeated on another one: twice at most, and only if the caller left the choice to the manager.
#include <gtest/gtest.h>

#include "manager/evaluate.h"
#include "manager/simulated_machine.h"

namespace tenon {
namespace {

using test::SimulatedMachine;

SimulatedDevice scripted(const std::string& script) {
  SimulatedDevice device = test::card();
  if (!script.empty()) device.set("script", script);
  return device;
}

class Repeated : public ::testing::Test {
 protected:
  Repeated() { graph.set_outputs({graph.constant(HostArray::from<float>(Shape{2}, {1, 2}))}); }
  static SimulatedMachine machine_of(const std::vector<std::string>& scripts) {
    std::vector<SimulatedDevice> devices;
    for (const std::string& script : scripts) devices.push_back(scripted(script));
    return SimulatedMachine(std::move(devices), [](Config& config) {
      config.allow_simulated = true;
      config.platform_priority = {DeviceKind::tenstorrent, DeviceKind::cpu};
    });
  }
  static std::string id_of(const RunResult& result) { return result.device->id; }
  Graph graph;
};

TEST_F(Repeated, OnAnotherDeviceWithAWarning) {
  for (const char* request : {"auto", "tenstorrent"}) {
    SimulatedMachine machine = machine_of({"lost_mid_run:run", ""});
    // A device that fails is the first choice once.
    const RunResult result = machine.manager().run(graph, {}, {.device = request});
    EXPECT_EQ(id_of(result), "sim:1") << request;
    ASSERT_TRUE(result.decision);
    EXPECT_NE(result.decision->warning.find("sim:0 failed"), std::string::npos) << result.decision->warning;
    EXPECT_NE(result.decision->warning.find("repeated on sim:1"), std::string::npos) << result.decision->warning;
    EXPECT_EQ(machine.status("sim:1").counters.runs, 1u);
    // For a moment the other one is preferred, without another failure.
    const RunResult next = machine.manager().run(graph, {}, {.device = request});
    EXPECT_EQ(id_of(next), "sim:1");
    EXPECT_TRUE(next.decision->warning.empty()) << next.decision->warning;
  }
}

TEST_F(Repeated, WhereADeviceCannotBeOpened) {
  SimulatedMachine machine = machine_of({"open_fails:open+open_fails:open+open_fails:open+open_fails:open+open_fails:open", ""});
  EXPECT_EQ(id_of(machine.manager().run(graph, {}, {.device = "tenstorrent"})), "sim:1");
}

TEST_F(Repeated, AgainIfTheNextDeviceFailsToo) {
  SimulatedMachine machine = machine_of({"lost_mid_run:run", "lost_mid_run:run", ""});
  const RunResult result = machine.manager().run(graph, {}, {.device = "tenstorrent"});
  EXPECT_EQ(id_of(result), "sim:2");
  EXPECT_NE(result.decision->warning.find("sim:0 failed"), std::string::npos) << result.decision->warning;
  EXPECT_NE(result.decision->warning.find("sim:1 failed"), std::string::npos) << result.decision->warning;
}

TEST_F(Repeated, TwiceAtMost) {
  SimulatedMachine machine = machine_of({"lost_mid_run:run", "lost_mid_run:run", "lost_mid_run:run", ""});
  try {
    machine.manager().run(graph, {}, {.device = "tenstorrent"});
    FAIL() << "three devices failed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unavailable);
  }
  EXPECT_EQ(machine.status("sim:3").counters.runs, 0u);
}

TEST_F(Repeated, WhenValuesStayOnTheDevice) {
  SimulatedMachine machine = machine_of({"lost_mid_run:run", ""});
  Graph next;
  const NodeId x = next.input("x", DType::f32, Shape{2});
  next.set_outputs({x, next.cast(x, DType::f64)});
  const std::vector<std::shared_ptr<Storage>> inputs{Storage::from_host(HostArray::from<float>(Shape{2}, {3, 4}))};
  const EvaluateResult result = evaluate(machine.manager(), next, inputs, {.device = "tenstorrent"});
  EXPECT_EQ(result.owner->device().id, "sim:1");
  EXPECT_NE(result.decision->warning.find("repeated on sim:1"), std::string::npos) << result.decision->warning;
  EXPECT_EQ(result.outputs.at(1)->to_host().view<double>()[1], 4);
}

TEST_F(Repeated, ButWhatWasOnTheLostDeviceAloneIsLost) {
  SimulatedMachine machine = machine_of({"ok:run+lost_mid_run:run", ""});
  const std::vector<std::shared_ptr<Storage>> made = evaluate(machine.manager(), graph, {}, {.device = "sim:0"}).outputs;
  Graph next;
  const NodeId x = next.input("x", DType::f32, Shape{2});
  next.set_outputs({next.cast(x, DType::f64)});
  try {
    evaluate(machine.manager(), next, made, {.device = "tenstorrent"});
    FAIL() << "its input is lost";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::data_loss) << error.what();
  }
}

TEST_F(Repeated, NotIfTheCallerNamedTheDeviceOrHasLeasedIt) {
  SimulatedMachine machine = machine_of({"lost_mid_run:run+ok:run+lost_mid_run:run", ""});
  EXPECT_THROW(machine.manager().run(graph, {}, {.device = "sim:0"}), Error);
  {
    const Lease lease = machine.manager().lease({.device = "sim:0"});
    EXPECT_NO_THROW(machine.manager().run(graph, {}));
    EXPECT_THROW(machine.manager().run(graph, {}), Error);
  }
  // The only device of its kind.
  SimulatedMachine alone({scripted("lost_mid_run:run")});
  EXPECT_THROW(alone.manager().run(graph, {}, {.device = "tenstorrent"}), Error);
}

}  // namespace
}  // namespace tenon

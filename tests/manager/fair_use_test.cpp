// Programs of several clients on one exclusive device.
#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "manager/simulated_machine.h"
#include "tenon/expression.h"

namespace tenon::test {
namespace {

class FairUse : public ::testing::Test {
 protected:
  static SimulatedDevice slow_card() {
    SimulatedDevice device = card();
    device.compute_seconds = 0.05;
    return device;
  }
  void run(const std::string& client, int repeat, std::stop_token cancel = {}) {
    const HostArray x = HostArray::full(DType::f32, {4}, 1);
    const Graph graph = parse_expression("x + 1", {NamedType{"x", DType::f32, {4}}});
    RunOptions options{.device = "sim:0", .repeat = repeat};
    options.client = client;
    options.cancel = std::move(cancel);
    const RunResult result = machine_.manager().run(graph, std::span(&x, 1), options);
    EXPECT_EQ(result.outputs.at(0).view<float>()[3], 2);
  }

  SimulatedMachine machine_{{slow_card()}};
};

TEST_F(FairUse, ShortProgramDoesNotWaitForTheLongOneOfAnotherClient) {
  std::stop_source stop;
  std::future<void> long_one =
      std::async(std::launch::async, [&] { EXPECT_THROW(run("greedy", 1'000'000, stop.get_token()), Error); });
  machine_.wait_for(DeviceState::busy);
  for (int i = 0; i < 3; ++i) run("modest", 1);
  EXPECT_EQ(long_one.wait_for(0s), std::future_status::timeout);
  stop.request_stop();
  long_one.get();
}

TEST_F(FairUse, ProgramsThatMakeRoomForEachOtherAllComplete) {
  std::vector<std::future<void>> runs;
  for (int i = 0; i < 6; ++i)
    runs.push_back(std::async(std::launch::async, [this, i] { run("client " + std::to_string(i % 3), 4); }));
  for (std::future<void>& each : runs) each.get();
  EXPECT_EQ(machine_.counters().runs, 6u);
  EXPECT_EQ(machine_.state(), DeviceState::idle);
}

TEST_F(FairUse, RunThatMakesRoomCanBeCancelled) {
  std::stop_source stop, stop_other;
  std::future<void> paused =
      std::async(std::launch::async, [&] { EXPECT_THROW(run("greedy", 1'000'000, stop.get_token()), Error); });
  machine_.wait_for(DeviceState::busy);
  std::future<void> other =
      std::async(std::launch::async, [&] { EXPECT_THROW(run("modest", 1'000'000, stop_other.get_token()), Error); });
  machine_.wait_for_users(2);
  stop.request_stop();
  EXPECT_EQ(paused.wait_for(60s), std::future_status::ready);
  stop_other.request_stop();
  other.get();
}

}  // namespace
}  // namespace tenon::test

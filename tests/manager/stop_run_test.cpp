// Runs that are cancelled or reach their limit inside one op, on every kind of device that needs no hardware.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <future>

#include "manager/simulated_machine.h"
#include "tenon/expression.h"

namespace tenon::test {
namespace {

Config plain_config() {
  Config config;
  config.ledger = config.profile = false;
  config.keep_open = KeepOpenPolicy::always;
  return config;
}

struct Program {
  std::string expression;  // over x
  DType dtype = DType::f32;
  Shape shape = {1 << 24};

  ErrorCode run(DeviceManager& manager, const RunOptions& options) const {
    const HostArray x = HostArray::full(dtype, shape, 1);
    const Graph graph = parse_expression(expression, {NamedType{"x", dtype, shape}});
    return code_of([&] { manager.run(graph, std::span(&x, 1), options); });
  }
};

std::string repeated(const std::string& op, int times) {
  std::string text = "x";
  for (int i = 0; i < times; ++i) text = op + "(" + text + ")";
  return text;
}

// Each of these is one step of the CPU's program and takes far longer than the limit.
TEST(StopRun, EveryKindOfStepEndsInTheMiddle) {
  DeviceManager manager(plain_config());
  const Program programs[] = {
      {.expression = repeated("lgamma", 24)},
      {.expression = "sum(" + repeated("lgamma", 24) + ")"},
      {.expression = "softmax(" + repeated("lgamma", 24) + ")"},
      {.expression = "x @ x", .shape = {3000, 3000}},
      {.expression = "x @ x", .dtype = DType::i32, .shape = {2000, 2000}},
      {.expression = "conv2d(x, x[:64])", .shape = {256, 64, 48, 48}},
      {.expression = "argsort(x)"},
  };
  for (const Program& program : programs)
    EXPECT_EQ(program.run(manager, {.device = "cpu", .limit = 20ms}), ErrorCode::deadline_exceeded)
        << program.expression.substr(0, 40);
  EXPECT_EQ((Program{"x + 1", DType::f32, {4}}.run(manager, {.device = "cpu", .limit = 1h})), ErrorCode::ok);
}

TEST(StopRun, CancelledRunEndsInTheMiddle) {
  DeviceManager manager(plain_config());
  std::stop_source stop;
  RunOptions options{.device = "cpu", .cancel = stop.get_token()};
  options.on_progress = [&](const Progress& progress) {
    if (progress.stage == "computing") std::thread([stop]() mutable { stop.request_stop(); }).detach();
  };
  EXPECT_EQ(Program{repeated("lgamma", 190)}.run(manager, options), ErrorCode::cancelled);
}

TEST(StopRun, SlowSimulatedDeviceStopsAndIsNotLost) {
  SimulatedDevice slow = card();
  slow.memory_bytes = 1 << 30;
  slow.compute_factor = 100'000;
  SimulatedMachine machine({slow});
  EXPECT_EQ((Program{"exp(x)", DType::f32, {1 << 16}}.run(machine.manager(), {.device = "sim:0", .limit = 50ms})),
            ErrorCode::deadline_exceeded);
  EXPECT_EQ(machine.counters().lost, 0u);
}

TEST(StopRun, HungSimulatedDeviceIsGivenUpAndWorksAgain) {
  SimulatedDevice hung = card();
  hung.hang_seconds = 3600;
  hung.script = {"run_hangs"};
  SimulatedMachine machine({hung});
  EXPECT_EQ((Program{"exp(x)", DType::f32, {4}}.run(machine.manager(), {.device = "sim:0", .limit = 50ms})),
            ErrorCode::unavailable);
  machine.wait_for(DeviceState::lost);
  EXPECT_EQ(machine.add(1, 2), 3) << "the next run opens it again";
  EXPECT_EQ(machine.counters().lost, 1u);
  EXPECT_EQ(machine.counters().dirty_grants, 1u);
}

TEST(StopRun, CloseWithPatienceFreesAHungDevice) {
  SimulatedDevice hung = card();
  hung.hang_seconds = 3600;
  hung.script = {"run_hangs"};
  SimulatedMachine machine({hung});
  auto hanging = std::async(std::launch::async, [&] { return code_of([&] { machine.add(1, 2); }); });
  machine.wait_for(DeviceState::busy);
  // A device that is closed between the lease and the run is opened again for the run, which then hangs until the next close.
  do machine.manager().close("sim:0", 3s);
  while (hanging.wait_for(1s) != std::future_status::ready);
  EXPECT_EQ(hanging.get(), ErrorCode::unavailable);
  EXPECT_EQ(machine.add(1, 2), 3);
}

std::vector<pid_t> workers() {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream status(entry.path() / "status");
    std::string line, name;
    while (std::getline(status, line)) {
      if (line.starts_with("Name:")) name = line.substr(6);
      if (line == "PPid:\t" + std::to_string(getpid()) && name == "tenon-worker")
        found.push_back(static_cast<pid_t>(std::stol(entry.path().filename())));
    }
  }
  return found;
}

TEST(StopRun, StoppedWorkerIsKilledAtTheLimit) {
  Config config = plain_config();
  config.isolate = Isolate::always;
  DeviceManager manager(config);
  const Program program{"exp(x)", DType::f32, {4}};
  EXPECT_EQ(program.run(manager, {.device = "cpu", .limit = 60s}), ErrorCode::ok);
  ASSERT_EQ(workers().size(), 1u);
  kill(workers()[0], SIGSTOP);
  EXPECT_EQ(program.run(manager, {.device = "cpu", .limit = 100ms}), ErrorCode::deadline_exceeded);
  EXPECT_EQ(program.run(manager, {.device = "cpu", .limit = 60s}), ErrorCode::ok) << "in a new worker";
}

TEST(StopRun, AtOnceNeverOpensAndNeverCompiles) {
  DeviceManager manager(plain_config());
  const Program program{"exp(x)", DType::f32, {4}}, other{"x * 2", DType::f32, {4}};
  EXPECT_EQ(program.run(manager, {.device = "cpu", .at_once = true}), ErrorCode::unavailable) << "closed";
  EXPECT_EQ(program.run(manager, {.device = "cpu"}), ErrorCode::ok);
  EXPECT_EQ(program.run(manager, {.device = "cpu", .at_once = true}), ErrorCode::ok);
  EXPECT_EQ(other.run(manager, {.device = "cpu", .at_once = true}), ErrorCode::unavailable) << "not compiled";
  manager.close("cpu");
  EXPECT_EQ(program.run(manager, {.device = "cpu", .at_once = true}), ErrorCode::unavailable) << "closed again";
}

TEST(StopRun, AtOnceIsOnlyForTheHost) {
  SimulatedMachine machine({card()});
  const Program program{"exp(x)", DType::f32, {4}};
  EXPECT_EQ(program.run(machine.manager(), {.device = "sim:0"}), ErrorCode::ok);
  EXPECT_EQ(program.run(machine.manager(), {.device = "sim:0", .at_once = true}), ErrorCode::unavailable);
}

}  // namespace
}  // namespace tenon::test

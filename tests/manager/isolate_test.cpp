// Config::isolate: devices are opened in processes of their own.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "tenon/error.h"
#include "tenon/expression.h"
#include "tenon/manager.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

std::vector<pid_t> worker_pids() {
  std::vector<pid_t> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    std::ifstream status(entry.path() / "status");
    std::string line, name;
    while (std::getline(status, line)) {
      if (line.starts_with("Name:")) name = line.substr(6);
      if (line.starts_with("PPid:") && std::stol(line.substr(5)) == getpid() && name == "tenon-worker")
        found.push_back(static_cast<pid_t>(std::atol(entry.path().filename().c_str())));
    }
  }
  return found;
}
int workers() { return static_cast<int>(worker_pids().size()); }

double run_and_count(Isolate isolate, int& count) {
  Config config;
  config.isolate = isolate;
  config.ledger = false;
  config.keep_open = KeepOpenPolicy::always;
  DeviceManager manager(config);
  const RunResult result = manager.run(parse_expression("sum(arange(10))"), {}, {.device = "cpu"});
  count = workers();
  return result.outputs[0].value(0);
}

TEST(Isolate, TheDeviceIsInAWorkerAndGoesWithTheManager) {
  int count = 0;
  EXPECT_EQ(run_and_count(Isolate::always, count), 45);
  EXPECT_EQ(count, 1);
  EXPECT_EQ(workers(), 0);
}

TEST(Isolate, WithoutItTheDeviceIsInThisProcess) {
  int count = 0;
  EXPECT_EQ(run_and_count(Isolate::never, count), 45);
  EXPECT_EQ(count, 0);
}

TEST(Isolate, AutomaticallyTheCpuIsInThisProcess) {
  int count = 0;
  EXPECT_EQ(run_and_count(Isolate::automatic, count), 45);
  EXPECT_EQ(count, 0);
}

// --- A vendor's driver, here PoCL ---

bool has_opencl(const DeviceManager& manager) {
  const auto devices = manager.devices();
  return std::any_of(devices.begin(), devices.end(), [](const DeviceInfo& d) { return d.id == "opencl:0" && d.available; });
}

TEST(Isolate, DriversAreInWorkersAndTheCpuIsNot) {
  Config config;
  config.isolate = Isolate::drivers;
  config.ledger = false;
  config.keep_open = KeepOpenPolicy::always;
  DeviceManager manager(config);
  const Graph program = parse_expression("sum(arange(10))");
  EXPECT_EQ(manager.run(program, {}, {.device = "cpu:0"}).outputs[0].value(0), 45);
  EXPECT_EQ(workers(), 0);
  if (!has_opencl(manager)) GTEST_SKIP() << "there is no OpenCL platform here";
  EXPECT_EQ(manager.run(program, {}, {.device = "opencl:0"}).outputs[0].value(0), 45);
  EXPECT_EQ(workers(), 1);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) EXPECT_EQ(line.find("libOpenCL"), std::string::npos) << line;
}

TEST(Isolate, CrashedDriverCostsItsWorkerAndTheNextRunOpensTheDeviceAgain) {
  Config config;
  config.isolate = Isolate::drivers;
  config.ledger = false;
  config.keep_open = KeepOpenPolicy::always;
  DeviceManager manager(config);
  if (!has_opencl(manager)) GTEST_SKIP() << "there is no OpenCL platform here";
  const Graph program = parse_expression("sum(arange(10))");
  manager.run(program, {}, {.device = "opencl:0"});
  ASSERT_EQ(workers(), 1);
  kill(worker_pids()[0], SIGSEGV);
  try {
    manager.run(program, {}, {.device = "opencl:0"});
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unavailable) << error.what();
  }
  EXPECT_EQ(manager.run(program, {}, {.device = "opencl:0"}).outputs[0].value(0), 45);
}

// --- On a card ---

// The processes that the driver's own tool sees on any card.
std::set<pid_t> processes_on_cards() {
  std::set<pid_t> found;
  FILE* const answer = popen("nvidia-smi --query-compute-apps=pid --format=csv,noheader 2>/dev/null", "r");
  char line[256];
  while (std::fgets(line, sizeof line, answer))
    if (const long pid = std::atol(line); pid > 0) found.insert(static_cast<pid_t>(pid));
  pclose(answer);
  return found;
}

// Whether a process of ours, this one or a worker, is on a card, or holds one of the driver's files of a card open.
bool is_on_a_card(pid_t pid) {
  if (processes_on_cards().contains(pid)) return true;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(fs::path("/proc") / std::to_string(pid) / "fd", error)) {
    const std::string target = fs::read_symlink(entry.path(), error).string();
    if (target.starts_with("/dev/nvidia") && target.size() == 12) return true;  // /dev/nvidia0
  }
  return false;
}

TEST(Isolate, AfterClosingNothingOfOursIsOnTheCard) {
  Config config;
  config.ledger = false;
  config.profile = false;
  config.keep_open = KeepOpenPolicy::on_demand;
  DeviceManager manager(config);
  const auto devices = manager.devices();
  const bool has_card = std::any_of(devices.begin(), devices.end(), [](const DeviceInfo& device) {
    return device.available && std::find(device.backends.begin(), device.backends.end(), "cuda") != device.backends.end();
  });
  if (!has_card) GTEST_SKIP() << "there is no usable NVIDIA card here";
  // A library product, a convolution and attention.
  const Graph program = parse_expression(
      "sum(a @ a) + sum(conv2d(reshape(a, [1, 64, 64, 64]), ones([8, 64, 3, 3]))) + "
      "sum(attention(reshape(a, [8, 512, 64]), reshape(a, [8, 512, 64]), reshape(a, [8, 512, 64])))",
      std::vector<NamedType>{{"a", DType::f32, {512, 512}}});
  const std::vector<HostArray> inputs{HostArray::full(DType::f32, {512, 512}, 0.5)};
  for (int cycle = 0; cycle < 3; ++cycle) {
    const RunResult result = manager.run(program, inputs, {.device = "cuda:0"});
    EXPECT_TRUE(std::isfinite(result.outputs[0].value(0)));
    manager.close("cuda:0");
    EXPECT_FALSE(is_on_a_card(getpid())) << "cycle " << cycle;
    for (const pid_t worker : worker_pids()) EXPECT_FALSE(is_on_a_card(worker)) << "cycle " << cycle;
  }
}

}  // namespace
}  // namespace tenon

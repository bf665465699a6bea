// Config::isolate: devices are opened in processes of their own.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tenon/expression.h"
#include "tenon/manager.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

int workers() {
  int count = 0;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    std::ifstream status(entry.path() / "status");
    std::string line, name;
    while (std::getline(status, line)) {
      if (line.starts_with("Name:")) name = line.substr(6);
      if (line.starts_with("PPid:") && std::stol(line.substr(5)) == getpid() && name == "tenon-worker") ++count;
    }
  }
  return count;
}

double run_and_count(bool isolate, int& count) {
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
  EXPECT_EQ(run_and_count(true, count), 45);
  EXPECT_EQ(count, 1);
  EXPECT_EQ(workers(), 0);
}

TEST(Isolate, WithoutItTheDeviceIsInThisProcess) {
  int count = 0;
  EXPECT_EQ(run_and_count(false, count), 45);
  EXPECT_EQ(count, 0);
}

}  // namespace
}  // namespace tenon

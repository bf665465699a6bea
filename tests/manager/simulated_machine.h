// A manager with simulated devices and a run directory of its own, for tests.
#pragma once

#include <stdlib.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "eventually.h"
#include "temporary_folder.h"
#include "tenon/error.h"
#include "tenon/manager.h"
#include "tenon/ops.h"

namespace tenon::test {

using namespace std::chrono_literals;

// A card that opens and closes in no time and has a little memory.
inline SimulatedDevice card() {
  SimulatedDevice device = SimulatedDevice::of_architecture("wormhole");
  device.open_seconds = device.close_seconds = 0;
  device.memory_bytes = 1 << 20;
  return device;
}

class SimulatedMachine {
 public:
  explicit SimulatedMachine(std::vector<SimulatedDevice> devices, const std::function<void(Config&)>& adjust = {})
      : directory_(std::make_shared<TemporaryFolder>()) {
    config_.simulated = std::move(devices);
    config_.ledger = config_.profile = false;
    config_.keep_open = KeepOpenPolicy::always;  // so that what a test sees does not depend on how fast the machine is
    if (adjust) adjust(config_);
    start();
  }
  // What another process on the same machine would have.
  explicit SimulatedMachine(const SimulatedMachine& neighbour) : directory_(neighbour.directory_), config_(neighbour.config_) {
    start();
  }

  DeviceManager& manager() { return *manager_; }
  DeviceStatus status(const std::string& id = "sim:0") {
    for (DeviceStatus& status : manager_->status())
      if (status.device.id == id) return status;
    throw Error(ErrorCode::not_found, id);
  }
  DeviceState state() { return status().state; }
  DeviceCounters counters() { return status().counters; }
  std::size_t users() { return status().users.size(); }
  void wait_for(DeviceState wanted) {
    EXPECT_TRUE(eventually(60s, [&] { return state() == wanted; })) << "it is " << name(state());
  }
  void wait_for_users(std::size_t count) {
    EXPECT_TRUE(eventually(60s, [&] { return users() >= count; })) << users() << " of " << count;
  }
  float add(float a, float b, const std::string& device = "sim:0") {
    Graph graph;
    const NodeId x = graph.input("x", DType::f32, {}), y = graph.input("y", DType::f32, {});
    graph.set_outputs(apply(graph, "add", {x, y}));
    RunOptions options;
    options.device = device;
    const HostArray inputs[] = {HostArray::full(DType::f32, {}, a), HostArray::full(DType::f32, {}, b)};
    return manager_->run(graph, inputs, options).outputs.at(0).view<float>()[0];
  }

 private:
  void start() {
    // Only what a manager does when a device is first used reads this, and tests of one process use one directory at a time.
    setenv("TENON_RUN_DIR", directory_->path().c_str(), 1);
    manager_ = std::make_unique<DeviceManager>(config_);
  }

  std::shared_ptr<const TemporaryFolder> directory_;
  Config config_;
  std::unique_ptr<DeviceManager> manager_;
};

template <class Call>
ErrorCode code_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::ok;
}

}  // namespace tenon::test

// Small programs that ran on this CPU before take a shorter way. What others see of them is the same.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tenon/tenon.h"

namespace tenon {
namespace {

class TensorAtOnce : public testing::Test {
 protected:
  static Config with_card() {
    Config config;
    config.simulated = {parse_simulated("wormhole,open=1ms,close=1ms")};
    return config;
  }
  DeviceCounters counters() {
    for (const DeviceStatus& status : manager.status())
      if (status.device.id == "cpu:0") return status.counters;
    return {};
  }
  // Twice, so that the next one is compiled and its device decided.
  void warm_up(const RunOptions& options = {}) {
    for (int i = 0; i < 2; ++i) (a + b).eval(options);
  }

  DeviceManager manager{with_card()};
  UseManager use{manager};
  Tensor a = Tensor::from(std::vector<float>{1, 2}), b = Tensor::from(std::vector<float>{3, 4});
};

TEST_F(TensorAtOnce, EachIsCountedAsALeaseAndARun) {
  RunOptions cpu;
  cpu.device = "cpu";
  warm_up(cpu);
  const DeviceCounters before = counters();
  for (int i = 0; i < 5; ++i) EXPECT_EQ((a + b).eval(cpu).to_vector<float>(), (std::vector<float>{4, 6}));
  const DeviceCounters after = counters();
  EXPECT_EQ(after.runs - before.runs, 5u);
  EXPECT_EQ(after.leases - before.leases, 5u);
  EXPECT_GT(after.compute_seconds, before.compute_seconds);
}

TEST_F(TensorAtOnce, ObserversHearOfEach) {
  warm_up();
  std::atomic<int> runs{0};
  const auto observer =
      manager.observe([&](const DeviceEvent& event) { runs += event.device == "cpu:0"; }, {DeviceEvent::Kind::ran});
  for (int i = 0; i < 3; ++i) (a + b).eval();
  EXPECT_EQ(runs, 3);
}

TEST_F(TensorAtOnce, ALeaseOfAnotherDeviceGoesBefore) {
  warm_up();
  const Lease lease = manager.lease({.device = "sim:0"});
  EXPECT_EQ((a + b).eval().device(), "sim:0");
}

TEST_F(TensorAtOnce, AnExclusiveLeaseOfTheCpuIsWaitedFor) {
  warm_up();
  Lease lease = manager.lease({.device = "cpu", .mode = LeaseMode::exclusive});
  std::atomic<bool> is_done{false};
  std::thread other([&] {
    const UseManager mine(manager);
    (a + b).eval();
    is_done = true;
  });
  const auto users = [&] {
    for (const DeviceStatus& status : manager.status())
      if (status.device.id == "cpu:0") return status.users.size();
    return std::size_t{0};
  };
  while (users() < 2) std::this_thread::yield();
  EXPECT_FALSE(is_done);
  lease.release();
  other.join();
  EXPECT_TRUE(is_done);
}

}  // namespace
}  // namespace tenon

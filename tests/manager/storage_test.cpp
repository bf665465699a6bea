// Tensors against devices: closing, moving, evicting, losing.
#include "lease/storage.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "manager/evaluate.h"
#include "manager/simulated_machine.h"

namespace tenon {
namespace {

using test::card;
using test::code_of;
using test::SimulatedMachine;

HostArray numbers(float first, std::int64_t count = 4) {
  HostArray array = HostArray::empty(DType::f32, {count});
  for (std::int64_t i = 0; i < count; ++i)
    array.mutable_view<float>()[static_cast<std::size_t>(i)] = first + static_cast<float>(i);
  return array;
}

Graph doubling(std::int64_t count = 4) {
  Graph graph;
  const NodeId x = graph.input("x", DType::f32, {count});
  graph.set_outputs(apply(graph, "add", {x, x}));
  return graph;
}

std::shared_ptr<Storage> doubled(SimulatedMachine& machine, const std::shared_ptr<Storage>& value,
                                 const std::string& device = "sim:0") {
  RunOptions options;
  options.device = device;
  const std::shared_ptr<Storage> inputs[] = {value};
  return evaluate(machine.manager(), doubling(value->type().shape[0]), inputs, options).outputs.at(0);
}

float first_of(const std::shared_ptr<Storage>& value) { return value->to_host().view<float>()[0]; }

TEST(Storage, ResultStaysOnItsDeviceUntilItIsRead) {
  SimulatedMachine machine({card()});
  const auto result = doubled(machine, Storage::from_host(numbers(1)));
  EXPECT_EQ(result->device(), "sim:0");
  EXPECT_FALSE(result->is_on_host());
  EXPECT_EQ(first_of(result), 2);
  EXPECT_TRUE(result->is_on_host());
}

TEST(Storage, ClosingDeviceMovesItsTensorsToTheHost) {
  SimulatedMachine machine({card()});
  const auto result = doubled(machine, Storage::from_host(numbers(1)));
  machine.manager().close("sim:0");
  EXPECT_EQ(result->device(), "");
  EXPECT_EQ(first_of(result), 2);
  EXPECT_GE(machine.counters().spills, 1u);
}

TEST(Storage, SpilledTensorComesBackOnNextUse) {
  SimulatedMachine machine({card()});
  const auto once = doubled(machine, Storage::from_host(numbers(1)));
  machine.manager().close("sim:0");
  const auto twice = doubled(machine, once);
  EXPECT_EQ(once->device(), "sim:0");
  EXPECT_EQ(first_of(twice), 4);
  EXPECT_EQ(machine.counters().restores, 1u);
}

TEST(Storage, MovesBetweenDevices) {
  SimulatedMachine machine({card(), card()});
  const auto here = doubled(machine, Storage::from_host(numbers(1)), "sim:0");
  const auto there = doubled(machine, here, "sim:1");
  const auto host = doubled(machine, there, "cpu:0");
  EXPECT_EQ(there->device(), "cpu:0");
  EXPECT_EQ(first_of(host), 8);
}

TEST(Storage, LostDeviceLosesWhatWasNowhereElse) {
  SimulatedDevice device = card();
  device.script = {"ok:run", "ok:run", "lost_mid_run:run"};
  SimulatedMachine machine({device});
  const auto read = doubled(machine, Storage::from_host(numbers(1)));
  const auto unread = doubled(machine, Storage::from_host(numbers(5)));
  EXPECT_EQ(first_of(read), 2);
  EXPECT_EQ(code_of([&] { doubled(machine, read); }), ErrorCode::unavailable);
  machine.wait_for(DeviceState::lost);
  EXPECT_EQ(first_of(read), 2);
  EXPECT_TRUE(unread->is_lost());
  EXPECT_EQ(code_of([&] { unread->to_host(); }), ErrorCode::data_loss);
  EXPECT_EQ(first_of(doubled(machine, read)), 4);
}

TEST(Storage, OldestTensorMakesRoomWhenTheBudgetIsFull) {
  SimulatedMachine machine({card()});         // 1 MiB, of which three quarters are the budget
  constexpr std::int64_t kCount = 48 * 1024;  // 192 KiB each
  std::vector<std::shared_ptr<Storage>> results;
  for (int i = 0; i < 8; ++i) results.push_back(doubled(machine, Storage::from_host(numbers(static_cast<float>(i), kCount))));
  EXPECT_GT(machine.counters().evictions, 0u);
  EXPECT_LE(machine.status().memory_peak_bytes, machine.status().memory_limit_bytes);
  EXPECT_EQ(results.back()->device(), "sim:0");
  for (int i = 0; i < 8; ++i) EXPECT_EQ(first_of(results[static_cast<std::size_t>(i)]), static_cast<float>(2 * i));
}

TEST(Storage, TensorUsedLeastRecentlyIsEvictedFirst) {
  SimulatedMachine machine({card()});         // room for four
  constexpr std::int64_t kCount = 48 * 1024;  // 192 KiB each
  const auto used = doubled(machine, Storage::from_host(numbers(1, kCount)));
  const auto unused = doubled(machine, Storage::from_host(numbers(2, kCount)));
  const auto newer = doubled(machine, used);
  const auto newest = doubled(machine, Storage::from_host(numbers(3, kCount)));
  EXPECT_EQ(machine.counters().evictions, 1u);
  EXPECT_EQ(unused->device(), "");
  for (const auto& value : {used, newer, newest}) EXPECT_EQ(value->device(), "sim:0");
  EXPECT_EQ(first_of(unused), 4);
}

TEST(Storage, TensorTooLargeForTheBudgetIsRefusedAndNothingIsLost) {
  SimulatedMachine machine({card()});
  const auto small = doubled(machine, Storage::from_host(numbers(1)));
  EXPECT_EQ(code_of([&] { doubled(machine, Storage::from_host(numbers(1, 1 << 20))); }), ErrorCode::resource_exhausted);
  EXPECT_EQ(first_of(small), 2);
  EXPECT_EQ(machine.add(1, 2), 3);
}

TEST(Storage, OutlivesDeviceAndManager) {
  std::shared_ptr<Storage> result;
  {
    SimulatedMachine machine({card()});
    result = doubled(machine, Storage::from_host(numbers(1)));
  }
  EXPECT_EQ(first_of(result), 2);
}

TEST(Storage, MayBeDroppedByAnyThreadWhileTheDeviceCloses) {
  SimulatedMachine machine({card()});
  for (int round = 0; round < 50; ++round) {
    std::vector<std::shared_ptr<Storage>> values;
    for (int i = 0; i < 8; ++i) values.push_back(doubled(machine, Storage::from_host(numbers(1))));
    std::thread dropping([&] { values.clear(); });
    machine.manager().close("sim:0");
    dropping.join();
  }
  EXPECT_EQ(machine.status().resident_tensors, 0u);
  EXPECT_EQ(machine.status().memory_used_bytes, 0u);
}

// Random interleavings of create, compute, move, close, reopen, lose, drop: every read is the right value or data_loss.
TEST(Storage, EveryReadIsRightWhateverHappensToTheDevices) {
  SimulatedDevice fragile = card();
  fragile.faults.lost_mid_run = 0.01;
  fragile.seed = 7;
  SimulatedMachine machine({card(), fragile});
  struct Value {
    std::shared_ptr<Storage> storage;
    float expected;
  };
  std::vector<Value> values;
  std::mt19937 random(42);
  int reads = 0, losses = 0;
  const auto any_device = [&] { return std::string(random() % 2 ? "sim:0" : "sim:1"); };
  for (int step = 0; step < 3000; ++step) {
    const unsigned action = random() % 100;
    if (values.empty() || action < 20) {
      const float first = static_cast<float>(random() % 1000);
      values.push_back({Storage::from_host(numbers(first)), first});
    } else if (action < 60) {
      const Value from = values[random() % values.size()];
      if (from.expected > 1e6f) continue;
      try {
        values.push_back({doubled(machine, from.storage, any_device()), 2 * from.expected});
      } catch (const Error& error) {
        ASSERT_TRUE(error.code() == ErrorCode::unavailable || error.code() == ErrorCode::data_loss) << error.what();
      }
    } else if (action < 80) {
      const Value& value = values[random() % values.size()];
      try {
        ASSERT_EQ(first_of(value.storage), value.expected);
        ++reads;
      } catch (const Error& error) {
        ASSERT_EQ(error.code(), ErrorCode::data_loss) << error.what();
        ++losses;
      }
    } else if (action < 85) {
      machine.manager().close(any_device());
    } else {
      values.erase(values.begin() + static_cast<std::ptrdiff_t>(random() % values.size()));
    }
  }
  EXPECT_GT(reads, 100);
  EXPECT_GT(losses, 0);
}

}  // namespace
}  // namespace tenon

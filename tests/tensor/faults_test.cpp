// Tensors on devices that fail in every way at once: what is read is right, or a clear error.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <random>
#include <thread>

#include "manager/simulated_machine.h"
#include "tenon/tensor.h"
#include "tenon/tensor/functions.h"

namespace tenon {
namespace {

using test::card;
using test::SimulatedMachine;

SimulatedDevice failing(double rate, std::uint64_t seed) {
  SimulatedDevice device = card();
  device.virtual_time = true;
  device.faults = {rate, rate, rate, rate, rate, rate};
  device.seed = seed;
  return device;
}

// A tensor, and what its elements must be: all are whole numbers, so that every order of computing gives the same.
struct Known {
  Tensor tensor;
  std::vector<double> values;
};

bool is_documented(ErrorCode code) {
  return code == ErrorCode::unavailable || code == ErrorCode::deadline_exceeded || code == ErrorCode::resource_exhausted ||
         code == ErrorCode::data_loss;
}

class Player {
 public:
  Player(DeviceManager& manager, std::uint64_t seed) : manager_(manager), random_(seed) {}

  void play(int steps) {
    const UseManager use(manager_);
    for (int i = 0; i < steps; ++i) {
      try {
        step();
      } catch (const Error& error) {
        EXPECT_TRUE(is_documented(error.code())) << error.what();
        ++errors;
      }
    }
  }

  int right = 0, errors = 0;

 private:
  std::size_t any(std::size_t count) { return random_() % count; }
  std::string device() { return any(2) == 0 ? "sim:0" : "sim:1"; }

  void step() {
    if (pool_.empty() || any(8) == 0) return create();
    const std::size_t at = any(pool_.size());
    switch (any(8)) {
      case 0: return drop(at);
      case 1: return read(at);
      case 2: return move(at);
      case 3: return manager_.close(device());
      case 4: pool_[at].tensor.eval(); return;
      default: return combine(at, any(pool_.size()));
    }
  }

  void create() {
    std::vector<double> values(4);
    for (double& value : values) value = static_cast<double>(any(10));
    add({Tensor::from(values), values});
  }
  void drop(std::size_t at) {
    pool_[at] = std::move(pool_.back());
    pool_.pop_back();
  }
  void read(std::size_t at) {
    const Known known = pool_[at];
    try {
      EXPECT_EQ(known.tensor.to_host().to_doubles(), known.values);
      ++right;
    } catch (const Error& error) {
      // Gone for good: reading it again would say the same.
      if (error.code() == ErrorCode::data_loss) drop(at);
      throw;
    }
  }
  void move(std::size_t at) { pool_[at].tensor = pool_[at].tensor.to(device()); }
  void combine(std::size_t a, std::size_t b) {
    Known sum;
    sum.tensor = (pool_[a].tensor % 1000 + pool_[b].tensor % 1000).on(device());
    for (std::size_t i = 0; i < 4; ++i)
      sum.values.push_back(std::fmod(pool_[a].values[i], 1000) + std::fmod(pool_[b].values[i], 1000));
    add(std::move(sum));
  }
  void add(Known known) {
    if (pool_.size() >= 20) drop(any(pool_.size()));
    pool_.push_back(std::move(known));
  }

  DeviceManager& manager_;
  std::mt19937_64 random_;
  std::vector<Known> pool_;
};

TEST(TensorFaults, RandomUseOfFailingDevicesGivesRightValuesOrDocumentedErrors) {
  SimulatedMachine machine({failing(0.05, 1), failing(0.05, 2)});
  Player player(machine.manager(), 7);
  player.play(2000);
  EXPECT_GT(player.right, 50);
  EXPECT_GT(player.errors, 50);
}

TEST(TensorFaults, ThreadsShareFailingDevices) {
  SimulatedMachine machine({failing(0.05, 3), failing(0.05, 4)});
  std::atomic<int> right = 0, errors = 0;
  std::vector<std::jthread> threads;
  for (std::uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      Player player(machine.manager(), t);
      player.play(300);
      right += player.right;
      errors += player.errors;
    });
  threads.clear();
  EXPECT_GT(right, 0);
  EXPECT_GT(errors, 0);
  // No lease is stuck: the CPU and both cards answer eventually.
  for (const char* device : {"cpu", "sim:0", "sim:1"}) {
    const UseManager use(machine.manager());
    for (;;) {
      try {
        EXPECT_EQ((tensor({1, 2}) + 1).on(device).to_vector<int>(), (std::vector<int>{2, 3}));
        break;
      } catch (const Error& error) {
        ASSERT_TRUE(is_documented(error.code())) << error.what();
      }
    }
  }
}

}  // namespace
}  // namespace tenon

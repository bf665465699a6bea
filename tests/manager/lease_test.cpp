// Leases on simulated devices: the queue of threads, the state machine, keeping open, closing, yielding, losing.
#include "tenon/lease.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <numeric>
#include <optional>
#include <thread>

#include "lease/turnstile/turnstile.h"
#include "manager/simulated_machine.h"
#include "tenon/error.h"
#include "tenon/expression.h"
#include "tenon/ops.h"

namespace tenon {
namespace {

using namespace std::chrono_literals;
using test::card;
using test::code_of;
using test::SimulatedMachine;

TEST(Lease, TakesTheDeviceAndGivesItBackAtTheEndOfTheScope) {
  SimulatedMachine machine({card()});
  {
    const Lease lease = machine.manager().lease({.device = "sim:0"});
    EXPECT_EQ(lease.device().id, "sim:0");
    EXPECT_EQ(machine.state(), DeviceState::busy);
    EXPECT_GT(lease.epoch(), 0u);
  }
  EXPECT_NE(machine.state(), DeviceState::busy);
}

TEST(Lease, OpensOnDemandAndClosesAfterEveryLease) {
  SimulatedMachine machine({card()}, [](Config& config) { config.keep_open = KeepOpenPolicy::on_demand; });
  for (int i = 1; i <= 3; ++i) {
    machine.manager().lease({.device = "sim:0"}).release();
    machine.wait_for(DeviceState::closed);
    EXPECT_EQ(machine.counters().opens, static_cast<unsigned>(i));
    EXPECT_EQ(machine.counters().closes, static_cast<unsigned>(i));
  }
}

TEST(Lease, KeptOpenDeviceIsFoundWarm) {
  SimulatedMachine machine({card()}, [](Config& config) { config.keep_open = KeepOpenPolicy::always; });
  for (int i = 0; i < 5; ++i) machine.manager().lease({.device = "sim:0"});
  EXPECT_EQ(machine.counters().opens, 1u);
  EXPECT_EQ(machine.counters().cold, 1u);
  EXPECT_EQ(machine.counters().warm, 4u);
}

TEST(Lease, WaitsAreCountedByWhatTheyMet) {
  SimulatedMachine machine({card()});
  {
    const Lease opens = machine.manager().lease({.device = "sim:0"});
  }
  std::optional<Lease> holder = machine.manager().lease({.device = "sim:0"});
  std::jthread waiter([&] { machine.manager().lease({.device = "sim:0", .mode = LeaseMode::exclusive}); });
  machine.wait_for_users(2);
  holder.reset();
  waiter.join();
  const DeviceCounters counters = machine.counters();
  const auto waits = [](const WaitHistogram& of) { return std::accumulate(of.counts.begin(), of.counts.end(), 0u); };
  EXPECT_EQ(waits(counters.cold_waits), 1u);
  EXPECT_EQ(waits(counters.warm_waits), 1u);
  EXPECT_EQ(waits(counters.queued_waits), 1u);
  EXPECT_GT(counters.queued_waits.seconds, 0);
  EXPECT_EQ(counters.overtakes, 0u);
}

TEST(Lease, ItsUsualLengthIsWhatTheRouterExpectsOfThoseAhead) {
  SimulatedMachine machine({card()});
  for (int i = 0; i < 3; ++i) machine.manager().lease({.device = "sim:0"});
  const Lease holder = machine.manager().lease({.device = "sim:0", .mode = LeaseMode::exclusive});
  const Decision decision = machine.manager().explain(parse_expression("1 + 1", {}), "sim:0");
  EXPECT_EQ(decision.considered.front().candidate.ahead, 1);
  ASSERT_TRUE(decision.considered.front().candidate.queue_seconds);
  EXPECT_LT(*decision.considered.front().candidate.queue_seconds, 1.0);  // what is assumed of a device never used
}

TEST(Lease, LingeringDeviceClosesByItself) {
  SimulatedMachine machine({card()}, [](Config& config) {
    config.keep_open = KeepOpenPolicy::linger;
    config.linger_seconds = 0.01;
  });
  machine.manager().lease({.device = "sim:0"}).release();
  machine.wait_for(DeviceState::closed);
  EXPECT_EQ(machine.counters().closes, 1u);
}

TEST(Lease, SameThreadMayAskAgain) {
  SimulatedMachine machine({card()});
  Lease outer = machine.manager().lease({.device = "sim:0"});
  Lease inner = machine.manager().lease({.device = "sim:0", .timeout = 0ns});
  outer.release();
  EXPECT_EQ(machine.state(), DeviceState::busy);
  inner.release();
  EXPECT_EQ(machine.state(), DeviceState::idle);
}

TEST(Lease, SharedHolderCannotAskForTheWholeDevice) {
  SimulatedMachine machine({card()});
  const Lease shared = machine.manager().lease({.device = "sim:0", .mode = LeaseMode::shared});
  EXPECT_EQ(code_of([&] { machine.manager().lease({.device = "sim:0", .mode = LeaseMode::exclusive}); }),
            ErrorCode::failed_precondition);
}

TEST(Lease, ExclusiveLeasesOfThreadsExcludeEachOther) {
  SimulatedMachine machine({card()});
  std::atomic<int> inside{0}, most{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 200; ++k) {
        const Lease lease = machine.manager().lease({.device = "sim:0"});
        most = std::max(most.load(), ++inside);
        --inside;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(most, 1);
  EXPECT_EQ(machine.counters().leases, 800u);
}

TEST(Lease, SharedLeasesAreHeldTogether) {
  SimulatedMachine machine({card()});
  const Lease here = machine.manager().lease({.device = "sim:0", .mode = LeaseMode::shared});
  std::thread([&] {
    EXPECT_NO_THROW(machine.manager().lease({.device = "sim:0", .timeout = 0ns, .mode = LeaseMode::shared}));
    EXPECT_EQ(code_of([&] { machine.manager().lease({.device = "sim:0", .timeout = 0ns, .mode = LeaseMode::exclusive}); }),
              ErrorCode::deadline_exceeded);
  }).join();
}

TEST(Lease, WhoOnlyTriesOpensADeviceThatNobodyHas) {
  SimulatedMachine machine({card()});
  EXPECT_NO_THROW(machine.manager().lease({.device = "sim:0", .timeout = 0ns}));
  const Lease held = machine.manager().lease({.device = "sim:0", .timeout = 0ns});
  SimulatedMachine neighbour(machine);
  EXPECT_EQ(code_of([&] { neighbour.manager().lease({.device = "sim:0", .timeout = 0ns}); }), ErrorCode::deadline_exceeded);
}

// Threads that come while the device is held are served by priority, then in the order they came.
TEST(Lease, GrantsByPriorityThenArrival) {
  SimulatedMachine machine({card()});
  Lease held = machine.manager().lease({.device = "sim:0"});
  std::mutex mutex;
  std::vector<int> order;
  std::vector<std::thread> threads;
  const int priorities[] = {0, 0, 5, 0, 5};
  for (int i = 0; i < 5; ++i) {
    threads.emplace_back([&, i] {
      const Lease lease = machine.manager().lease({.device = "sim:0", .priority = priorities[i]});
      const std::lock_guard lock(mutex);
      order.push_back(i);
    });
    machine.wait_for_users(static_cast<std::size_t>(i) + 2);
  }
  held.release();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(order, (std::vector<int>{2, 4, 0, 1, 3}));
}

TEST(Lease, WaitEndsAtItsTimeLimitAndSaysWhy) {
  SimulatedMachine machine({card()});
  const Lease held = machine.manager().lease({.device = "sim:0"});
  std::thread([&] {
    try {
      machine.manager().lease({.device = "sim:0", .timeout = 5ms});
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::deadline_exceeded);
      EXPECT_NE(std::string(error.what()).find("1 ahead"), std::string::npos) << error.what();
    }
  }).join();
  EXPECT_EQ(machine.counters().timeouts, 1u);
  EXPECT_EQ(machine.users(), 1u);
}

TEST(Lease, CancellingEndsARunBetweenItsRepeats) {
  SimulatedMachine machine({card()});
  std::stop_source stop;
  RunOptions options;
  options.device = "sim:0";
  options.repeat = 1'000'000'000;
  options.cancel = stop.get_token();
  options.on_progress = [&](const Progress& progress) {
    if (progress.stage == "computing") stop.request_stop();
  };
  EXPECT_EQ(code_of([&] { machine.manager().run(parse_expression("1 + 1", {}), {}, options); }), ErrorCode::cancelled);
  EXPECT_EQ(machine.state(), DeviceState::idle);
}

TEST(Lease, WaitCanBeCancelled) {
  SimulatedMachine machine({card()});
  const Lease held = machine.manager().lease({.device = "sim:0"});
  std::stop_source stop;
  std::thread waiter([&] {
    EXPECT_EQ(code_of([&] { machine.manager().lease({.device = "sim:0", .cancel = stop.get_token()}); }), ErrorCode::cancelled);
  });
  machine.wait_for_users(2);
  stop.request_stop();
  waiter.join();
  EXPECT_EQ(machine.counters().cancellations, 1u);
}

TEST(Lease, WaiterIsToldItsPlace) {
  SimulatedMachine machine({card()});
  Lease held = machine.manager().lease({.device = "sim:0"});
  std::atomic<int> ahead{-1};
  std::thread waiter([&] {
    machine.manager().lease({.device = "sim:0", .on_wait = [&](const QueuePlace& place) { ahead = place.ahead_here; }});
  });
  EXPECT_TRUE(test::eventually(60s, [&] { return ahead >= 0; }));
  EXPECT_EQ(ahead, 1);
  held.release();
  waiter.join();
}

TEST(Lease, ThrowingWhileToldItsPlaceLeavesTheQueue) {
  SimulatedMachine machine({card()});
  const Lease held = machine.manager().lease({.device = "sim:0"});
  std::thread([&] {
    EXPECT_THROW(machine.manager().lease({.device = "sim:0", .on_wait = [](const QueuePlace&) { throw std::logic_error("no"); }}),
                 std::logic_error);
  }).join();
  EXPECT_EQ(machine.users(), 1u);
}

TEST(Lease, FailedOpeningIsTriedAgainAndThenTold) {
  SimulatedDevice device = card();
  device.script = {"open_fails:open"};
  SimulatedMachine once({device});
  EXPECT_NO_THROW(once.manager().lease({.device = "sim:0"}));

  device.script.clear();
  device.faults.open_fails = 1;
  SimulatedMachine always({device});
  EXPECT_EQ(code_of([&] { always.manager().lease({.device = "sim:0"}); }), ErrorCode::unavailable);
  EXPECT_EQ(always.state(), DeviceState::failed);
  EXPECT_EQ(always.counters().open_failures, 1u);
}

TEST(Lease, HangingOpeningHoldsUpNobodyLongerThanHeWants) {
  SimulatedDevice device = card();
  device.script = {"open_hangs:open"};
  device.hang_seconds = 0.2;
  SimulatedMachine machine({device});
  EXPECT_EQ(code_of([&] { machine.manager().lease({.device = "sim:0", .timeout = 5ms}); }), ErrorCode::deadline_exceeded);
}

TEST(Lease, FailedClosingMakesTheNextGrantDirty) {
  SimulatedDevice device = card();
  device.script = {"close_fails:close"};
  SimulatedMachine machine({device}, [](Config& config) { config.keep_open = KeepOpenPolicy::on_demand; });
  machine.manager().lease({.device = "sim:0"}).release();
  machine.wait_for(DeviceState::closed);
  EXPECT_EQ(machine.counters().close_failures, 1u);
  machine.manager().lease({.device = "sim:0"}).release();
  EXPECT_EQ(machine.counters().dirty_grants, 1u);
}

TEST(Lease, LostDeviceIsOpenedAnewByTheNextOne) {
  SimulatedDevice device = card();
  device.script = {"lost_mid_run:run"};
  SimulatedMachine machine({device});
  EXPECT_EQ(code_of([&] { machine.add(1, 2); }), ErrorCode::unavailable);
  EXPECT_EQ(machine.add(1, 2), 3);
  EXPECT_EQ(machine.counters().lost, 1u);
  EXPECT_EQ(machine.counters().opens, 2u);
}

TEST(Lease, OutlivesItsManager) {
  Lease lease;
  {
    SimulatedMachine machine({card()});
    lease = machine.manager().lease({.device = "sim:0"});
  }
  EXPECT_EQ(lease.device().id, "sim:0");
}

TEST(Lease, WaiterIsCancelledWhenTheManagerGoes) {
  auto machine = std::make_unique<SimulatedMachine>(std::vector{card()});
  Lease held = machine->manager().lease({.device = "sim:0"});
  std::thread waiter(
      [&manager = machine->manager()] { EXPECT_EQ(code_of([&] { manager.lease({.device = "sim:0"}); }), ErrorCode::cancelled); });
  machine->wait_for_users(2);
  machine->manager().shut_down();
  waiter.join();
}

// Another process, played by a second manager: they share nothing but the run directory.
TEST(Yield, WaitingProcessEndsAnIdleHoldAtOnce) {
  SimulatedMachine holder({card()}, [](Config& config) { config.keep_open = KeepOpenPolicy::always; });
  holder.manager().lease({.device = "sim:0"}).release();
  EXPECT_EQ(holder.state(), DeviceState::idle);
  SimulatedMachine other(holder);
  EXPECT_NO_THROW(other.manager().lease({.device = "sim:0", .timeout = 20s}));
  EXPECT_EQ(holder.counters().yields, 1u);
  EXPECT_EQ(holder.state(), DeviceState::closed);
}

TEST(Yield, HeldLeaseGoesAwayAfterItsQuantumAndComesBack) {
  SimulatedMachine holder({card()}, [](Config& config) { config.quantum_seconds = 0.02; });
  const Lease lease = holder.manager().lease({.device = "sim:0"});
  EXPECT_EQ(holder.add(1, 2), 3);
  const std::uint64_t first_epoch = lease.epoch();
  SimulatedMachine other(holder);
  {
    const Lease theirs = other.manager().lease({.device = "sim:0", .timeout = 20s});
    EXPECT_EQ(other.add(2, 2), 4);
    EXPECT_EQ(holder.state(), DeviceState::closed);
  }
  EXPECT_EQ(holder.add(3, 4), 7);  // in the same lease
  EXPECT_GT(lease.epoch(), first_epoch);
  EXPECT_EQ(holder.counters().yields, 1u);
}

TEST(Yield, CancelledForeignWaiterChangesNothing) {
  SimulatedMachine holder({card()}, [](Config& config) { config.quantum_seconds = 3600; });
  const Lease lease = holder.manager().lease({.device = "sim:0"});
  SimulatedMachine other(holder);
  EXPECT_EQ(code_of([&] { other.manager().lease({.device = "sim:0", .timeout = 5ms}); }), ErrorCode::deadline_exceeded);
  EXPECT_EQ(holder.add(1, 1), 2);
  EXPECT_EQ(holder.counters().yields, 0u);
}

TEST(Yield, StatusNamesTheOtherProcess) {
  SimulatedMachine holder({card()});
  const Lease lease = holder.manager().lease({.device = "sim:0"});
  EXPECT_EQ(holder.status().users.at(0).who, "this process");
}

TEST(Lease, CloseOnRequestKeepsTheLease) {
  SimulatedMachine machine({card()});
  const Lease lease = machine.manager().lease({.device = "sim:0"});
  EXPECT_EQ(machine.add(1, 2), 3);
  machine.manager().close("sim:0");
  EXPECT_EQ(machine.state(), DeviceState::closed);
  EXPECT_EQ(machine.add(1, 2), 3);
  EXPECT_EQ(machine.counters().opens, 2u);
}

// Acquires aimed at the edge of closing: the policy closes after a hundred microseconds, and threads come at about that distance.
TEST(Lease, NoneIsLostAtTheClosingEdge) {
  SimulatedMachine machine({card()}, [](Config& config) {
    config.keep_open = KeepOpenPolicy::linger;
    config.linger_seconds = 100e-6;
  });
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 3; ++seed)
    threads.emplace_back([&, seed] {
      for (unsigned i = 0; i < 1500; ++i) {
        machine.manager().lease({.device = "sim:0", .timeout = 60s});
        const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds((i * 37 + seed * 11) % 250);
        while (std::chrono::steady_clock::now() < until) std::this_thread::yield();
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(machine.counters().leases, 4500u);
  EXPECT_GT(machine.counters().closes, 1u);
}

TEST(Pool, TheDeviceUsedLastGoesFirstAndTheRestGoCold) {
  SimulatedMachine machine({card(), card(), card()}, [](Config& config) { config.keep_open = KeepOpenPolicy::always; });
  for (int i = 0; i < 10; ++i) machine.add(1, 2, "tenstorrent");
  std::size_t opened = 0;
  for (const DeviceStatus& status : machine.manager().status())
    opened += status.counters.opens > 0 && is_simulated(status.device);
  EXPECT_EQ(opened, 1u);
}

TEST(Pool, BusyDeviceSendsTheNextOneElsewhere) {
  SimulatedMachine machine({card(), card()});
  const Lease first = machine.manager().lease({.device = "tenstorrent"});
  std::thread([&] {
    const Lease second = machine.manager().lease({.device = "tenstorrent", .timeout = 10s});
    EXPECT_NE(second.device().id, first.device().id);
  }).join();
}

TEST(Pool, DeviceThatAnotherProcessHoldsIsPassedOver) {
  SimulatedMachine machine({card(), card()});
  SimulatedMachine other(machine);
  const Lease theirs = other.manager().lease({.device = "sim:0"});
  EXPECT_EQ(machine.manager().lease({.device = "tenstorrent"}).device().id, "sim:1");
}

TEST(Lease, ObserverHearsTheLifeOfADevice) {
  SimulatedMachine machine({card()}, [](Config& config) { config.keep_open = KeepOpenPolicy::on_demand; });
  std::mutex mutex;
  std::vector<DeviceEvent::Kind> heard;
  const auto handle = machine.manager().observe([&](const DeviceEvent& event) {
    const std::lock_guard lock(mutex);
    heard.push_back(event.kind);
  });
  machine.add(1, 2);
  machine.manager().shut_down();
  const std::lock_guard lock(mutex);
  for (const DeviceEvent::Kind kind : {DeviceEvent::Kind::opened, DeviceEvent::Kind::granted, DeviceEvent::Kind::ran,
                                       DeviceEvent::Kind::released, DeviceEvent::Kind::closed})
    EXPECT_EQ(std::count(heard.begin(), heard.end(), kind), 1) << name(kind);
}

}  // namespace
}  // namespace tenon

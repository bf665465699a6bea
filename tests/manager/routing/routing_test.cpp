// Routing as runs see it: decided once, reported as it was, kept until the machine changes.
#include "manager/routing/routing.h"

#include <gtest/gtest.h>

#include <atomic>

#include "backends/cpu/backend.h"
#include "manager/simulated_machine.h"
#include "tenon/expression.h"

namespace tenon {
namespace {

using test::SimulatedMachine;

struct Asked {
  std::atomic<int> devices{0}, latency{0};
  std::atomic<bool> is_available{true};
};

// Two equal GPUs that compute on the CPU, and count what they are asked.
class Twins final : public Backend {
 public:
  explicit Twins(Asked& asked) : asked_(asked), cpu_(cpu::make_backend()) {}
  std::string_view name() const noexcept override { return "twins"; }
  std::vector<DeviceInfo> devices() override {
    ++asked_.devices;
    std::vector<DeviceInfo> both(2);
    for (std::size_t i = 0; i < both.size(); ++i) {
      both[i].id = "twin:" + std::to_string(i);
      both[i].name = "Twin";
      both[i].kind = DeviceKind::gpu;
      both[i].exclusive = true;
      both[i].backends = {"twins"};
      both[i].available = asked_.is_available;
      both[i].reason = asked_.is_available ? "" : "unplugged";
    }
    return both;
  }
  using Backend::open;
  std::unique_ptr<OpenDevice> open(const DeviceInfo&, const OpenOptions& options) override {
    return cpu_->open(cpu_->devices().at(0), options);
  }
  Latency latency(const DeviceInfo&) const override {
    ++asked_.latency;
    return {};
  }

 private:
  Asked& asked_;
  std::unique_ptr<Backend> cpu_;
};

class RoutedRuns : public ::testing::Test {
 protected:
  RoutedRuns() { machine.manager().add_backend(std::make_unique<Twins>(asked)); }
  RunResult run(const std::string& device = "auto", bool explain = false) {
    return machine.manager().run(graph, {}, {.device = device, .explain = explain});
  }

  Asked asked;
  SimulatedMachine machine{{}};
  const Graph graph = parse_expression("1 + 1");
};

TEST_F(RoutedRuns, ReportTheDeviceTheyUsed) {
  for (const char* request : {"auto", "gpu", "cpu", "twin:1", "cpu:0"})
    for (const bool explain : {false, true, false}) {
      const RunResult result = run(request, explain);
      ASSERT_NE(result.decision, nullptr);
      EXPECT_EQ(result.decision->device.id, result.device->id) << request;
      EXPECT_FALSE(result.decision->reason.empty()) << request;
      EXPECT_EQ(result.decision->considered.front().candidate.device.id, result.device->id) << request;
      if (explain) EXPECT_GT(result.decision->considered.front().predicted.total(), 0) << request;
    }
}

TEST_F(RoutedRuns, ReportTheCardThatWasFreeWhenAnotherThreadHasItsTwin) {
  for (const bool explain : {false, true}) {
    run("gpu", explain);
    for (const char* taken : {"twin:0", "twin:1"}) {
      std::thread([&] {
        const Lease lease = machine.manager().lease({.device = taken});
        std::thread([&] {
          const RunResult result = run("gpu", explain);
          EXPECT_NE(result.device->id, taken);
          EXPECT_EQ(result.decision->device.id, result.device->id);
        }).join();
      }).join();
    }
  }
}

TEST_F(RoutedRuns, RouteOnceWhereTheDecisionIsExplained) {
  run("gpu");
  run("twin:0");
  run("twin:1");
  const int before = asked.latency;
  run("gpu", true);
  EXPECT_EQ(asked.latency - before, 2);  // each card once
}

TEST_F(RoutedRuns, DoNotRouteAgainForTheSameRequest) {
  const RunResult first = run();
  const int before = asked.devices;
  const RunResult second = run();
  EXPECT_EQ(asked.devices, before);
  EXPECT_EQ(first.decision, second.decision);
}

TEST_F(RoutedRuns, DoNotRouteAgainBecauseDevicesWereListed) {
  const RunResult first = run();
  for (int i = 0; i < 2; ++i) machine.manager().devices();
  const int before = asked.devices;
  const RunResult second = run();
  EXPECT_EQ(asked.devices, before);
  EXPECT_EQ(first.decision, second.decision);
}

TEST_F(RoutedRuns, TakeADeviceThatAListShowedToHaveCome) {
  asked.is_available = false;
  machine.manager().devices();
  EXPECT_EQ(run().device->id, "cpu:0");
  asked.is_available = true;
  EXPECT_EQ(run().device->id, "cpu:0");  // nobody has looked
  machine.manager().devices();
  EXPECT_EQ(run().device->kind, DeviceKind::gpu);
}

TEST_F(RoutedRuns, TellTheDecisionOnceBeforeAnythingElse) {
  std::vector<std::string> told;
  RunOptions options;
  options.on_decision = [&](const Decision& decision) { told.push_back("decided " + decision.device.id); };
  options.on_progress = [&](const Progress& progress) { told.push_back(progress.stage); };
  const RunResult result = machine.manager().run(graph, {}, options);
  ASSERT_GT(told.size(), 1u);
  EXPECT_EQ(told.front(), "decided " + result.device->id);
  EXPECT_EQ(std::count_if(told.begin(), told.end(), [](const std::string& t) { return t.starts_with("decided"); }), 1);
}

TEST_F(RoutedRuns, UnderALeaseSayThatItIsTheReason) {
  const Lease lease = machine.manager().lease({.device = "twin:1"});
  for (const bool explain : {false, true}) {
    const RunResult result = run("auto", explain);
    EXPECT_EQ(result.device->id, "twin:1");
    EXPECT_EQ(result.decision->reason, "this thread holds a lease of it");
  }
  EXPECT_EQ(machine.manager().explain(graph).device.id, "twin:1");
}

TEST_F(RoutedRuns, BackendsMayBeAddedWhileOthersRun) {
  std::atomic<bool> is_over{false};
  std::thread other([&] {
    while (!is_over) run("cpu", true);
  });
  struct Nothing final : Backend {
    std::string called;
    explicit Nothing(int i) : called("nothing " + std::to_string(i)) {}
    std::string_view name() const noexcept override { return called; }
    std::vector<DeviceInfo> devices() override { return {}; }
    std::unique_ptr<OpenDevice> open(const DeviceInfo&, const OpenOptions&) override { return nullptr; }
  };
  for (int i = 0; i < 20; ++i) machine.manager().add_backend(std::make_unique<Nothing>(i));
  is_over = true;
  other.join();
}

TEST(ClosingAfterARun, ClosesTheDeviceAndIsPartOfTheTimeline) {
  SimulatedMachine machine({test::card()});
  EXPECT_FALSE(machine.manager().needs_closing());
  RunResult result = machine.manager().run(parse_expression("1 + 1"), {}, {.device = "sim:0"});
  EXPECT_TRUE(machine.manager().needs_closing());
  const std::size_t stages = result.timeline.size();
  machine.manager().close_after(result);
  EXPECT_FALSE(machine.manager().needs_closing());
  EXPECT_EQ(machine.state(), DeviceState::closed);
  ASSERT_EQ(result.timeline.size(), stages + 1);
  EXPECT_EQ(result.timeline.back().stage, "closing");
  EXPECT_EQ(result.timeline.back().start_seconds,
            result.timeline[stages - 1].start_seconds + result.timeline[stages - 1].seconds);
}

TEST(ClosingAfterARun, TheCpuIsNeverClosed) {
  SimulatedMachine machine({});
  RunResult result = machine.manager().run(parse_expression("1 + 1"), {}, {.device = "cpu:0"});
  EXPECT_FALSE(machine.manager().needs_closing());
  const std::size_t stages = result.timeline.size();
  machine.manager().close_after(result);
  EXPECT_EQ(result.timeline.size(), stages);
}

}  // namespace
}  // namespace tenon

// Programs that are compiled for the CPU already run without a lease of their own; their results and reports are those of any
// run.
#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "manager/simulated_machine.h"
#include "tenon/manager.h"
#include "tenon/ops.h"

namespace tenon {
namespace {

using test::code_of;

Graph sum_of_two() {
  Graph graph;
  const NodeId a = graph.input("a", DType::f32, {3}), b = graph.input("b", DType::f32, {3});
  graph.set_outputs(apply(graph, "add", {a, b}));
  return graph;
}

std::vector<std::string> stages(const Timeline& timeline) {
  std::vector<std::string> names;
  for (const Span& span : timeline) names.push_back(span.stage);
  return names;
}

DeviceCounters counters(const DeviceManager& manager) { return manager.used().at(0).counters; }

const HostArray kOnes = HostArray::full(DType::f32, {3}, 1), kTwos = HostArray::full(DType::f32, {3}, 2);

TEST(RunAtOnce, ReportsLikeTheRunThatCompiledTheProgram) {
  DeviceManager manager;
  std::vector<DeviceEvent> events;
  const auto observer = manager.observe([&](const DeviceEvent& event) { events.push_back(event); }, {DeviceEvent::Kind::ran});
  const Graph graph = sum_of_two();
  const HostArray inputs[] = {kOnes, kTwos};
  std::vector<RunResult> results;
  for (int i = 0; i < 3; ++i) results.push_back(manager.run(graph, inputs, {.device = "cpu", .program = "sum"}));
  ASSERT_EQ(events.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(results[i].outputs.at(0).to_doubles(), (std::vector<double>{3, 3, 3}));
    EXPECT_EQ(results[i].device->id, "cpu:0");
    EXPECT_EQ(results[i].decision, results[0].decision);
    EXPECT_EQ(stages(results[i].timeline), stages(results[0].timeline));
    EXPECT_EQ(stages(events[i].timeline), stages(results[0].timeline));
    EXPECT_EQ(events[i].program, "sum");
    EXPECT_EQ(events[i].bytes, 3u * 3 * sizeof(float));
    double seconds = 0;
    for (const Span& span : results[i].timeline) {
      EXPECT_DOUBLE_EQ(span.start_seconds, seconds) << span.stage;
      seconds += span.seconds;
    }
    EXPECT_DOUBLE_EQ(events[i].seconds, seconds);
    EXPECT_GT(seconds, 0);
    EXPECT_LT(std::chrono::abs(events[i].when - std::chrono::system_clock::now()), std::chrono::minutes(10));
  }
  EXPECT_EQ(counters(manager).runs, 3u);
  EXPECT_EQ(counters(manager).leases, 3u);
  EXPECT_EQ(counters(manager).bytes_up, 3u * 2 * 3 * sizeof(float));
}

TEST(RunAtOnce, ResultsDoNotShareMemoryWithOneAnother) {
  DeviceManager manager;
  const Graph graph = sum_of_two();
  const HostArray first[] = {kOnes, kTwos}, second[] = {kTwos, kTwos};
  manager.run(graph, first, {.device = "cpu"});
  const RunResult three = manager.run(graph, first, {.device = "cpu"}), four = manager.run(graph, second, {.device = "cpu"});
  EXPECT_EQ(three.outputs[0].value(0), 3);
  EXPECT_EQ(four.outputs[0].value(0), 4);
}

TEST(RunAtOnce, EndsWithTheErrorOfAnyRun) {
  DeviceManager manager;
  const Graph graph = sum_of_two();
  const HostArray right[] = {kOnes, kTwos}, wrong[] = {kOnes, HostArray::full(DType::f32, {4}, 1)};
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(code_of([&] { manager.run(graph, wrong, {.device = "cpu"}); }), ErrorCode::invalid_argument);
  manager.run(graph, right, {.device = "cpu"});
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(code_of([&] { manager.run(graph, wrong, {.device = "cpu"}); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([&] { manager.run(graph, {}, {.device = "cpu"}); }), ErrorCode::invalid_argument);
  EXPECT_EQ(counters(manager).run_failures, 4u);
  EXPECT_EQ(counters(manager).runs, 1u);
}

TEST(RunAtOnce, TakesALeaseWhereLeasesAreObserved) {
  DeviceManager manager;
  const Graph graph = sum_of_two();
  const HostArray inputs[] = {kOnes, kTwos};
  for (int i = 0; i < 2; ++i) manager.run(graph, inputs, {.device = "cpu"});
  int granted = 0;
  const auto observer = manager.observe([&](const DeviceEvent&) { ++granted; }, {DeviceEvent::Kind::granted});
  manager.run(graph, inputs, {.device = "cpu"});
  EXPECT_EQ(granted, 1);
}

TEST(RunAtOnce, IsCancelledBeforeItBegins) {
  DeviceManager manager;
  const Graph graph = sum_of_two();
  const HostArray inputs[] = {kOnes, kTwos};
  for (int i = 0; i < 2; ++i) manager.run(graph, inputs, {.device = "cpu"});
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(code_of([&] { manager.run(graph, inputs, {.device = "cpu", .cancel = stop.get_token()}); }), ErrorCode::cancelled);
}

}  // namespace
}  // namespace tenon

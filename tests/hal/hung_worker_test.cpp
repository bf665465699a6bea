// Workers that do not answer: processes that are really stopped.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/threads/stop_scope.h"
#include "eventually.h"
#include "hal/worker/worker.h"
#include "tenon/error.h"
#include "tenon/ops.h"

namespace tenon {
namespace {

using namespace std::chrono_literals;

// The workers of this process. A child that has not become one yet must not be stopped: whoever starts it waits for that.
std::vector<pid_t> children() {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream status(entry.path() / "status");
    bool is_worker = false;
    for (std::string line; std::getline(status, line);) {
      is_worker = is_worker || line == "Name:\ttenon-worker";
      if (is_worker && line == "PPid:\t" + std::to_string(getpid())) found.push_back(static_cast<pid_t>(std::stol(name)));
    }
  }
  return found;
}

void stop_worker() {
  ASSERT_EQ(children().size(), 1u);
  kill(children()[0], SIGSTOP);
}

std::unique_ptr<OpenDevice> open(const WorkerLimits& limits = {}) {
  DeviceInfo info;
  info.id = "cpu:0";
  info.backends = {"cpu"};
  return open_in_worker("cpu", info, {}, {.limits = limits});
}

ErrorCode code_of(const auto& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::ok;
}

struct Program {
  std::unique_ptr<Executable> executable;
  std::unique_ptr<Buffer> in, out;

  explicit Program(OpenDevice& device) {
    Graph graph;
    graph.set_outputs(apply(graph, "exp", {graph.input("x", DType::f32, {4})}));
    executable = device.compile(graph);
    in = device.upload(HostArray::full(DType::f32, {4}, 1));
    out = device.allocate({DType::f32, {4}});
  }
  void run() const { executable->run({in.get()}, {out.get()}); }
};

TEST(HungWorker, RunEndsAtItsLimitAndTheDeviceIsLost) {
  const auto device = open({.stop = 100ms});
  const Program program(*device);
  stop_worker();
  const StopScope scope({}, 100ms);
  EXPECT_EQ(code_of([&] { program.run(); }), ErrorCode::deadline_exceeded);
  EXPECT_TRUE(device->is_lost());
  EXPECT_TRUE(children().empty()) << "it was killed and reaped";
}

TEST(HungWorker, CancelledRunEndsAfterAMoment) {
  const auto device = open({.stop = 100ms});
  const Program program(*device);
  stop_worker();
  std::stop_source stop;
  const StopScope scope(stop.get_token());
  std::jthread canceller([&] { stop.request_stop(); });
  EXPECT_EQ(code_of([&] { program.run(); }), ErrorCode::cancelled);
  EXPECT_TRUE(device->is_lost());
}

TEST(HungWorker, WorkerThatCanStopItsRunKeepsTheDevice) {
  const auto device = open({.stop = 1h});
  Graph graph;
  NodeId node = graph.input("x", DType::f32, {1 << 22});
  for (int i = 0; i < 500; ++i) node = apply(graph, "lgamma", {node})[0];
  graph.set_outputs({node});
  const auto program = device->compile(graph);
  const auto in = device->upload(HostArray::full(DType::f32, {1 << 22}, 1.5));
  const auto out = device->allocate({DType::f32, {1 << 22}});
  {
    const StopScope scope({}, 100ms);
    EXPECT_EQ(code_of([&] { program->run({in.get()}, {out.get()}); }), ErrorCode::deadline_exceeded);
  }
  EXPECT_FALSE(device->is_lost());
  EXPECT_NO_THROW(Program(*device).run()) << "the next request is not the one that was to stop";
}

TEST(HungWorker, TransferEndsByItself) {
  const auto device = open({.transfer = 100ms});
  stop_worker();
  EXPECT_EQ(code_of([&] { device->upload(HostArray::full(DType::f32, {1 << 18}, 1)); }), ErrorCode::deadline_exceeded);
  EXPECT_TRUE(device->is_lost());
  EXPECT_EQ(code_of([&] { device->allocate({DType::f32, {4}}); }), ErrorCode::unavailable) << "and at once from now on";
}

TEST(HungWorker, ClosingEndsByItself) {
  const auto device = open({.close = 100ms});
  stop_worker();
  EXPECT_NE(code_of([&] { device->close(); }), ErrorCode::ok);
  EXPECT_TRUE(children().empty());
}

TEST(HungWorker, DroppedBuffersDoNotWaitForIt) {
  const auto device = open({.transfer = 60s, .close = 100ms});
  std::vector<std::unique_ptr<Buffer>> buffers;
  for (int i = 0; i < 80'000; ++i) buffers.push_back(device->allocate({DType::f32, {1}}));
  stop_worker();
  buffers.clear();  // more messages than the socket holds
  EXPECT_TRUE(device->is_lost());
}

TEST(HungWorker, IsToldAtOnceThatLargeBuffersAreDropped) {
  const auto device = open({.transfer = 60s, .close = 100ms});
  std::vector<std::unique_ptr<Buffer>> buffers;
  for (int i = 0; i < 1000; ++i) buffers.push_back(device->allocate({DType::u8, {1100 << 10}}));
  stop_worker();
  buffers.clear();  // few bytes in all, but a message each
  EXPECT_TRUE(device->is_lost());
}

TEST(HungWorker, AbandonedDeviceFailsTheCallThatWaits) {
  const auto device = open();
  const Program program(*device);
  stop_worker();
  std::jthread abandoning([&] { EXPECT_TRUE(device->abandon()); });
  EXPECT_EQ(code_of([&] { program.run(); }), ErrorCode::unavailable);
  EXPECT_TRUE(device->is_lost());
}

TEST(HungWorker, OpeningEndsByItself) {
  // Stopped as soon as it exists, before it has opened anything.
  std::jthread stopping([](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      for (const pid_t worker : children()) kill(worker, SIGSTOP);
      std::this_thread::yield();
    }
  });
  ErrorCode code = ErrorCode::ok;
  // The worker may win; then it is opened again.
  for (int i = 0; i < 20 && code == ErrorCode::ok; ++i) code = code_of([] { open({.open = 300ms, .close = 100ms}); });
  EXPECT_EQ(code, ErrorCode::deadline_exceeded);
}

}  // namespace
}  // namespace tenon

// The sim backend: what it promises of an accelerator, and every fault.
#include "backends/sim/backend.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "backends/all.h"
#include "backends/cpu/backend.h"
#include "temporary_folder.h"
#include "tenon/error.h"
#include "tenon/ops.h"

namespace tenon {
namespace {

SimulatedDevice quick(std::string_view text = "wormhole") {
  SimulatedDevice device = parse_simulated(text);
  device.virtual_time = true;
  return device;
}

std::unique_ptr<Backend> simulate(std::vector<SimulatedDevice> devices) {
  return sim::make_backend(std::move(devices), cpu::make_backend());
}

ErrorCode code_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.code();
  }
  return ErrorCode::ok;
}

HostArray ramp(std::int64_t size) {
  std::vector<float> values(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return HostArray::from<float>({size}, std::span<const float>(values));
}

Graph doubling(std::int64_t size) {
  Graph graph;
  const NodeId x = graph.input("x", DType::f32, {size});
  graph.set_outputs({apply(graph, "add", {x, x})[0]});
  return graph;
}

// Computes 2 * ramp on the device. Every call of it may throw.
std::vector<double> doubled(OpenDevice& device, std::int64_t size = 4) {
  const auto program = device.compile(doubling(size));
  const auto x = device.upload(ramp(size));
  const auto y = device.allocate(program->output_types()[0]);
  program->run({x.get()}, {y.get()});
  return device.download(*y).to_doubles();
}

const std::vector<double> kDoubled{0, 2, 4, 6};

struct Opened {
  std::unique_ptr<Backend> backend;
  DeviceInfo info;
  std::unique_ptr<OpenDevice> device;
};

Opened open_one(SimulatedDevice simulated, const OpenOptions& options = {}) {
  Opened opened;
  opened.backend = simulate({std::move(simulated)});
  opened.info = opened.backend->devices().at(0);
  opened.device = opened.backend->open(opened.info, options);
  return opened;
}

TEST(SimBackend, DevicesSayThatTheyAreSimulated) {
  const auto backend = simulate({quick("wormhole"), quick("tpu,id=sim:7"), quick("gpu"), quick("blackhole")});
  const std::vector<DeviceInfo> devices = backend->devices();
  ASSERT_EQ(devices.size(), 4U);
  EXPECT_EQ(devices[0].id, "sim:0");
  EXPECT_EQ(devices[1].id, "sim:7");
  EXPECT_EQ(devices[2].id, "sim:1");
  EXPECT_EQ(devices[0].kind, DeviceKind::tenstorrent);
  EXPECT_EQ(devices[1].kind, DeviceKind::tpu);
  EXPECT_EQ(devices[2].kind, DeviceKind::gpu);
  EXPECT_EQ(devices[0].name, "Simulated Wormhole");
  EXPECT_TRUE(devices[0].supports_distributed);
  EXPECT_FALSE(devices[1].supports_distributed);
  for (const DeviceInfo& device : devices) {
    EXPECT_TRUE(is_simulated(device));
    EXPECT_EQ(device.vendor, "Tenon (simulated)");
    EXPECT_EQ(device.backends, std::vector<std::string>{"sim"});
  }
  EXPECT_FALSE(is_simulated(cpu::make_backend()->devices().at(0)));
}

TEST(SimBackend, IsRegisteredOnlyWhereThereIsSomethingToSimulate) {
  BackendRegistry without, with;
  register_all_backends(without);
  EXPECT_EQ(without.find("sim"), nullptr);
  const std::vector<SimulatedDevice> simulated{quick()};
  register_all_backends(with, simulated);
  EXPECT_NE(with.find("sim"), nullptr);
}

TEST(SimBackend, ARunTakesAtLeastItsTime) {
  const Opened opened = open_one(parse_simulated("gpu,open=0,close=0,compute=30ms"));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(doubled(*opened.device), kDoubled);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(30));
  const auto virtual_begin = std::chrono::steady_clock::now();
  EXPECT_EQ(doubled(*open_one(quick("gpu,compute=1000s")).device), kDoubled);
  EXPECT_LT(std::chrono::steady_clock::now() - virtual_begin, std::chrono::seconds(1000));
}

TEST(SimBackend, ADeviceCanBeUnplugged) {
  const test::TemporaryFolder folder;
  const std::string file = folder / "unplugged";
  Opened opened = open_one(quick("gpu,unplug=" + file));
  EXPECT_EQ(doubled(*opened.device), kDoubled);
  std::ofstream(file) << "";
  EXPECT_EQ(code_of([&] { doubled(*opened.device); }), ErrorCode::unavailable);
  EXPECT_TRUE(opened.device->is_lost());
  EXPECT_EQ(code_of([&] { opened.backend->open(opened.info, {}); }), ErrorCode::unavailable);
  std::filesystem::remove(file);
  opened.device.reset();
  EXPECT_EQ(doubled(*opened.backend->open(opened.info, {})), kDoubled);
}

TEST(SimBackend, WhatCannotBeSimulatedIsRefused) {
  SimulatedDevice slow_time = quick(), odd_id = quick(), fast = quick(), likely = quick(), script = quick();
  slow_time.open_seconds = -1;
  odd_id.id = "../x";
  fast.compute_factor = 0.5;
  likely.faults.open_fails = 1.5;
  script.script = {"explodes"};
  SimulatedDevice never = quick();
  never.script = {"open_fails:run"};
  for (const SimulatedDevice& bad : {slow_time, odd_id, fast, likely, script, never})
    EXPECT_EQ(code_of([&] { simulate({bad}); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([] { simulate({quick("gpu,id=sim:0"), quick("gpu,id=sim:0")}); }), ErrorCode::already_exists);
  EXPECT_EQ(code_of([] { simulate({SimulatedDevice{.architecture = "toaster"}}); }), ErrorCode::not_found);
}

TEST(SimBackend, ComputesWhatTheCpuComputes) {
  const Opened opened = open_one(quick());
  EXPECT_EQ(doubled(*opened.device), kDoubled);
  opened.device->close();
}

TEST(SimBackend, DeclaresItsLatencyAndWaitsForIt) {
  Opened opened;
  opened.backend = simulate({parse_simulated("gpu,open=20ms,close=30ms")});
  opened.info = opened.backend->devices().at(0);
  EXPECT_EQ(opened.backend->latency(opened.info).open_seconds, 0.02);
  EXPECT_EQ(opened.backend->latency(opened.info).close_seconds, 0.03);
  const auto start = std::chrono::steady_clock::now();
  opened.device = opened.backend->open(opened.info);
  const auto open = std::chrono::steady_clock::now();
  opened.device->close();
  const auto end = std::chrono::steady_clock::now();
  EXPECT_GE(open - start, std::chrono::milliseconds(20));
  EXPECT_GE(end - open, std::chrono::milliseconds(30));
}

TEST(SimBackend, VirtualTimeIsReportedButNotWaitedFor) {
  const Opened opened = open_one(quick("gpu,open=3600,close=3600"));
  EXPECT_EQ(opened.backend->latency(opened.info).open_seconds, 3600);
  opened.device->close();
}

TEST(SimBackend, TheComputeFactorStretchesARun) {
  SimulatedDevice simulated = parse_simulated("gpu,open=0,close=0,factor=50");
  const Opened slow = open_one(simulated), plain = open_one(quick());
  const auto time = [](OpenDevice& device) {
    const auto program = device.compile(doubling(1 << 18));
    const auto x = device.upload(ramp(1 << 18));
    const auto y = device.allocate(program->output_types()[0]);
    auto best = std::chrono::steady_clock::duration::max();
    for (int i = 0; i < 5; ++i) {
      const auto start = std::chrono::steady_clock::now();
      program->run({x.get()}, {y.get()});
      best = std::min(best, std::chrono::steady_clock::now() - start);
    }
    return best;
  };
  EXPECT_GT(time(*slow.device), 3 * time(*plain.device));
}

TEST(SimBackend, AnExclusiveDeviceHasOneUserAndASharedOneSeveral) {
  const Opened opened = open_one(quick("wormhole"));
  EXPECT_EQ(code_of([&] { opened.backend->open(opened.info); }), ErrorCode::unavailable);
  opened.device->close();
  EXPECT_EQ(doubled(*opened.backend->open(opened.info)), kDoubled);

  const Opened shared = open_one(quick("gpu"));
  const auto second = shared.backend->open(shared.info);
  EXPECT_EQ(doubled(*second), kDoubled);
  EXPECT_EQ(doubled(*shared.device), kDoubled);
}

TEST(SimBackend, WhatIsOnADeviceIsACopy) {
  const Opened opened = open_one(quick());
  HostArray array = ramp(4);
  const std::byte* before = array.data();
  const auto buffer = opened.device->upload(array);
  array.mutable_view<float>()[0] = 9;
  EXPECT_EQ(array.data(), before) << "the device holds a share of the host's memory";
  HostArray down = opened.device->download(*buffer);
  EXPECT_EQ(down.to_doubles(), (std::vector<double>{0, 1, 2, 3}));
  down.mutable_view<float>()[1] = 9;
  EXPECT_EQ(opened.device->download(*buffer).to_doubles(), (std::vector<double>{0, 1, 2, 3}));
}

TEST(SimBackend, MemoryIsWhatTheDeviceHas) {
  const Opened opened = open_one(quick("wormhole,memory=1000"));
  EXPECT_EQ(opened.info.memory_total_bytes, 1000U);
  auto first = opened.device->upload(ramp(200));
  EXPECT_EQ(opened.backend->devices().at(0).memory_free_bytes, 200U);
  try {
    opened.device->allocate({DType::f32, {51}});
    FAIL() << "allocated more than there is";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::resource_exhausted);
    EXPECT_NE(std::string_view(e.what()).find("204 B"), std::string_view::npos) << e.what();
    EXPECT_NE(std::string_view(e.what()).find("800 B"), std::string_view::npos) << e.what();
  }
  EXPECT_NO_THROW(opened.device->allocate({DType::f32, {50}}));
  first.reset();
  EXPECT_NO_THROW(opened.device->allocate({DType::f32, {250}}));
}

TEST(SimBackend, MemoryIsAlsoWhatTheBudgetAllows) {
  const auto budget = MemoryBudget::make("sim:0", 100);
  const Opened opened = open_one(quick(), {.budget = budget});
  auto buffer = opened.device->upload(ramp(20));
  EXPECT_EQ(budget->used_bytes(), 80U);
  EXPECT_EQ(code_of([&] { opened.device->allocate({DType::f32, {6}}); }), ErrorCode::resource_exhausted);
  EXPECT_EQ(opened.backend->devices().at(0).memory_free_bytes.value() + 80, opened.info.memory_total_bytes)
      << "a refused allocation keeps memory";
  buffer.reset();
  EXPECT_EQ(budget->used_bytes(), 0U);
}

TEST(SimBackend, AClosedDeviceIsNeverReadAgain) {
  const Opened opened = open_one(quick());
  const auto program = opened.device->compile(doubling(4));
  const auto x = opened.device->upload(ramp(4));
  const auto y = opened.device->allocate({DType::f32, {4}});
  opened.device->close();
  EXPECT_EQ(code_of([&] { opened.device->download(*x); }), ErrorCode::failed_precondition);
  EXPECT_EQ(code_of([&] { opened.device->upload(ramp(4)); }), ErrorCode::failed_precondition);
  EXPECT_EQ(code_of([&] { opened.device->allocate({DType::f32, {4}}); }), ErrorCode::failed_precondition);
  EXPECT_EQ(code_of([&] { opened.device->compile(doubling(4)); }), ErrorCode::failed_precondition);
  EXPECT_EQ(code_of([&] { program->run({x.get()}, {y.get()}); }), ErrorCode::failed_precondition);
  EXPECT_EQ(code_of([&] { opened.device->close(); }), ErrorCode::failed_precondition);
  EXPECT_FALSE(opened.device->is_lost());
  EXPECT_EQ(opened.backend->devices().at(0).memory_free_bytes, opened.info.memory_total_bytes);
}

TEST(SimBackend, BuffersOfAnEarlierTimeOpenAreRefused) {
  Opened opened = open_one(quick());
  const auto old = opened.device->upload(ramp(4));
  opened.device->close();
  const auto again = opened.backend->open(opened.info);
  EXPECT_EQ(code_of([&] { again->download(*old); }), ErrorCode::failed_precondition);
  const auto cpu = cpu::make_backend();
  const auto host = cpu->open(cpu->devices().at(0));
  const auto foreign = host->upload(ramp(4));
  EXPECT_EQ(code_of([&] { again->download(*foreign); }), ErrorCode::failed_precondition);
}

TEST(SimBackend, BuffersAndProgramsOutliveTheirDevice) {
  Opened opened = open_one(quick());
  auto program = opened.device->compile(doubling(4));
  auto x = opened.device->upload(ramp(4));
  opened.device.reset();
  opened.backend.reset();
  EXPECT_EQ(code_of([&] { program->run({x.get()}, {x.get()}); }), ErrorCode::failed_precondition);
  x.reset();
  program.reset();
}

TEST(SimFaults, OpeningFails) {
  SimulatedDevice simulated = quick();
  simulated.script = {"open_fails", "open_hangs", "ok"};
  const auto backend = simulate({simulated});
  const DeviceInfo info = backend->devices().at(0);
  EXPECT_EQ(code_of([&] { backend->open(info); }), ErrorCode::unavailable);
  EXPECT_EQ(code_of([&] { backend->open(info); }), ErrorCode::deadline_exceeded);
  EXPECT_EQ(doubled(*backend->open(info)), kDoubled);
}

TEST(SimFaults, AHangingOpenTakesItsTimeBeforeItFails) {
  SimulatedDevice simulated = parse_simulated("gpu,open=0,close=0,hang=30ms,open_hangs=1");
  const auto backend = simulate({simulated});
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(code_of([&] { backend->open(backend->devices().at(0)); }), ErrorCode::deadline_exceeded);
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(30));
}

TEST(SimFaults, AFailedCloseLeavesTheDeviceClosed) {
  const Opened opened = open_one(quick("wormhole,close_fails=1"));
  const auto buffer = opened.device->upload(ramp(4));
  EXPECT_EQ(code_of([&] { opened.device->close(); }), ErrorCode::unavailable);
  EXPECT_EQ(code_of([&] { opened.device->download(*buffer); }), ErrorCode::failed_precondition);
  EXPECT_EQ(doubled(*opened.backend->open(opened.info)), kDoubled);
}

TEST(SimFaults, OutOfMemoryNamesTheNumbersAndPasses) {
  SimulatedDevice simulated = quick();
  simulated.script = {"out_of_memory:allocate", "out_of_memory:upload"};
  const Opened opened = open_one(simulated);
  EXPECT_EQ(code_of([&] { opened.device->allocate({DType::f32, {4}}); }), ErrorCode::resource_exhausted);
  EXPECT_EQ(code_of([&] { opened.device->upload(ramp(4)); }), ErrorCode::resource_exhausted);
  EXPECT_EQ(doubled(*opened.device), kDoubled);
}

TEST(SimFaults, ALostDeviceThrowsFromEveryCallAndCanBeOpenedAnew) {
  SimulatedDevice simulated = quick();
  simulated.script = {"ok:run", "lost_mid_run:run"};
  const Opened opened = open_one(simulated);
  const auto program = opened.device->compile(doubling(4));
  const auto x = opened.device->upload(ramp(4));
  const auto y = opened.device->allocate({DType::f32, {4}});
  program->run({x.get()}, {y.get()});
  EXPECT_FALSE(opened.device->is_lost());
  EXPECT_EQ(code_of([&] { program->run({x.get()}, {y.get()}); }), ErrorCode::unavailable);
  EXPECT_TRUE(opened.device->is_lost());
  for (const std::function<void()>& call : std::initializer_list<std::function<void()>>{
           [&] { program->run({x.get()}, {y.get()}); },
           [&] { opened.device->download(*y); },
           [&] { opened.device->upload(ramp(4)); },
           [&] { opened.device->allocate({DType::f32, {4}}); },
           [&] { opened.device->compile(doubling(4)); },
       }) {
    try {
      call();
      ADD_FAILURE() << "a lost device answered";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::unavailable);
      EXPECT_NE(std::string_view(e.what()).find("was lost"), std::string_view::npos);
    }
  }
  EXPECT_NO_THROW(opened.device->close());
  EXPECT_EQ(opened.backend->devices().at(0).memory_free_bytes, opened.info.memory_total_bytes);
  EXPECT_EQ(doubled(*opened.backend->open(opened.info)), kDoubled);
}

TEST(SimFaults, UploadsAndDownloadsLoseADeviceToo) {
  for (const char* call : {"lost_mid_run:upload", "lost_mid_run:download"}) {
    SimulatedDevice simulated = quick();
    simulated.script = {call};
    const Opened opened = open_one(simulated);
    EXPECT_EQ(code_of([&] { doubled(*opened.device); }), ErrorCode::unavailable) << call;
    EXPECT_TRUE(opened.device->is_lost()) << call;
  }
}

TEST(SimFaults, ADeviceWhoseUserCrashedRefusesUntilItIsRecovered) {
  Opened opened = open_one(quick("wormhole,dirty_refuses=1"));
  opened.device->close();
  opened.device = opened.backend->open(opened.info);  // closed properly: no reason to refuse
  opened.device.reset();                              // not closed: as if its process had died
  EXPECT_EQ(code_of([&] { opened.backend->open(opened.info); }), ErrorCode::unavailable);
  EXPECT_EQ(code_of([&] { opened.backend->open(opened.info); }), ErrorCode::unavailable);
  opened.backend->recover(opened.info);
  EXPECT_EQ(doubled(*opened.backend->open(opened.info)), kDoubled);
}

TEST(SimFaults, AScriptCanTellOfACrashInAnotherProcess) {
  SimulatedDevice simulated = quick();
  simulated.script = {"dirty_refuses"};
  const auto backend = simulate({simulated});
  const DeviceInfo info = backend->devices().at(0);
  EXPECT_EQ(code_of([&] { backend->open(info); }), ErrorCode::unavailable);
  EXPECT_EQ(code_of([&] { backend->open(info); }), ErrorCode::unavailable);
  backend->recover(info);
  EXPECT_EQ(code_of([&] { backend->open(info); }), ErrorCode::ok);
}

// Which of a hundred rounds fail, and how.
std::string fate(std::uint64_t seed, std::string_view id) {
  SimulatedDevice simulated = quick("gpu,faults=0.05");
  simulated.seed = seed;
  simulated.id = id;
  const auto backend = simulate({simulated});
  const DeviceInfo info = backend->devices().at(0);
  std::string text;
  for (int i = 0; i < 100; ++i) {
    const ErrorCode code = code_of([&] {
      const auto device = backend->open(info);
      doubled(*device);
      device->close();
    });
    if (code != ErrorCode::ok) backend->recover(info);
    text += static_cast<char>('a' + static_cast<int>(code));
  }
  return text;
}

TEST(SimFaults, TheSameSeedGivesTheSameFaults) {
  const std::string one = fate(7, "sim:0");
  EXPECT_EQ(one, fate(7, "sim:0"));
  EXPECT_NE(one, fate(8, "sim:0"));
  EXPECT_NE(one, fate(7, "sim:1"));
  EXPECT_NE(one, std::string(100, 'a'));
}

TEST(SimFaults, AFaultIsAsLikelyAsItsRate) {
  const auto backend = simulate({quick("gpu,open_fails=0.25")});
  const DeviceInfo info = backend->devices().at(0);
  int failures = 0;
  for (int i = 0; i < 4000; ++i) failures += code_of([&] { backend->open(info)->close(); }) != ErrorCode::ok;
  EXPECT_NEAR(failures, 1000, 150);
}

TEST(SimFaults, ThreadsThatShareADeviceGetRightResultsOrClearErrors) {
  SimulatedDevice simulated = quick("gpu,lost_mid_run=0.01,out_of_memory=0.02");
  const auto backend = simulate({simulated});
  const DeviceInfo info = backend->devices().at(0);
  std::atomic<int> right = 0, failed = 0;
  for (int round = 0; round < 20; ++round) {
    const auto device = backend->open(info);
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < 20; ++i) {
          try {
            EXPECT_EQ(doubled(*device), kDoubled);
            ++right;
          } catch (const Error& e) {
            EXPECT_TRUE(e.code() == ErrorCode::unavailable || e.code() == ErrorCode::resource_exhausted) << e.what();
            ++failed;
          }
        }
      });
    threads.clear();
    EXPECT_NO_THROW(device->close());
  }
  EXPECT_GT(right, 0);
  EXPECT_GT(failed, 0);
  EXPECT_EQ(backend->devices().at(0).memory_free_bytes, info.memory_total_bytes);
}

}  // namespace
}  // namespace tenon

// The worker of the backend ttnn and its protocol. TTNN is the stand-in of the tests: nothing here has run on a chip.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <random>
#include <thread>

#include "base/threads/stop_scope.h"
#include "conformance/runner.h"
#include "eventually.h"
#include "hal/worker/hosted.h"
#include "tenon/error.h"
#include "tenon/ops.h"
#include "ttnn_testing.h"

namespace tenon::ttnn {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

Graph one_op(const char* op, DType dtype, const Shape& shape, int inputs = 1) {
  Graph graph;
  std::vector<NodeId> in;
  for (int i = 0; i < inputs; ++i) in.push_back(graph.input(std::string(1, static_cast<char>('a' + i)), dtype, shape));
  graph.set_outputs({apply(graph, find_op(op), in)[0]});
  return graph;
}

// Processes that run the worker and belong to this one, or to a process that has ended.
std::vector<pid_t> workers() {
  std::vector<pid_t> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream command(entry.path() / "cmdline"), environment(entry.path() / "environ");
    const std::string text((std::istreambuf_iterator<char>(command)), {}), own((std::istreambuf_iterator<char>(environment)), {});
    if (text.find("tenon-ttnn-worker") != std::string::npos &&
        own.find("TENON_WORKER_OF=" + std::to_string(getpid())) != std::string::npos)
      found.push_back(std::stoi(name));
  }
  return found;
}
std::size_t open_files() {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator()));
}
std::size_t shared_memory_files() {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator("/dev/shm"), fs::directory_iterator()));
}
std::size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}
// Allocators keep some of what they had.
constexpr std::size_t kSlackBytes = std::size_t{32} << 20;

// How often things are repeated: more at night.
int often(int few) {
  const char* const given = std::getenv("TENON_TEST_OFTEN");
  return given ? std::atoi(given) : few;
}

class TtnnWorker : public testing::Test {
 protected:
  void SetUp() override { TENON_NEEDS_NUMPY(); }
};

TEST_F(TtnnWorker, SaysThatItsRuntimeIsAStandIn) {
  StandIn chip;
  const auto device = chip.open();
  EXPECT_EQ(device->info().name, "NumPy stand-in for TTNN (no chip)");
  EXPECT_EQ(device->info().details.at("stand_in"), "yes");
  EXPECT_EQ(device->info().details.at("chip"), "blackhole");
  device->close();
}

TEST_F(TtnnWorker, ComputesInTheTierThatWasAskedFor) {
  const HostArray a = HostArray::from<float>({2, 2}, {1, 2, 3, 4}), b = HostArray::from<float>({2, 2}, {10, 20, 30, 40});
  for (const char* math : {"exact", "fast", "auto"}) {
    StandIn chip(math);
    const auto device = chip.open();
    const Graph graph = one_op("add", DType::f32, {2, 2}, 2);
    const auto program = device->compile(graph);
    const auto* const tiered = dynamic_cast<const Tiered*>(program.get());
    ASSERT_NE(tiered, nullptr);
    EXPECT_EQ(tiered->tier(), math == std::string("exact") ? "exact" : "fast");
    const HostArray sum = run(*device, graph, {a, b})[0];
    EXPECT_EQ(sum.view<float>()[3], 44) << math;
    device->close();
  }
}

// A sample of the conformance suite through the worker: one case of an op and type.
void expect_conformance(OpenDevice& device, std::initializer_list<const char*> ops, std::initializer_list<DType> dtypes) {
  conformance::Runner runner(device, {.extent = conformance::Extent::quick, .sample = 1, .command = "test"});
  for (const char* op : ops)
    for (const DType dtype : dtypes) {
      if (std::ranges::find(find_op(op).dtypes, dtype) == find_op(op).dtypes.end()) continue;
      const conformance::Verdict verdict = runner.run(find_op(op), dtype);
      EXPECT_EQ(verdict.status, conformance::Status::pass)
          << op << " " << name(dtype) << ": " << (verdict.failures.empty() ? verdict.reason : verdict.failures[0]);
    }
}

TEST_F(TtnnWorker, ExactProgramsConform) {
  StandIn chip("exact");
  const auto device = chip.open();
  expect_conformance(*device, {"add", "softmax", "matmul", "sort", "take", "scatter_add", "cumsum", "conv2d", "rand"},
                     {DType::f32, DType::bf16, DType::f64, DType::i64, DType::bfloat8_b});
  device->close();
}

// The stand-in is as wrong as the chips were measured to be: what keeps the limits here does so by its plan.
TEST_F(TtnnWorker, WhatRunsByDefaultConforms) {
  StandIn chip("auto");
  const auto device = chip.open();
  expect_conformance(
      *device,
      {"add",        "exp",     "where",       "eq",     "softmax",    "layer_norm", "rms_norm",    "matmul",    "linear",
       "sum",        "mean",    "max",         "min",    "transpose",  "concat",     "reshape",     "cumsum",    "hardtanh",
       "leaky_relu", "div",     "pad",         "slice",  "sqrt",       "rsqrt",      "reciprocal",  "sigmoid",   "silu",
       "sign",       "minimum", "maximum",     "conv2d", "max_pool2d", "avg_pool2d", "log_softmax", "attention", "sort",
       "take",       "any",     "logical_and", "gtz",    "clamp",      "embedding",  "gelu"},
      {DType::bf16, DType::f32});
  expect_conformance(*device, {"add", "max", "sum", "where", "transpose"}, {DType::i32});
  expect_conformance(*device, {"add", "matmul", "softmax", "cumsum", "max_pool2d"}, {DType::bfloat8_b});
  device->close();
}

TEST_F(TtnnWorker, FastProgramsConformInBfloat16) {
  StandIn chip("fast");
  const auto device = chip.open();
  expect_conformance(*device,
                     {"add", "exp", "matmul", "linear", "sum", "transpose", "concat", "cumsum", "hardtanh", "addcmul", "pad"},
                     {DType::bf16, DType::i32});
  device->close();
}

TEST_F(TtnnWorker, TheSimulatedWormholeComputesInBfloat16) {
  const Variable chip_is("TENON_STAND_IN_ARCH", "WORMHOLE_B0");
  const Variable simulated("TT_METAL_SIMULATOR", "/sim/libttsim.so");
  StandIn chip("auto");
  DeviceInfo info = StandIn::device();
  info.details["simulator"] = "/sim/libttsim.so";
  const auto device = chip.backend().open(info);
  EXPECT_EQ(device->info().details.at("chip"), "wormhole");
  expect_conformance(*device, {"add", "relu", "maximum", "where", "max", "gt", "softmax", "transpose"},
                     {DType::bf16, DType::f32});
  EXPECT_FALSE(device->is_lost());
  device->close();
}

TEST_F(TtnnWorker, TensorsStayOnTheChipBetweenPrograms) {
  for (const char* math : {"exact", "fast", "auto"}) {
    const auto stays = [&](DType dtype) {
      const Variable fails("TENON_STAND_IN_FAILS", "downloads");
      StandIn chip(math);
      const auto device = chip.open();
      const auto program = device->compile(one_op("relu", dtype, {20'000})),
                 next = device->compile(one_op("neg", dtype, {20'000}));
      const auto x = device->upload(HostArray::full(dtype, {20'000}, 3));
      const auto y = device->allocate({dtype, {20'000}}), z = device->allocate({dtype, {20'000}});
      program->run({x.get()}, {y.get()});
      next->run({y.get()}, {z.get()});
      program->run({z.get()}, {y.get()});
      EXPECT_THROW(device->download(*z), Error) << math << " " << name(dtype) << ": it comes down only when asked";
      device->close();
    };
    stays(DType::f32);
    stays(DType::bf16);
  }
}

TEST_F(TtnnWorker, ResultsComeDownAsTheyAre) {
  for (const char* math : {"exact", "fast", "auto"}) {
    StandIn chip(math);
    const auto device = chip.open();
    const auto square = device->compile(one_op("square", DType::bf16, {20'000}));
    const auto x = device->upload(HostArray::full(DType::bf16, {20'000}, 1.0078125));
    const auto y = device->allocate({DType::bf16, {20'000}}), z = device->allocate({DType::bf16, {20'000}});
    square->run({x.get()}, {y.get()});
    square->run({y.get()}, {z.get()});
    // Rounded to bfloat16 between the two.
    EXPECT_EQ(device->download(*z).value(19'999), 1.03125) << math;
    EXPECT_EQ(device->download(*y).value(0), 1.015625) << math;
    EXPECT_EQ(device->download(*x).value(0), 1.0078125) << math;
    device->close();
  }
}

TEST_F(TtnnWorker, AProgramRunsInBothTiers) {
  StandIn chip("auto");
  const auto device = chip.open();
  Graph graph;
  const NodeId x = graph.input("x", DType::bf16, {2, 3}), w = graph.input("w", DType::bf16, {3, 3});
  const NodeId sorted = apply(graph, "sort", {apply(graph, "matmul", {x, w})[0]})[0];
  graph.set_outputs({apply(graph, "neg", {sorted})[0], apply(graph, "gt", {sorted, x})[0]});
  const auto program = device->compile(graph);
  const auto* const tiered = dynamic_cast<const Tiered*>(program.get());
  EXPECT_EQ(tiered->tier(), "mixed");
  EXPECT_EQ(tiered->ops_by_tier().at("exact"), (std::vector<std::string>{"arg_sort", "gather"}));
  const std::vector<HostArray> results = run(*device, graph,
                                             {HostArray::from<float>({2, 3}, {1, 2, 3, 3, 2, 1}).cast(DType::bf16),
                                              HostArray::from<float>({3, 3}, {0, 1, 0, 0, 0, 1, 1, 0, 0}).cast(DType::bf16)});
  EXPECT_EQ(results[0].to_doubles(), (std::vector<double>{-1, -2, -3, -1, -2, -3}));
  EXPECT_EQ(results[1].to_doubles(), (std::vector<double>{0, 0, 0, 0, 0, 1}));
  device->close();
}

// With a tt-smi that only notes how it was called.
TEST_F(TtnnWorker, ACardThatDoesNotOpenAfterItsUserDiedIsResetByItsNumber) {
  const test::TemporaryFolder tools;
  const std::string calls = tools.path() / "calls";
  const std::string tool = tools.write("tt-smi", "#!/bin/sh\necho \"$@\" >> " + calls + "\n");
  fs::permissions(tool, fs::perms::owner_all);
  const Variable path("PATH", std::string(tools.path()) + ":" + std::getenv("PATH"));
  const Variable fails("TENON_STAND_IN_FAILS", "open"), reset("TENON_STAND_IN_RESET", calls);
  StandIn chip("exact");
  DeviceInfo card = StandIn::device();
  card.id = "tenstorrent:1";
  card.details["node"] = "/dev/tenstorrent/3";
  EXPECT_THROW(chip.backend().open(card), Error);
  EXPECT_FALSE(fs::exists(calls)) << "nobody died";
  chip.backend().recover(card);
  chip.backend().open(card)->close();
  std::ifstream noted(calls);
  std::string line;
  std::getline(noted, line);
  EXPECT_EQ(line, "-r 3") << "the driver's number, not the place in the list";
}

TEST_F(TtnnWorker, ReportsAnIndexThatIsOutOfRange) {
  StandIn chip("exact");
  const auto device = chip.open();
  Graph graph;
  const NodeId x = graph.input("x", DType::f32, {5}), i = graph.input("i", DType::i64, {2});
  graph.set_outputs({apply(graph, "take", {x, i})[0]});
  const HostArray values = HostArray::full(DType::f32, {5}, 1);
  try {
    run(*device, graph, {values, HostArray::from<std::int64_t>({2}, {1, 7})});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::out_of_range);
    EXPECT_NE(std::string(error.what()).find('7'), std::string::npos);
  }
  EXPECT_EQ(run(*device, graph, {values, HostArray::from<std::int64_t>({2}, {1, -5})})[0].view<float>()[1], 1);
  device->close();
}

TEST_F(TtnnWorker, WhatTtnnRefusesIsComputedInTheExactTier) {
  const Variable fails("TENON_STAND_IN_FAILS", "exp");
  StandIn chip("fast");
  const auto device = chip.open();
  const auto program = device->compile(one_op("exp", DType::f32, {4}));
  const auto* const tiered = dynamic_cast<const Tiered*>(program.get());
  EXPECT_EQ(tiered->tier(), "fast");
  const auto in = device->upload(HostArray::full(DType::f32, {4}, 0)), out = device->allocate({DType::f32, {4}});
  for (int i = 0; i < 3; ++i) {
    program->run({in.get()}, {out.get()});
    EXPECT_EQ(tiered->tier(), "exact") << "the answer says so";
    EXPECT_EQ(device->download(*out).view<float>()[3], 1);
  }
  device->close();
}

TEST_F(TtnnWorker, AnErrorOfTtnnLeavesTheDeviceUsable) {
  const Variable fails("TENON_STAND_IN_FAILS", "kernels");
  StandIn chip("auto");
  const auto device = chip.open();
  const HostArray x = HostArray::full(DType::f32, {4}, 1);
  try {
    run(*device, one_op("sqrt", DType::f32, {4}), {x});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find("backtrace"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("undefined reference"), std::string::npos) << error.what();
  }
  EXPECT_FALSE(device->is_lost());
  EXPECT_EQ(run(*device, one_op("neg", DType::f32, {4}), {x})[0].view<float>()[0], -1);
  device->close();
}

TEST_F(TtnnWorker, AChipThatDoesNotOpenIsUnavailable) {
  const Variable fails("TENON_STAND_IN_FAILS", "open");
  StandIn chip;
  try {
    chip.open();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unavailable);
    EXPECT_NE(std::string(error.what()).find("does not answer"), std::string::npos) << error.what();
  }
}

TEST_F(TtnnWorker, APythonWithoutTtnnIsExplained) {
  StandIn chip;
  const Variable path("PYTHONPATH", "");
  try {
    chip.open();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unavailable);
    EXPECT_NE(error.hint().find("TENON_TTNN_PYTHON"), std::string::npos);
  }
}

// A simulator ends its process on an error.
TEST_F(TtnnWorker, ARuntimeThatEndsItsProcessIsAnErrorOfOneRun) {
  StandIn chip("fast");
  const HostArray x = HostArray::full(DType::f32, {4}, 0);
  {
    const Variable fails("TENON_STAND_IN_FAILS", "die");
    const auto device = chip.open();
    EXPECT_THROW(run(*device, one_op("exp", DType::f32, {4}), {x}), Error);
    EXPECT_TRUE(device->is_lost());
  }
  const auto device = chip.open();
  EXPECT_EQ(run(*device, one_op("exp", DType::f32, {4}), {x})[0].view<float>()[0], 1);
  device->close();
}

TEST_F(TtnnWorker, AHungChipIsGivenUp) {
  const Variable fails("TENON_STAND_IN_FAILS", "hang");
  StandIn chip("fast");
  const auto device = chip.open();
  const HostArray x = HostArray::full(DType::f32, {4}, 0);
  const auto program = device->compile(one_op("exp", DType::f32, {4}));
  const auto in = device->upload(x), out = device->allocate({DType::f32, {4}});
  const StopScope scope({}, 200ms);
  EXPECT_THROW(program->run({in.get()}, {out.get()}), Error);
  EXPECT_TRUE(device->is_lost());
  EXPECT_TRUE(test::becomes_true(20s, [] { return workers().empty(); }));
}

// In microseconds, of many calls.
struct Times {
  double median = 0, best = 0;
};
Times times_of(const std::function<void()>& work) {
  std::vector<double> times;
  for (int i = 0; i < 2000; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    times.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
  }
  std::ranges::sort(times);
  return {times[times.size() / 2], times[0]};
}

// Told, not judged: a busy machine takes longer.
TEST_F(TtnnWorker, TellsTheTimeOfARoundTrip) {
  StandIn chip("exact");
  const auto device = chip.open();
  // Large enough to be answered; touches no chip.
  const Times times = times_of([&] { device->allocate({DType::f32, {8192}}); });
  std::printf("round trip: %.1f us median, %.1f us at best\n", times.median, times.best);
  EXPECT_GT(times.best, 0);
  device->close();
}

// With a chip that needs no time: a run is a request, the worker's steps in Python, and the answer.
TEST_F(TtnnWorker, TellsTheTimeOfARunWithoutTheChips) {
  const Variable instant("TENON_STAND_IN_INSTANT", "1");
  for (const char* math : {"fast", "exact"}) {
    StandIn chip(math);
    const auto device = chip.open();
    const auto program = device->compile(one_op("neg", DType::f32, {32, 32}));
    const auto x = device->upload(HostArray::full(DType::f32, {32, 32}, 1)), y = device->allocate({DType::f32, {32, 32}});
    const Times runs = times_of([&] { program->run({x.get()}, {y.get()}); });
    const Times downloads = times_of([&] { device->download(*y); });
    std::printf("%s: a run of one step %.1f us median, %.1f us at best; its result of 4 KiB down: %.1f us, %.1f us\n", math,
                runs.median, runs.best, downloads.median, downloads.best);
    EXPECT_GT(runs.best, 0);
    device->close();
  }
}

TEST_F(TtnnWorker, OpeningAndClosingLeavesNothingBehind) {
  StandIn chip("exact");
  chip.open()->close();
  const std::size_t files = open_files(), memory = shared_memory_files(), resident = resident_bytes();
  const int times = often(5);
  for (int i = 0; i < times; ++i) {
    const auto device = chip.open();
    EXPECT_EQ(run(*device, one_op("neg", DType::f32, {4}), {HostArray::full(DType::f32, {4}, 2)})[0].view<float>()[0], -2);
    device->close();
  }
  EXPECT_LE(open_files(), files);
  EXPECT_LE(shared_memory_files(), memory);
  EXPECT_LE(resident_bytes(), resident + kSlackBytes);
  std::printf("%d times, %.1f MiB more\n", times,
              (static_cast<double>(resident_bytes()) - static_cast<double>(resident)) / 0x1p20);
  EXPECT_TRUE(test::becomes_true(20s, [] { return workers().empty(); }));
}

TEST_F(TtnnWorker, KilledAtRandomTheNextRunWorks) {
  StandIn chip("exact");
  std::mt19937 random(7);
  const std::size_t files = open_files(), memory = shared_memory_files(), resident = resident_bytes();
  const Graph graph = one_op("square", DType::f32, {3000});
  const HostArray x = HostArray::full(DType::f32, {3000}, 3);
  const int times = often(5);
  for (int i = 0; i < times; ++i) {
    const auto device = chip.open();
    std::atomic<bool> is_done{false};
    std::thread killer([&, after = std::chrono::milliseconds(random() % 60)] {
      std::this_thread::sleep_for(after);
      device->abandon();
      is_done = true;
    });
    try {
      while (!is_done) EXPECT_EQ(run(*device, graph, {x})[0].view<float>()[0], 9);
      run(*device, graph, {x});
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("lost"), std::string::npos) << error.what();
    }
    killer.join();
    EXPECT_TRUE(device->is_lost());
    const auto next = chip.open();
    EXPECT_EQ(run(*next, graph, {x})[0].view<float>()[2999], 9);
    next->close();
  }
  EXPECT_LE(open_files(), files);
  EXPECT_LE(shared_memory_files(), memory);
  EXPECT_LE(resident_bytes(), resident + kSlackBytes);
  std::printf("%d times, %.1f MiB more\n", times,
              (static_cast<double>(resident_bytes()) - static_cast<double>(resident)) / 0x1p20);
  EXPECT_TRUE(test::becomes_true(20s, [] { return workers().empty(); }));
}

TEST_F(TtnnWorker, EndsWithItsParentEvenWhileItComputes) {
  const Variable fails("TENON_STAND_IN_FAILS", "hang");
  int tell[2];
  ASSERT_EQ(pipe(tell), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    // No more than this is safe in a fork of a program with threads; it has none yet.
    StandIn chip("fast");
    const auto device = chip.open();
    for (const pid_t worker : workers()) (void)!write(tell[1], &worker, sizeof worker);
    close(tell[1]);
    const auto program = device->compile(one_op("exp", DType::f32, {4}));
    const auto in = device->upload(HostArray::full(DType::f32, {4}, 0)), out = device->allocate({DType::f32, {4}});
    program->run({in.get()}, {out.get()});
    _exit(0);
  }
  close(tell[1]);
  std::vector<pid_t> started;
  for (pid_t worker = 0; read(tell[0], &worker, sizeof worker) == sizeof worker;) started.push_back(worker);
  close(tell[0]);
  ASSERT_FALSE(started.empty());
  std::this_thread::sleep_for(300ms);
  kill(parent, SIGKILL);
  waitpid(parent, nullptr, 0);
  for (const pid_t worker : started)
    EXPECT_TRUE(test::becomes_true(20s, [&] { return kill(worker, 0) != 0; })) << "process " << worker;
}

}  // namespace
}  // namespace tenon::ttnn

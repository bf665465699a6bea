#include "hal/worker/worker.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "eventually.h"
#include "tenon/error.h"
#include "tenon/ops.h"

namespace tenon {
namespace {

using namespace std::chrono_literals;

namespace fs = std::filesystem;

DeviceInfo processor() {
  DeviceInfo info;
  info.id = "cpu:0";
  info.kind = DeviceKind::cpu;
  info.name = "a processor";
  info.backends = {"cpu"};
  return info;
}

std::unique_ptr<OpenDevice> open_processor(const OpenOptions& options = {}) {
  return open_in_worker("cpu", processor(), options);
}

Graph sum_of_two(const Shape& shape) {
  Graph graph;
  const NodeId a = graph.input("a", DType::f32, shape), b = graph.input("b", DType::f32, shape);
  graph.set_outputs(apply(graph, "add", {a, b}));
  return graph;
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

// The parent of a process, as its status says; -1 when there is no such process.
pid_t parent_of(const std::string& pid) {
  std::ifstream status("/proc/" + pid + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("PPid:")) return static_cast<pid_t>(std::stol(line.substr(5)));
  return -1;
}

std::vector<pid_t> children() {
  std::vector<pid_t> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") == std::string::npos && parent_of(name) == getpid())
      found.push_back(static_cast<pid_t>(std::stol(name)));
  }
  return found;
}

ErrorCode code_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::ok;
}

// Opens a device and runs a program on it, over and over, until something fails or |stop|.
struct Work {
  std::unique_ptr<OpenDevice> device = open_processor();
  void go(int rounds) {
    const Shape shape{64, 64};
    for (int i = 0; i < rounds; ++i) {
      const auto program = device->compile(sum_of_two(shape));
      const auto a = device->upload(HostArray::full(DType::f32, shape, 1)),
                 b = device->upload(HostArray::full(DType::f32, shape, 2));
      const auto y = device->allocate({DType::f32, shape});
      program->run({a.get(), b.get()}, {y.get()});
      ASSERT_EQ(device->download(*y).value(17), 3);
    }
  }
};

TEST(Worker, RunsAProgramInAProcessOfItsOwn) {
  const auto device = open_processor();
  ASSERT_EQ(children().size(), 1u);
  const auto program = device->compile(sum_of_two({3}));
  EXPECT_EQ(program->input_types().size(), 2u);
  EXPECT_EQ(program->output_types()[0], (TensorType{DType::f32, {3}}));
  const auto a = device->upload(HostArray::from<float>({3}, {1, 2, 3})),
             b = device->upload(HostArray::from<float>({3}, {10, 20, 30}));
  const auto y = device->allocate({DType::f32, {3}});
  program->run({a.get(), b.get()}, {y.get()});
  EXPECT_EQ(device->download(*y).to_doubles(), (std::vector<double>{11, 22, 33}));
  EXPECT_EQ(device->download(*a).to_doubles(), (std::vector<double>{1, 2, 3}));
  device->close();
  EXPECT_TRUE(children().empty());
}

TEST(Worker, RunsAProgramWithMoreTensorsThanFitInOneMessage) {
  // Uploads, reservations and drops wait for the run; there are more of them than may wait.
  constexpr int kTensors = 300;
  const Shape shape{100};
  Graph graph;
  std::vector<NodeId> sums;
  for (int i = 0; i < kTensors; ++i) {
    const NodeId x = graph.input("x", DType::f32, shape);
    sums.push_back(apply(graph, "add", {x, graph.scalar(1, DType::f32)})[0]);
  }
  graph.set_outputs(sums);
  const auto device = open_processor();
  const auto program = device->compile(graph);
  for (int round = 0; round < 3; ++round) {
    std::vector<std::unique_ptr<Buffer>> buffers;
    std::vector<const Buffer*> inputs;
    std::vector<Buffer*> outputs;
    for (int i = 0; i < kTensors; ++i)
      inputs.push_back(buffers.emplace_back(device->upload(HostArray::full(DType::f32, shape, i + round))).get());
    for (int i = 0; i < kTensors; ++i) outputs.push_back(buffers.emplace_back(device->allocate({DType::f32, shape})).get());
    program->run(inputs, outputs);
    for (int i = 0; i < kTensors; ++i) ASSERT_EQ(device->download(*outputs[i]).value(99), i + round + 1);
  }
  device->close();
}

TEST(Worker, EveryDtypeSurvivesTheTrip) {
  const auto device = open_processor();
  for (const DType dtype : all_dtypes())
    for (const Shape& shape : {Shape{}, Shape{0}, Shape{7}, Shape{3, 0, 2}, Shape{5, 33}}) {
      const HostArray array = HostArray::full(dtype, shape, 1);
      const auto buffer = device->upload(array);
      const HostArray back = device->download(*buffer);
      ASSERT_EQ(back.dtype(), dtype);
      ASSERT_EQ(back.shape(), shape);
      ASSERT_EQ(back.bytes(), array.bytes());
      ASSERT_TRUE(array.bytes() == 0 || std::memcmp(back.data(), array.data(), array.bytes()) == 0) << name(dtype);
    }
}

TEST(Worker, TensorsLargerThanTheMemoryThatIsKeptPass) {
  const auto device = open_processor();
  const HostArray large = HostArray::full(DType::u8, {72 << 20}, 7);
  const auto buffer = device->upload(large);
  const auto small = device->upload(HostArray::full(DType::u8, {16}, 9));
  const HostArray back = device->download(*buffer);
  EXPECT_EQ(std::memcmp(back.data(), large.data(), large.bytes()), 0);
  EXPECT_EQ(device->download(*small).value(3), 9);
}

TEST(Worker, ProgramsWithLargeConstantsPass) {
  const auto device = open_processor();
  Graph graph;
  const NodeId x = graph.input("x", DType::f32, {1 << 16});
  graph.set_outputs(apply(graph, "mul", {x, graph.constant(HostArray::full(DType::f32, {1 << 16}, 3))}));
  const auto program = device->compile(graph);
  const auto a = device->upload(HostArray::full(DType::f32, {1 << 16}, 2));
  const auto y = device->allocate({DType::f32, {1 << 16}});
  program->run({a.get()}, {y.get()});
  EXPECT_EQ(device->download(*y).value(65535), 6);
}

TEST(Worker, ErrorsArriveAsTheyWereThrown) {
  const auto device = open_processor();
  Graph graph;
  const NodeId x = graph.input("x", DType::f32, {4}), i = graph.input("i", DType::i64, {1});
  graph.set_outputs({graph.take(x, i, 0)});
  const auto program = device->compile(graph);
  const auto a = device->upload(HostArray::full(DType::f32, {4}, 1));
  const auto beyond = device->upload(HostArray::from<std::int64_t>({1}, {9}));
  const auto y = device->allocate({DType::f32, {1}});
  EXPECT_EQ(code_of([&] { program->run({a.get(), beyond.get()}, {y.get()}); }), ErrorCode::out_of_range);
  EXPECT_FALSE(device->is_lost());
  const auto inside = device->upload(HostArray::from<std::int64_t>({1}, {-1}));
  program->run({a.get(), inside.get()}, {y.get()});
  EXPECT_EQ(device->download(*y).value(0), 1);
}

TEST(Worker, ABackendItDoesNotHaveIsUnavailable) {
  EXPECT_EQ(code_of([] { open_in_worker("abacus", processor(), {}); }), ErrorCode::unavailable);
  EXPECT_TRUE(children().empty());
}

TEST(Worker, AProgramThatEndsAtOnceIsUnavailable) {
  setenv("TENON_WORKER", "/bin/true", 1);
  EXPECT_EQ(code_of([] { open_processor(); }), ErrorCode::unavailable);
  setenv("TENON_WORKER", "/nowhere/tenon-worker", 1);
  EXPECT_EQ(code_of([] { open_processor(); }), ErrorCode::unavailable);
  unsetenv("TENON_WORKER");
  EXPECT_TRUE(children().empty());
}

TEST(Worker, BuffersAndProgramsMayOutliveTheirDevice) {
  auto device = open_processor();
  auto program = device->compile(sum_of_two({2}));
  auto buffer = device->upload(HostArray::full(DType::f32, {2}, 1));
  device->close();
  device.reset();
  buffer.reset();
  program.reset();
  EXPECT_TRUE(children().empty());
}

TEST(Worker, TheBudgetIsKeptInTheParent) {
  const auto budget = MemoryBudget::make("cpu:0", 1000);
  const auto device = open_processor({.budget = budget});
  auto buffer = device->upload(HostArray::full(DType::f32, {200}, 1));
  EXPECT_EQ(budget->used_bytes(), 800u);
  EXPECT_EQ(code_of([&] { device->allocate({DType::f32, {100}}); }), ErrorCode::resource_exhausted);
  buffer.reset();
  EXPECT_EQ(budget->used_bytes(), 0u);
}

TEST(Worker, OpeningAndClosingLeavesNothingBehind) {
  {
    open_processor()->close();
  }
  const std::size_t before = open_descriptors();
  for (int i = 0; i < 15; ++i) {
    Work work;
    work.go(1);
    if (i % 2 == 0) work.device->close();
  }
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_TRUE(children().empty());
}

// Fifty workers are killed, each a little later than the one before: half of them from their start on, while starting and
// opening, the others once they are open, while compiling, transferring, running.
TEST(Worker, KilledAtAnyStageItIsLostAndNothingStays) {
  const std::size_t before = open_descriptors();
  constexpr int kRounds = 50;
  int lost = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::atomic<bool> done{false}, is_open{false};
    std::thread killer([&] {
      std::vector<pid_t> workers;
      EXPECT_TRUE(test::eventually(60s, [&] { return done || !(workers = children()).empty(); }));
      if (round >= kRounds / 2) {
        EXPECT_TRUE(test::eventually(60s, [&] { return done || is_open; }));
      }
      std::this_thread::sleep_for(400us * (round % (kRounds / 2)));
      for (const pid_t worker : workers) kill(worker, SIGKILL);
    });
    std::unique_ptr<Work> work;
    const ErrorCode code = code_of([&] {
      work = std::make_unique<Work>();
      is_open = true;
      for (;;) work->go(100);
    });
    done = true;
    killer.join();
    ASSERT_EQ(code, ErrorCode::unavailable);
    if (work) {
      ASSERT_TRUE(work->device->is_lost());
      ASSERT_EQ(code_of([&] { work->device->allocate({DType::f32, {1}}); }), ErrorCode::unavailable);
      ++lost;
    }
    work.reset();
    ASSERT_EQ(waitpid(-1, nullptr, WNOHANG), -1);  // no zombie
    ASSERT_EQ(errno, ECHILD);
  }
  EXPECT_GE(lost, kRounds / 2);
  EXPECT_EQ(open_descriptors(), before);
}

TEST(Worker, NoDescriptorOfTheParentGetsIntoIt) {
  char path[] = "/tmp/tenon-worker-test-XXXXXX";
  const int inherited = mkstemp(path);  // not close-on-exec
  ASSERT_GE(inherited, 0);
  const auto device = open_processor();
  const std::vector<pid_t> workers = children();
  ASSERT_EQ(workers.size(), 1u);
  for (const auto& entry : fs::directory_iterator("/proc/" + std::to_string(workers[0]) + "/fd")) {
    std::error_code ignored;
    EXPECT_NE(fs::read_symlink(entry.path(), ignored), fs::path(path));
  }
  close(inherited);
  unlink(path);
}

// A process that opened a device is killed while a child of its own still holds its descriptors; the worker ends all the same.
TEST(Worker, EndsWithItsParent) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    const auto device = open_processor();
    const std::vector<pid_t> workers = children();
    const pid_t lingering = fork();
    if (lingering == 0) {
      pause();
      _exit(0);
    }
    const pid_t both[] = {workers[0], lingering};
    if (write(ends[1], both, sizeof both) != sizeof both) _exit(1);
    kill(getpid(), SIGKILL);
  }
  pid_t both[2] = {-1, -1};
  ASSERT_EQ(read(ends[0], both, sizeof both), static_cast<ssize_t>(sizeof both));
  int status = 0;
  ASSERT_EQ(waitpid(parent, &status, 0), parent);
  // Its orphans are ours now: this returns when the worker has ended.
  EXPECT_EQ(waitpid(both[0], &status, 0), both[0]);
  EXPECT_TRUE(WIFEXITED(status));
  kill(both[1], SIGKILL);
  EXPECT_EQ(waitpid(both[1], &status, 0), both[1]);
  prctl(PR_SET_CHILD_SUBREAPER, 0);
  close(ends[0]);
  close(ends[1]);
}

TEST(Worker, ThreadsMayShareADevice) {
  Work work;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { work.go(10); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(work.device->is_lost());
}

}  // namespace
}  // namespace tenon

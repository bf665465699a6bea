// What a worker process costs, and what it survives.
//
//   bench_worker                 run, upload and download in a worker against the same calls in this process
//   bench_worker --kills 500     workers killed at all stages: each time an error, no zombie, no descriptor more
//   bench_worker --cycles 10000  opened and closed again: descriptors and memory before and after
//
// With PLUGIN set to a PJRT plugin for CPUs, that is measured as well.
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "backends/cpu/backend.h"
#include "backends/pjrt/backend.h"
#include "backends/pjrt/device.h"
#include "backends/pjrt/environment.h"
#include "hal/worker/worker.h"
#include "tenon/error.h"
#include "tenon/ops.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

DeviceInfo device_called(const char* id, const char* backend) {
  DeviceInfo info;
  info.id = id;
  info.kind = DeviceKind::cpu;
  info.backends = {backend};
  return info;
}

Graph sum_of_two(const Shape& shape) {
  Graph graph;
  const NodeId a = graph.input("a", DType::f32, shape), b = graph.input("b", DType::f32, shape);
  graph.set_outputs(apply(graph, "add", {a, b}));
  return graph;
}

// The middle one of many, in microseconds.
template <class F>
double microseconds(int times, F&& f) {
  std::vector<double> each;
  for (int i = 0; i < times; ++i) {
    const auto start = Clock::now();
    f();
    each.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
  }
  std::nth_element(each.begin(), each.begin() + times / 2, each.end());
  return each[static_cast<std::size_t>(times / 2)];
}

struct Times {
  double run, upload, download;
};
Times measure(OpenDevice& device, const Shape& shape) {
  const auto program = device.compile(sum_of_two(shape));
  const HostArray array = HostArray::full(DType::f32, shape, 1);
  const auto a = device.upload(array), b = device.upload(array), y = device.allocate({DType::f32, shape});
  Times times{};
  times.run = microseconds(2000, [&] { program->run({a.get(), b.get()}, {y.get()}); });
  times.upload = microseconds(500, [&] { device.upload(array); });
  times.download = microseconds(500, [&] { device.download(*y); });
  return times;
}

void compare(const char* name, OpenDevice& direct, OpenDevice& worker) {
  fmt::print("{:8} {:>10} {:>22} {:>22} {:>22}\n", name, "elements", "run us", "upload us", "download us");
  for (const std::int64_t elements : {1024, 65536}) {
    const Times here = measure(direct, {elements}), there = measure(worker, {elements});
    const auto pair = [](double a, double b) { return fmt::format("{:.1f} -> {:.1f} (+{:.1f})", a, b, b - a); };
    fmt::print("{:8} {:>10} {:>22} {:>22} {:>22}\n", "", elements, pair(here.run, there.run), pair(here.upload, there.upload),
               pair(here.download, there.download));
  }
}

int overhead() {
  const auto backend = cpu::make_backend();
  const DeviceInfo processor = device_called("cpu:0", "cpu");
  compare("cpu", *backend->open(processor), *open_in_worker("cpu", processor, {}));
  if (const char* plugin = std::getenv("PLUGIN")) {
    DeviceInfo info = device_called("pjrt:0", "pjrt");
    info.details["plugin"] = plugin;
    const auto worker = pjrt::make_backend()->open(info);
    setenv("XLA_FLAGS", pjrt::xla_flags(plugin, "").c_str(), 1);
    compare("pjrt", *pjrt::open_here(plugin, info, {}), *worker);
  }
  return 0;
}

std::size_t open_descriptors() {
  const fs::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}
std::size_t resident_kilobytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS:")) return std::stoul(line.substr(6));
  return 0;
}

std::unique_ptr<OpenDevice> open_worker() { return open_in_worker("cpu", device_called("cpu:0", "cpu"), {}); }

void use(OpenDevice& device) {
  const auto program = device.compile(sum_of_two({64}));
  const auto a = device.upload(HostArray::full(DType::f32, {64}, 1)), y = device.allocate({DType::f32, {64}});
  program->run({a.get(), a.get()}, {y.get()});
  if (device.download(*y).value(63) != 2) throw Error(ErrorCode::internal, "a wrong result");
}

std::vector<pid_t> children() {
  std::vector<pid_t> found;
  std::ifstream list(fmt::format("/proc/self/task/{}/children", getpid()));
  for (pid_t pid; list >> pid;) found.push_back(pid);
  return found;
}

int kills(int count) {
  const std::size_t before = open_descriptors();
  int opening = 0, working = 0;
  for (int round = 0; round < count; ++round) {
    std::atomic<bool> done{false};
    std::thread killer([&] {
      std::vector<pid_t> workers;
      while (!done && (workers = children()).empty()) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::microseconds(97) * (round % 200));
      for (const pid_t worker : workers) kill(worker, SIGKILL);
    });
    std::unique_ptr<OpenDevice> device;
    ErrorCode code = ErrorCode::ok;
    try {
      device = open_worker();
      for (;;) use(*device);
    } catch (const Error& error) {
      code = error.code();
    }
    done = true;
    killer.join();
    const bool is_right = code == ErrorCode::unavailable && (!device || device->is_lost());
    ++(device ? working : opening);
    device.reset();
    if (!is_right || waitpid(-1, nullptr, WNOHANG) != -1 || errno != ECHILD) {
      fmt::print("round {}: {}\n", round, is_right ? "a zombie" : to_string(code));
      return 1;
    }
  }
  fmt::print("{} killed while starting, {} while working; descriptors {} -> {}\n", opening, working, before, open_descriptors());
  return open_descriptors() == before ? 0 : 1;
}

int cycles(int count) {
  for (int i = 0; i < 100; ++i) use(*open_worker());
  const std::size_t descriptors = open_descriptors(), memory = resident_kilobytes();
  const auto start = Clock::now();
  for (int i = 0; i < count; ++i) {
    const auto device = open_worker();
    if (i % 10 == 0) use(*device);
    if (i % 2 == 0) device->close();
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  fmt::print("{} cycles, {:.2f} ms each; descriptors {} -> {}, memory {} -> {} KiB\n", count, 1e3 * seconds / count, descriptors,
             open_descriptors(), memory, resident_kilobytes());
  return open_descriptors() == descriptors ? 0 : 1;
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  const int count = argc == 3 ? std::atoi(argv[2]) : 0;
  if (count > 0 && std::strcmp(argv[1], "--kills") == 0) return tenon::kills(count);
  if (count > 0 && std::strcmp(argv[1], "--cycles") == 0) return tenon::cycles(count);
  if (argc == 1) return tenon::overhead();
  fmt::print(stderr, "usage: bench_worker [--kills N | --cycles N]\n");
  return 2;
}

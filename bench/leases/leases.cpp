// Leases on simulated devices: what they cost, how soon a holder yields, and that nothing is lost however much goes wrong.
//   bench_leases overhead | yield [N] | edge [N] | faults [N] | cycles [N] | tensors [N] | budget [SECONDS]
// Each prints one line of a table for bench/results/leases.md and fails if its bar is missed. Under a sanitizer only `overhead`
// says nothing.
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "lease/storage.h"
#include "manager/evaluate.h"
#include "tenon/error.h"
#include "tenon/manager.h"
#include "tenon/ops.h"

namespace {

using namespace tenon;
using Clock = std::chrono::steady_clock;

double now() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1, static_cast<std::size_t>(share * static_cast<double>(values.size())))];
}

SimulatedDevice card() {
  SimulatedDevice device = SimulatedDevice::of_architecture("wormhole");
  device.open_seconds = device.close_seconds = 0;
  device.memory_bytes = 16 << 20;
  return device;
}

Config with(std::vector<SimulatedDevice> devices, KeepOpenPolicy policy) {
  Config config;
  config.simulated = std::move(devices);
  config.keep_open = policy;
  config.ledger = false;
  return config;
}

Graph doubling(std::int64_t count) {
  Graph graph;
  const NodeId x = graph.input("x", DType::f32, {count});
  graph.set_outputs(apply(graph, "add", {x, x}));
  return graph;
}

DeviceCounters counters_of(DeviceManager& manager, const std::string& id) {
  for (const DeviceStatus& status : manager.status())
    if (status.device.id == id) return status.counters;
  return {};
}

std::size_t open_files() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

std::size_t threads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
}

long resident_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS:")) return std::atol(line.c_str() + 6);
  return 0;
}

template <class T>
T* shared_memory() {
  void* memory = mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  return new (memory) T();
}

[[noreturn]] void exit_child(int status) {
  std::fflush(nullptr);
  _exit(status);
}

bool succeeded(pid_t child) {
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool overhead() {
  DeviceManager manager(with({card()}, KeepOpenPolicy::always));
  manager.lease({.device = "sim:0"}).release();
  const LeaseOptions options{.device = "sim:0"};
  constexpr int kRounds = 2000, kBatch = 100;
  std::vector<double> lease, mutex;
  std::mutex plain;
  for (int i = 0; i < kRounds; ++i) {
    double start = now();
    for (int k = 0; k < kBatch; ++k) manager.lease(options).release();
    lease.push_back((now() - start) / kBatch);
    start = now();
    for (int k = 0; k < kBatch; ++k) {
      const std::lock_guard lock(plain);
      asm volatile("" ::: "memory");
    }
    mutex.push_back((now() - start) / kBatch);
  }
  const double median = quantile(lease, 0.5);
  fmt::print(
      "| acquiring and releasing a lease on an open device | {:.0f} ns median, {:.0f} ns p99 | an uncontended mutex takes "
      "{:.1f} ns: {:.0f} times |\n",
      median * 1e9, quantile(lease, 0.99) * 1e9, quantile(mutex, 0.5) * 1e9, median / quantile(mutex, 0.5));
  return median <= 200e-9;
}

// One process computes for ever, in operations of some milliseconds; another asks for the device again and again.
bool yield(int rounds) {
  struct Shared {
    std::atomic<bool> ready{false}, stop{false};
    std::atomic<double> operation_end{0}, operation_begin{0}, close_seconds{0};
    std::atomic<bool> idle_mode{false};
  };
  auto* shared = shared_memory<Shared>();
  SimulatedDevice device = card();
  device.open_seconds = 0.002;
  device.close_seconds = 0.005;
  const pid_t holder = fork();
  if (holder == 0) {
    Config config = with({device}, KeepOpenPolicy::always);
    config.quantum_seconds = 0;
    DeviceManager manager(config);
    const auto observer = manager.observe([&](const DeviceEvent& event) {
      if (event.kind == DeviceEvent::Kind::closed) shared->close_seconds = event.seconds;
    });
    const Graph graph = doubling(1 << 20);
    const HostArray input = HostArray::full(DType::f32, {1 << 20}, 1);
    RunOptions options;
    options.device = "sim:0";
    while (!shared->stop) {
      shared->operation_begin = now();
      manager.run(graph, std::span(&input, 1), options);
      shared->operation_end = now();
      shared->ready = true;
      while (shared->idle_mode && !shared->stop) std::this_thread::yield();
    }
    manager.shut_down();
    exit_child(0);
  }
  while (!shared->ready) std::this_thread::yield();
  std::vector<double> busy, idle;
  {
    DeviceManager manager(with({device}, KeepOpenPolicy::on_demand));
    for (int i = 0; i < rounds; ++i) {
      const bool is_idle = i % 2 == 1;
      shared->idle_mode = is_idle;
      const double settle = now() + (is_idle ? 0.08 : 0.03);
      while (now() < settle) std::this_thread::yield();
      const double asked = now();
      {
        const Lease lease = manager.lease({.device = "sim:0"});
        const double granted = now();
        const double end = shared->operation_end;
        const double rest = is_idle ? 0 : std::max(0.0, end - asked);
        // Our own opening is not part of the wait for the other one.
        const double extra = granted - asked - rest - shared->close_seconds - device.open_seconds;
        (is_idle ? idle : busy).push_back(extra);
      }
      manager.close("sim:0");
    }
  }
  shared->idle_mode = false;
  shared->stop = true;
  const bool ended = succeeded(holder);
  fmt::print(
      "| {} waits of a second process, in addition to the rest of the operation and the close | idle holder {:.2f} ms median, "
      "{:.2f} "
      "ms p99; busy holder {:.2f} ms median, {:.2f} ms p99 | bar 10 ms |\n",
      rounds, quantile(idle, 0.5) * 1e3, quantile(idle, 0.99) * 1e3, quantile(busy, 0.5) * 1e3, quantile(busy, 0.99) * 1e3);
  return ended && quantile(idle, 0.99) < 0.010 && quantile(busy, 0.99) < 0.010;
}

bool edge(int acquires) {
  Config config = with({card()}, KeepOpenPolicy::linger);
  config.linger_seconds = 50e-6;
  DeviceManager manager(config);
  std::atomic<int> failed{0};
  std::vector<std::thread> clients;
  const double start = now();
  for (unsigned seed = 0; seed < 4; ++seed)
    clients.emplace_back([&, seed] {
      std::mt19937 random(seed);
      for (int i = 0; i < acquires / 4; ++i) {
        try {
          manager.lease({.device = "sim:0", .timeout = std::chrono::seconds(60)});
        } catch (const Error&) {
          ++failed;
        }
        const auto until = Clock::now() + std::chrono::microseconds(random() % 200);
        while (Clock::now() < until) std::this_thread::yield();
      }
    });
  for (std::thread& client : clients) client.join();
  const DeviceCounters counters = counters_of(manager, "sim:0");
  fmt::print(
      "| {} leases timed to arrive while the device closes | {} failed; {} closes, {} leases arrived during one and reopened the "
      "device | {:.0f} s |\n",
      counters.leases, failed.load(), counters.closes, counters.requeued_at_close, now() - start);
  return failed == 0 && counters.leases == static_cast<std::uint64_t>(acquires / 4 * 4);
}

bool faults(int programs) {
  struct Shared {
    std::atomic<int> right{0}, wrong{0}, refused{0}, strange{0};
  };
  auto* shared = shared_memory<Shared>();
  SimulatedDevice device = card();
  device.faults = {0.05, 0.05, 0.05, 0.05, 0.05, 0.05};
  device.hang_seconds = 0.001;
  constexpr int kProcesses = 3, kThreads = 8;
  const double start = now();
  std::vector<pid_t> children;
  for (int process = 0; process < kProcesses; ++process) {
    const pid_t child = fork();
    if (child == 0) {
      // The threads of the CPU backend are never stopped.
      DeviceManager(with({}, KeepOpenPolicy::adaptive)).run(doubling(64), std::vector{HostArray::full(DType::f32, {64}, 1)});
      const std::size_t files_before = open_files(), threads_before = threads();
      bool is_clean = true;
      {
        device.seed = static_cast<std::uint64_t>(process + 1);
        Config config = with({device, device}, KeepOpenPolicy::adaptive);
        config.quantum_seconds = 0.002;
        DeviceManager manager(config);
        std::vector<std::thread> clients;
        for (int k = 0; k < kThreads; ++k)
          clients.emplace_back([&, k] {
            std::mt19937 random(static_cast<unsigned>(process * kThreads + k));
            const Graph graph = doubling(64);
            for (int i = 0; i < programs / kProcesses / kThreads; ++i) {
              const float value = static_cast<float>(random() % 1000);
              const HostArray input = HostArray::full(DType::f32, {64}, value);
              RunOptions options;
              options.device = random() % 2 ? "sim:0" : "sim:1";
              if (random() % 16 == 0) options.timeout = std::chrono::microseconds(random() % 2000);
              try {
                const RunResult result = manager.run(graph, std::span(&input, 1), options);
                ++(result.outputs[0].view<float>()[63] == 2 * value ? shared->right : shared->wrong);
              } catch (const Error& error) {
                const ErrorCode code = error.code();
                const bool is_clear = code == ErrorCode::unavailable || code == ErrorCode::deadline_exceeded ||
                                      code == ErrorCode::resource_exhausted || code == ErrorCode::data_loss;
                if (!is_clear) fmt::print(stderr, "{}\n", error.what());
                ++(is_clear ? shared->refused : shared->strange);
              }
            }
          });
        for (std::thread& client : clients) client.join();
        manager.shut_down();
        for (const DeviceStatus& status : manager.status())
          if (status.memory_used_bytes != 0 || status.resident_tensors != 0) is_clean = false;
      }
      is_clean &= open_files() == files_before && threads() == threads_before;
      if (!is_clean)
        fmt::print(stderr, "left over: files {} -> {}, threads {} -> {}\n", files_before, open_files(), threads_before,
                   threads());
      exit_child(is_clean ? 0 : 1);
    }
    children.push_back(child);
  }
  bool is_clean = true;
  for (const pid_t child : children) is_clean &= succeeded(child);
  fmt::print(
      "| {} programs, {} processes of {} threads, every fault at 5 % | {} correct, {} clear errors, {} wrong, {} unclear errors; "
      "{} | {:.0f} s |\n",
      programs, kProcesses, kThreads, shared->right.load(), shared->refused.load(), shared->wrong.load(), shared->strange.load(),
      is_clean ? "nothing leaked" : "SOMETHING LEFT OVER", now() - start);
  return is_clean && shared->wrong == 0 && shared->strange == 0;
}

bool cycles(int count) {
  DeviceManager manager(with({card()}, KeepOpenPolicy::on_demand));
  const Graph graph = doubling(1024);
  const HostArray input = HostArray::full(DType::f32, {1024}, 1);
  RunOptions options;
  options.device = "sim:0";
  const auto cycle = [&] {
    manager.run(graph, std::span(&input, 1), options);
    manager.close("sim:0");
  };
  for (int i = 0; i < 500; ++i) cycle();
  const long memory = resident_kib();
  const std::size_t files = open_files();
  for (int i = 0; i < count; ++i) cycle();
  const long growth = resident_kib() - memory;
  fmt::print(
      "| {} opens and closes with a program in between | {} KiB more memory, {} descriptors before, {} after | bar 1 MB |\n",
      count, growth, files, open_files());
  return growth < 1000 && files == open_files();
}

bool tensors(int steps) {
  SimulatedDevice fragile = card();
  fragile.faults.lost_mid_run = 0.002;
  fragile.faults.out_of_memory = 0.002;
  fragile.memory_bytes = 64 << 10;
  fragile.seed = 11;
  DeviceManager manager(with({fragile, fragile}, KeepOpenPolicy::adaptive));
  struct Value {
    std::shared_ptr<Storage> storage;
    float expected;
  };
  std::vector<Value> values;
  std::mt19937 random(42);
  const Graph graph = doubling(256);
  long reads = 0, losses = 0, refusals = 0, wrong = 0;
  const auto any_device = [&] { return std::string(std::array{"sim:0", "sim:1", "cpu:0"}[random() % 3]); };
  const double start = now();
  for (int step = 0; step < steps; ++step) {
    const unsigned action = random() % 1000;
    if (values.empty() || action < 200) {
      const float first = static_cast<float>(random() % 1000);
      values.push_back({Storage::from_host(HostArray::full(DType::f32, {256}, first)), first});
    } else if (action < 550) {
      const Value from = values[random() % values.size()];
      if (from.expected > 1e6f) continue;
      RunOptions options;
      options.device = any_device();
      try {
        values.push_back({evaluate(manager, graph, std::span(&from.storage, 1), options).outputs.at(0), 2 * from.expected});
      } catch (const Error& error) {
        const ErrorCode code = error.code();
        ++(code == ErrorCode::unavailable || code == ErrorCode::data_loss || code == ErrorCode::resource_exhausted ? refusals
                                                                                                                   : wrong);
      }
    } else if (action < 700) {
      const Value& value = values[random() % values.size()];
      try {
        ++(value.storage->to_host().view<float>()[255] == value.expected ? reads : wrong);
      } catch (const Error& error) {
        ++(error.code() == ErrorCode::data_loss ? losses : wrong);
      }
    } else if (action < 710) {
      manager.close(any_device());
    } else {
      values.erase(values.begin() + static_cast<std::ptrdiff_t>(random() % values.size()));
    }
  }
  const DeviceCounters counters = counters_of(manager, "sim:0");
  fmt::print(
      "| {} steps of create, compute, move, close, lose, drop | {} correct reads, {} reads of lost tensors, {} refused programs, "
      "{} "
      "wrong; {} spills, {} restores, {} evictions, {} losses on the first device | {:.0f} s |\n",
      steps, reads, losses, refusals, wrong, counters.spills, counters.restores, counters.evictions, counters.lost,
      now() - start);
  return wrong == 0 && reads > 0;
}

// Sixteen threads allocate and free at random on a simulated card that has less than they want.
bool budget(int seconds) {
  Config config = with({card()}, KeepOpenPolicy::always);
  config.memory_strategy = MemoryStrategy::custom;
  config.memory_fraction = 0.25;
  DeviceManager manager(config);
  const std::shared_ptr<OpenDevice> device = manager.open("sim:0");
  const auto status = [&] {
    for (DeviceStatus& each : manager.status())
      if (each.device.id == "sim:0") return each;
    return DeviceStatus();
  };
  const std::uint64_t limit = status().memory_limit_bytes;
  std::atomic<std::uint64_t> held{0}, allocations{0}, refusals{0}, unclear{0};
  std::atomic<bool> exceeded{false}, over{false};
  std::vector<std::thread> workers;
  for (unsigned seed = 0; seed < 16; ++seed)
    workers.emplace_back([&, seed] {
      std::mt19937 random(seed);
      std::vector<std::pair<std::unique_ptr<Buffer>, std::uint64_t>> buffers;
      const auto drop = [&] {
        const std::size_t which = random() % buffers.size();
        held -= buffers[which].second;
        std::swap(buffers[which], buffers.back());
        buffers.pop_back();
      };
      while (!over) {
        if (!buffers.empty() && random() % 2 == 0) {
          drop();
          continue;
        }
        const std::uint64_t bytes = 1 + random() % (limit / 8);
        try {
          buffers.emplace_back(device->allocate({DType::u8, {static_cast<std::int64_t>(bytes)}}), bytes);
          ++allocations;
          if ((held += bytes) > limit) exceeded = true;
        } catch (const Error& error) {
          const std::string text = error.what();
          ++refusals;
          if (error.code() != ErrorCode::resource_exhausted || text.find("budget") == std::string::npos) ++unclear;
        }
      }
      while (!buffers.empty()) drop();
    });
  std::this_thread::sleep_for(std::chrono::seconds(seconds));
  over = true;
  for (std::thread& worker : workers) worker.join();
  const DeviceStatus after = status();
  fmt::print(
      "| 16 threads allocating at random for {} s within a budget of {} bytes | {} allocations, {} refused, {} of them unclear; "
      "at most "
      "{} bytes used; {} bytes leaked | {} |\n",
      seconds, limit, allocations.load(), refusals.load(), unclear.load(), after.memory_peak_bytes, after.memory_used_bytes,
      exceeded ? "EXCEEDED" : "never exceeded");
  return !exceeded && unclear == 0 && refusals > 0 && after.memory_peak_bytes <= limit && after.memory_used_bytes == 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const int count = argc > 2 ? std::atoi(argv[2]) : 0;
  setenv("TENON_LOG", "off", 1);
  if (!std::getenv("TENON_RUN_DIR")) {
    fmt::print(stderr, "set TENON_RUN_DIR to an empty directory on a tmpfs\n");
    return 2;
  }
  bool held = false;
  if (what == "overhead")
    held = overhead();
  else if (what == "yield")
    held = yield(count ? count : 200);
  else if (what == "edge")
    held = edge(count ? count : 1'000'000);
  else if (what == "faults")
    held = faults(count ? count : 100'000);
  else if (what == "cycles")
    held = cycles(count ? count : 10'000);
  else if (what == "tensors")
    held = tensors(count ? count : 1'000'000);
  else if (what == "budget")
    held = budget(count ? count : 60);
  else {
    fmt::print(
        stderr,
        "usage: bench_leases overhead | yield [N] | edge [N] | faults [N] | cycles [N] | tensors [N] | budget [SECONDS]\n");
    return 2;
  }
  if (!held) fmt::print(stderr, "the bar was missed\n");
  return held ? 0 : 1;
}

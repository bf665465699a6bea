// Processes that ask for overlapping sets of devices in any order, and are killed at any time: every request is served, no device
// is used by two at once, and nothing is left behind.
//
//   bench_overlap RUNS [SECONDS_BETWEEN_KILLS]      (TENON_RUN_DIR: an empty folder of its own)
//
// Exits with 1 if a device was used twice, if a request was overtaken, if nothing happened for a minute, or if a device is still
// taken at the end. Then measures what a mesh of one costs.
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

#include "graph/elementwise.h"
#include "tenon/error.h"
#include "tenon/manager.h"
#include "tenon/mesh.h"

namespace tenon {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kDevices = 5, kProcesses = 4;

struct Shared {
  std::atomic<std::int64_t> runs, errors, violations, waits, overtakes;
  std::atomic<pid_t> user[kDevices];
  std::atomic<pid_t> last_user[kDevices];
  std::atomic<std::int64_t> hand_overs[kDevices];  // from one process to another
};

// A request that waits for a device: when |ahead| others and the present user have had it, it is its turn.
struct Wait {
  bool is_waiting = false;
  std::int64_t ahead = 0, hand_overs = 0;
};
using Waits = std::array<Wait, kDevices>;

Config config() {
  Config config;
  config.ledger = config.profile = false;
  for (int i = 0; i < kDevices; ++i) config.simulated.push_back(parse_simulated("gpu,virtual,exclusive,memory=1GiB"));
  return config;
}

Graph sum_of_squares(std::int64_t elements) {
  Graph graph;
  const NodeId x = graph.input("x", DType::f32, Shape{elements});
  const NodeId square = graph.elementwise(ElementwiseOp::Mul, std::vector<NodeId>{x, x});
  graph.set_outputs({graph.reduce(ReduceKind::sum, square, AxisSet{1})});
  return graph;
}

int device_number(const std::string& id) { return std::atoi(id.c_str() + id.rfind(':') + 1); }

void note_hand_over(Shared& shared, int device, Wait& wait) {
  if (wait.is_waiting) {
    ++shared.waits;
    if (shared.hand_overs[device] - wait.hand_overs > wait.ahead + 1) ++shared.overtakes;
    wait.is_waiting = false;
  }
  // A process may use the device several times before it hands it over.
  if (shared.last_user[device].exchange(getpid()) != getpid()) ++shared.hand_overs[device];
}

// Between uploading and downloading the lease is held.
void watch(Shared& shared, Waits& waits, const Progress& progress) {
  const int device = device_number(progress.device);
  std::atomic<pid_t>& user = shared.user[device];
  Wait& wait = waits[static_cast<std::size_t>(device)];
  if (progress.stage == "queued" && !wait.is_waiting) {
    wait = {true, progress.place.ahead_here + progress.place.ahead_elsewhere, shared.hand_overs[device]};
  } else if (progress.stage == "uploading") {
    note_hand_over(shared, device, wait);
    pid_t nobody = 0;
    // Another process that was killed there is cleared by the parent.
    if (!user.compare_exchange_strong(nobody, getpid()) && nobody != getpid() && kill(nobody, 0) == 0) ++shared.violations;
    user = getpid();
  } else if (progress.stage == "downloading") {
    user = 0;
  }
}

[[noreturn]] void work(Shared& shared, std::int64_t wanted, unsigned seed) {
  DeviceManager manager(config());
  std::mt19937 random(seed);
  const Graph graph = sum_of_squares(64);
  const std::vector<HostArray> inputs{HostArray::full(DType::f32, Shape{64}, 2)};
  std::vector<std::string> ids;
  for (int i = 0; i < kDevices; ++i) ids.push_back(fmt::format("sim:{}", i));
  MeshOptions options;
  options.inputs["x"] = Sharding::parse("m");
  Waits waits;
  options.run.on_progress = [&](const Progress& progress) { watch(shared, waits, progress); };
  while (shared.runs < wanted) {
    std::shuffle(ids.begin(), ids.end(), random);
    const auto count = static_cast<std::ptrdiff_t>(2 + random() % (kDevices - 1));
    const Mesh mesh({{"m", static_cast<int>(count)}}, {ids.begin(), ids.begin() + count});
    waits = {};
    try {
      const MeshResult result = run_on_mesh(manager, graph, inputs, mesh, options);
      if (result.outputs[0].value(0) != 256) ++shared.violations;
      ++shared.runs;
    } catch (const Error& error) {
      fmt::print(stderr, "{}\n", error.what());
      ++shared.errors;
    }
  }
  std::quick_exit(0);
}

pid_t start(Shared& shared, std::int64_t wanted, unsigned seed) {
  const pid_t child = fork();
  if (child == 0) work(shared, wanted, seed);
  return child;
}

int overlap(std::int64_t wanted, double seconds_between_kills) {
  auto* shared = new (mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Shared{};
  unsigned seed = 0;
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) children.push_back(start(*shared, wanted, ++seed));
  const Clock::time_point begin = Clock::now();
  Clock::time_point next_kill = begin, progress = begin;
  std::int64_t seen = 0, seen_at_kill = 0, kills = 0;
  std::mt19937 random(1);
  bool is_stuck = false;
  while (shared->runs < wanted && !is_stuck) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (shared->runs != seen) progress = Clock::now();
    seen = shared->runs;
    is_stuck = Clock::now() - progress > std::chrono::minutes(1);
    // On a busy machine processes need longer to start than between two kills; some of them have to get to their work.
    if (Clock::now() < next_kill || seconds_between_kills <= 0 || seen < seen_at_kill + kProcesses) continue;
    seen_at_kill = seen;
    next_kill = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds_between_kills));
    pid_t& victim = children[random() % children.size()];
    kill(victim, SIGKILL);
    waitpid(victim, nullptr, 0);
    for (std::atomic<pid_t>& user : shared->user)
      if (user == victim) user = 0;
    victim = start(*shared, wanted, ++seed);
    ++kills;
  }
  for (const pid_t child : children) {
    if (is_stuck) kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  int taken = 0;
  DeviceManager manager(config());
  for (int i = 0; i < kDevices; ++i) try {
      manager.lease({.device = fmt::format("sim:{}", i), .timeout = std::chrono::seconds(5)});
    } catch (const Error&) {
      ++taken;
    }
  fmt::print(
      "{} runs on random sets of {} devices, {} processes, {} of them killed: {} errors, {} devices used twice, {} of {} waits "
      "overtaken, {} devices still taken{}; {:.0f} s\n",
      seen, kDevices, kProcesses, kills, shared->errors.load(), shared->violations.load(), shared->overtakes.load(),
      shared->waits.load(), taken, is_stuck ? ", STUCK" : "", seconds);
  return is_stuck || taken > 0 || shared->violations > 0 || shared->errors > 0 || shared->overtakes > 0 ? 1 : 0;
}

double microseconds_each(int times, const auto& action) {
  double best = 1e9;
  for (int round = 0; round < 20; ++round) {
    const Clock::time_point begin = Clock::now();
    for (int i = 0; i < times; ++i) action();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - begin).count() / times * 1e6);
  }
  return best;
}

void mesh_of_one() {
  DeviceManager manager(config());
  const Graph graph = sum_of_squares(64);
  const std::vector<HostArray> inputs{HostArray::full(DType::f32, Shape{64}, 2)};
  const Mesh mesh({{"m", 1}}, {"cpu:0"});
  MeshOptions options;
  options.inputs["x"] = Sharding::parse("m");
  const auto plain = [&] { manager.run(graph, inputs, {.device = "cpu:0"}); };
  const auto meshed = [&] { run_on_mesh(manager, graph, inputs, mesh, options); };
  plain();
  meshed();
  const double alone = microseconds_each(1000, plain), one = microseconds_each(1000, meshed);
  fmt::print("a mesh of one: {:.2f} us, the device itself: {:.2f} us, overhead {:.2f} us\n", one, alone, one - alone);
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  const std::int64_t runs = argc > 1 ? std::atoll(argv[1]) : 1000;
  const int status = tenon::overlap(runs, argc > 2 ? std::atof(argv[2]) : 0.02);
  if (status == 0) tenon::mesh_of_one();
  return status;
}

// What a small program costs besides its arithmetic.
//   bench_small [ROUNDS [CASE]]
// CASE: only the cases whose names contain this text. Prints one line per case for bench/results/small.md: nanoseconds (the
// fastest of the rounds) and, where the kernel allows it to be counted, instructions. All on 16 f32 elements on the CPU.
#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>

#include "tenon/tenon.h"

namespace tenon {
namespace {

// Instructions of this thread in user mode; nothing where perf_event_open is not permitted.
class InstructionCounter {
 public:
  InstructionCounter() {
    perf_event_attr attr;
    std::memset(&attr, 0, sizeof attr);
    attr.type = PERF_TYPE_HARDWARE;
    attr.size = sizeof attr;
    attr.config = PERF_COUNT_HW_INSTRUCTIONS;
    attr.exclude_kernel = 1;
    attr.exclude_hv = 1;
    descriptor_ = static_cast<int>(syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0));
  }
  ~InstructionCounter() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  InstructionCounter(const InstructionCounter&) = delete;
  InstructionCounter& operator=(const InstructionCounter&) = delete;

  bool is_available() const { return descriptor_ >= 0; }
  std::uint64_t read() const {
    std::uint64_t count = 0;
    if (descriptor_ < 0 || ::read(descriptor_, &count, sizeof count) != sizeof count) return 0;
    return count;
  }

 private:
  int descriptor_ = -1;
};

const char* only = "";  // cases to measure

void measure(const char* what, int rounds, int ops, const InstructionCounter& counter, const std::function<void()>& work) {
  if (std::strstr(what, only) == nullptr) return;
  constexpr int kBatch = 200;
  for (int i = 0; i < kBatch; ++i) work();
  double best = std::numeric_limits<double>::infinity();
  std::uint64_t fewest = std::numeric_limits<std::uint64_t>::max();
  for (int round = 0; round < rounds; ++round) {
    const std::uint64_t before = counter.read();
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kBatch; ++i) work();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = std::min(best, seconds / kBatch / ops);
    fewest = std::min(fewest, (counter.read() - before) / static_cast<std::uint64_t>(kBatch * ops));
  }
  fmt::print("| {} | {:.0f} | {} |\n", what, best * 1e9, counter.is_available() ? fmt::format("{}", fewest) : "not counted");
}

int measure_all(int rounds) {
  const InstructionCounter counter;
  Config config;
  DeviceManager manager(config);
  const UseManager use(manager);
  const HostArray numbers = HostArray::full(DType::f32, {16}, 1.5);
  const Tensor a = numbers, b = HostArray::full(DType::f32, {16}, 2.5);
  RunOptions cpu;
  cpu.device = "cpu";
  fmt::print("| case | ns | instructions |\n| --- | --- | --- |\n");
  measure("record `a + b`", rounds, 1, counter, [&] { const Tensor y = a + b; });
  measure("record and evaluate `a + b`", rounds, 1, counter, [&] { (a + b).eval(cpu); });
  measure("record and evaluate `a * 0.5 + b`", rounds, 1, counter, [&] { (a * 0.5 + b).eval(cpu); });
  int next = 0;
  measure("the same with a new number each time", rounds, 1, counter, [&] { (a * (0.5 + 1e-6 * ++next) + b).eval(cpu); });
  constexpr int kChain = 64;
  measure("an op of a chain of 64, recorded and evaluated", rounds, kChain, counter, [&] {
    Tensor y = a;
    for (int i = 0; i < kChain / 2; ++i) y = (y + b) * a;
    y.eval(cpu);
  });
  Graph graph;
  const NodeId x = graph.input("x", DType::f32, {16}), y = graph.input("y", DType::f32, {16});
  graph.set_outputs(apply(graph, "add", {x, y}));
  const HostArray inputs[] = {numbers, numbers};
  measure("a prepared program through the manager", rounds, 1, counter, [&] { manager.run(graph, inputs, cpu); });
  const Tensor arguments[] = {program_input(DType::f32, {16}), program_input(DType::f32, {16})};
  const Tensor sum = arguments[0] + arguments[1];
  const Program program = Program::record(arguments, std::span(&sum, 1));
  const Tensor given[] = {a, b};
  measure("a recorded program called with tensors", rounds, 1, counter, [&] { program.run(given, cpu); });
  return 0;
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  try {
    if (argc > 2) tenon::only = argv[2];
    return tenon::measure_all(argc > 1 ? std::atoi(argv[1]) : 50);
  } catch (const tenon::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}

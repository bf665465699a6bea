// What the host spends on a run with many tensors, as each step of a language model is: 200 inputs that stay on the device and 33
// results.
//   bench_inputs [ROUNDS [DEVICE]]
// DEVICE: only this one: cpu:0, sim:0, card:0, hosted:0 or, where there is a card, cuda:0. Prints one line per device for
// bench/results/small.md, in microseconds, the fastest of the rounds: a whole evaluation through the manager; the program's run
// alone, on buffers that are there; and the difference. The card of cuda is a stand-in whose kernels do nothing, so that only the
// host's work is left. All tensors have 16 f32 elements.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <memory>

#include "../tests/backends/cuda/fake_driver.h"
#include "backends/cpu/backend.h"
#include "hal/worker/worker.h"
#include "manager/evaluate.h"
#include "tenon/error.h"
#include "tenon/ops.h"

namespace tenon {
namespace {

constexpr std::size_t kInputs = 200, kOutputs = 33;
const Shape kShape{16};

// Each result is a sum of six inputs, so that it is no copy and costs as little as a result can.
Graph sums() {
  Graph graph;
  std::vector<NodeId> inputs, outputs;
  for (std::size_t i = 0; i < kInputs; ++i) inputs.push_back(graph.input(fmt::format("x{}", i), DType::f32, kShape));
  for (std::size_t k = 0; k < kOutputs; ++k) {
    NodeId sum = inputs[6 * k];
    const std::size_t end = k + 1 < kOutputs ? 6 * (k + 1) : kInputs;
    for (std::size_t i = 6 * k + 1; i < end; ++i) sum = apply(graph, "add", {sum, inputs[i]})[0];
    outputs.push_back(sum);
  }
  graph.set_outputs(outputs);
  return graph;
}

// A device of another way to open it.
class OneDevice final : public Backend {
 public:
  using Open = std::function<std::unique_ptr<OpenDevice>(const DeviceInfo&, const OpenOptions&)>;
  OneDevice(DeviceInfo device, Open open) : device_(std::move(device)), open_(std::move(open)) {}
  std::string_view name() const noexcept override { return device_.backends[0]; }
  std::vector<DeviceInfo> devices() override { return {device_}; }
  using Backend::open;
  std::unique_ptr<OpenDevice> open(const DeviceInfo& device, const OpenOptions& options) override {
    return open_(device, options);
  }

 private:
  DeviceInfo device_;
  Open open_;
};

DeviceInfo described(const char* id, const char* backend) {
  DeviceInfo info;
  info.id = id;
  info.kind = DeviceKind::gpu;
  info.backends = {backend};
  return info;
}

template <class Work>
double best_microseconds(int rounds, const Work& work) {
  constexpr int kBatch = 20;
  double best = std::numeric_limits<double>::infinity();
  for (int round = 0; round < rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kBatch; ++i) work();
    best = std::min(best, std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() / kBatch);
  }
  return best;
}

template <class Forget>
double run_alone(DeviceManager& manager, const std::string& device, const Graph& graph, int rounds, const Forget& forget) {
  const std::shared_ptr<OpenDevice> open = manager.open(device);
  const std::unique_ptr<Executable> program = open->compile(graph);
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<const Buffer*> inputs;
  std::vector<Buffer*> outputs;
  for (std::size_t i = 0; i < kInputs; ++i)
    inputs.push_back(buffers.emplace_back(open->upload(HostArray::full(DType::f32, kShape, 1))).get());
  for (const TensorType& type : program->output_types()) outputs.push_back(buffers.emplace_back(open->allocate(type)).get());
  return best_microseconds(rounds, [&] {
    forget();
    program->run(inputs, outputs);
  });
}

template <class Forget>
void measure_one(DeviceManager& manager, const char* what, const std::string& device, int rounds, const Forget& forget) {
  const Graph graph = sums();
  std::vector<std::shared_ptr<Storage>> inputs;
  for (std::size_t i = 0; i < kInputs; ++i) inputs.push_back(Storage::from_host(HostArray::full(DType::f32, kShape, 1)));
  RunOptions options;
  options.device = device;
  const auto evaluation = [&] {
    forget();
    evaluate(manager, graph, inputs, options);
  };
  for (int i = 0; i < 20; ++i) evaluation();
  const double whole = best_microseconds(rounds, evaluation);
  const double alone = run_alone(manager, device, graph, rounds, forget);
  fmt::print("| {} | {:.1f} | {:.1f} | {:.1f} |\n", what, whole, alone, whole - alone);
}

// A real card, if there is one, in this process and in a worker.
void measure_card(int rounds) {
  struct Case {
    const char* what;
    Isolate isolate;
  };
  for (const Case& one : {Case{"cuda:0", Isolate::never}, {"cuda:0 in a worker", Isolate::always}}) {
    Config config;
    config.isolate = one.isolate;
    DeviceManager manager(config);
    const std::vector<DeviceInfo> devices = manager.devices();
    if (std::ranges::none_of(devices, [](const DeviceInfo& device) { return device.id == "cuda:0" && device.available; })) return;
    measure_one(manager, one.what, "cuda:0", rounds, [] {});
  }
}

int measure(int rounds, std::string_view only) {
  cuda::FakeDriver card;
  Config config;
  SimulatedDevice simulated;
  simulated.architecture = "gpu";
  config.simulated.push_back(simulated);
  DeviceManager manager(config);
  manager.add_backend(
      std::make_unique<OneDevice>(described("hosted:0", "hosted"), [](const DeviceInfo&, const OpenOptions& options) {
        DeviceInfo info = described("cpu:0", "cpu");
        info.kind = DeviceKind::cpu;
        return open_in_worker("cpu", info, options);
      }));
  manager.add_backend(
      std::make_unique<OneDevice>(described("card:0", "card"), [&](const DeviceInfo&, const OpenOptions& options) {
        return cuda::open_with(card.table(), card.card(), options, card.how());
      }));
  fmt::print("| device | evaluation, us | run alone, us | the rest, us |\n| --- | --- | --- | --- |\n");
  struct Case {
    const char *what, *device;
  };
  for (const Case& one : {Case{"the CPU", "cpu:0"},
                          {"simulated", "sim:0"},
                          {"cuda with a card that does nothing", "card:0"},
                          {"the CPU in a worker", "hosted:0"}})
    // The card notes every kernel.
    if (only.empty() || only == one.device) measure_one(manager, one.what, one.device, rounds, [&] { card.launches.clear(); });
  manager.close_all();
  if (only.empty() || only == "cuda:0") measure_card(rounds);
  return 0;
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  try {
    return tenon::measure(argc > 1 ? std::atoi(argv[1]) : 50, argc > 2 ? argv[2] : "");
  } catch (const tenon::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}

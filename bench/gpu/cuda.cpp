// bench_cuda: our figures on an NVIDIA card, one JSON object a line; bench/gpu/gpu_peers.py measures the peers and makes the
// table.
//   bench_cuda [--quick] [--only PART]     PART: large, matmul, small, transfer, open, or the name of a case of the first two
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "backends/cuda/backend.h"
#include "backends/cuda/libraries.h"
#include "base/threads/thread_pool.h"
#include "tenon/error.h"
#include "tenon/expression.h"
#include "tenon/ops.h"

namespace {

using namespace tenon;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// One line: a time, and the work done in it as a rate.
void report(const std::string& name, double seconds, double work = 0, const char* unit = "") {
  fmt::print("{{\"name\": \"{}\", \"seconds\": {:.9g}, \"work\": {:.9g}, \"unit\": \"{}\"}}\n", name, seconds, work, unit);
  std::fflush(stdout);
}

struct Options {
  bool quick = false;
  std::string only;
  bool wants(std::string_view part) const { return only.empty() || only == part; }
  bool wants(std::string_view part, std::string_view name) const { return wants(part) || only == name; }
};

class Bench {
 public:
  Bench(OpenDevice& device, const Options& options) : device_(device), options_(options) {}

  void all() {
    if (options_.wants("small")) small();
    if (options_.wants("transfer")) transfers();
    if (options_.only == "open") return;
    large();
    products();
  }

 private:
  struct Work {
    std::unique_ptr<Executable> program;
    std::vector<std::unique_ptr<Buffer>> inputs, outputs;
    std::vector<const Buffer*> in;
    std::vector<Buffer*> out;

    void run() { program->run(in, out); }
    void enqueue() { static_cast<cuda::CudaExecutable&>(*program).enqueue(in, out); }
  };

  // Inputs are filled on the card: the contents do not matter for the time, but must not be denormal or infinite.
  Work prepare(const std::string& expression, const std::vector<NamedType>& inputs) {
    Work work;
    work.program = device_.compile(parse_expression(expression, inputs));
    for (const NamedType& input : inputs) {
      work.inputs.push_back(filled(input));
      work.in.push_back(work.inputs.back().get());
    }
    for (const TensorType& type : work.program->output_types()) {
      work.outputs.push_back(device_.allocate(type));
      work.out.push_back(work.outputs.back().get());
    }
    return work;
  }

  std::unique_ptr<Buffer> filled(const NamedType& type) {
    Graph graph;
    // Integers are indices into something as long.
    const NodeId random = graph.random(type.shape, DType::f32, is_float(type.dtype), 7);
    const NodeId scaled =
        is_float(type.dtype)
            ? random
            : apply(graph, "mul",
                    {random, graph.constant(HostArray::full(DType::f32, {}, static_cast<double>(type.shape.elements() - 1)))})[0];
    graph.set_outputs({graph.cast(scaled, type.dtype)});
    const auto program = device_.compile(graph);
    std::unique_ptr<Buffer> buffer = device_.allocate({type.dtype, type.shape});
    program->run({}, {buffer.get()});
    return buffer;
  }

  // The fastest of |rounds| groups of |count| runs put into the stream together.
  double stream_time(Work& work, int count, int rounds) {
    work.run();
    double best = 1e300;
    for (int round = 0; round < rounds; ++round) {
      work.run();
      const double begin = now();
      for (int i = 1; i < count; ++i) work.enqueue();
      work.run();
      best = std::min(best, (now() - begin) / count);
    }
    return best;
  }

  void stream_case(const std::string& name, const std::string& expression, const std::vector<NamedType>& inputs, double bytes) {
    if (!options_.wants("large", name)) return;
    Work work = prepare(expression, inputs);
    report(name, stream_time(work, 20, options_.quick ? 2 : 5), bytes, "B/s");
  }

  void large() {
    const std::int64_t n = options_.quick ? std::int64_t{1} << 22 : std::int64_t{1} << 28;
    const std::int64_t side = options_.quick ? 2048 : 16384;
    const double bytes = 4.0 * static_cast<double>(n);
    stream_case("add", "a + b", {{"a", DType::f32, {n}}, {"b", DType::f32, {n}}}, 3 * bytes);
    stream_case("gelu", "gelu(a * b + 0.5)", {{"a", DType::f32, {n}}, {"b", DType::f32, {n}}}, 3 * bytes);
    stream_case("exp", "exp(a)", {{"a", DType::f32, {n}}}, 2 * bytes);
    stream_case("add bf16", "a + b", {{"a", DType::bf16, {n}}, {"b", DType::bf16, {n}}}, 1.5 * bytes);
    stream_case("broadcast add", "a + b", {{"a", DType::f32, {side, side}}, {"b", DType::f32, {side}}}, 2 * bytes);
    stream_case("softmax", "softmax(a)", {{"a", DType::f32, {side, side}}}, 2 * bytes);
    stream_case("softmax 4096", "softmax(a)", {{"a", DType::f32, {n / 4096, 4096}}}, 2 * bytes);
    stream_case("softmax 1000", "softmax(a)", {{"a", DType::f32, {n / 1024, 1000}}}, 2 * bytes * 1000 / 1024);
    stream_case("layer_norm", "layer_norm(a, g, b)",
                {{"a", DType::f32, {n / 4096, 4096}}, {"g", DType::f32, {4096}}, {"b", DType::f32, {4096}}}, 2 * bytes);
    stream_case("layer_norm 1024", "layer_norm(a, g, b)",
                {{"a", DType::f32, {n / 1024, 1024}}, {"g", DType::f32, {1024}}, {"b", DType::f32, {1024}}}, 2 * bytes);
    stream_case("sum", "sum(a)", {{"a", DType::f32, {n}}}, bytes);
    stream_case("sum rows", "sum(a, axis=1)", {{"a", DType::f32, {side, side}}}, bytes);
    stream_case("sum columns", "sum(a, axis=0)", {{"a", DType::f32, {side, side}}}, bytes);
    stream_case("max", "max(a)", {{"a", DType::f32, {n}}}, bytes);
    stream_case("transpose", "transpose(a)", {{"a", DType::f32, {side, side}}}, 2 * bytes);
    stream_case("cumsum", "cumsum(a, axis=1)", {{"a", DType::f32, {side, side}}}, 2 * bytes);
    stream_case("argmax", "argmax(a, axis=1)", {{"a", DType::f32, {side, side}}}, bytes);
    stream_case("cumsum of one line", "cumsum(a)", {{"a", DType::f32, {n}}}, 2 * bytes);
    stream_case("argmax of one line", "argmax(a)", {{"a", DType::f32, {n}}}, bytes);
    // Copies x, reads indices and updates, writes: 4 + 4 + 8 + 4 + 4 bytes.
    stream_case("scatter", "scatter(a, i, b)",
                {{"a", DType::f32, {n / 16}}, {"i", DType::i64, {n / 16}}, {"b", DType::f32, {n / 16}}}, 6 * bytes / 16);
  }

  void product(const std::string& name, DType dtype, std::int64_t side) {
    if (!options_.wants("matmul", name)) return;
    Work work = prepare("matmul(a, b)", {{"a", dtype, {side, side}}, {"b", dtype, {side, side}}});
    const double flops = 2.0 * static_cast<double>(side) * static_cast<double>(side) * static_cast<double>(side);
    report(name, stream_time(work, side > 4096 ? 10 : 50, options_.quick ? 1 : 3), flops, "FLOP/s");
  }

  void products() {
    for (const std::int64_t side : options_.quick ? std::vector<std::int64_t>{1024} : std::vector<std::int64_t>{1024, 8192}) {
      product(fmt::format("matmul bf16 {}", side), DType::bf16, side);
      product(fmt::format("matmul f32 {}", side), DType::f32, side);
    }
    product("matmul f64 2048", DType::f64, 2048);
    const std::vector<NamedType> layer{
        {"a", DType::bf16, {4096, 4096}}, {"w", DType::bf16, {4096, 4096}}, {"c", DType::bf16, {4096}}};
    flop_case("linear gelu bf16 4096", "gelu(matmul(a, w) + c)", layer, 2.0 * 4096 * 4096 * 4096);
    flop_case("linear relu bf16 4096", "relu(matmul(a, w) + c)", layer, 2.0 * 4096 * 4096 * 4096);
    for (const DType dtype : {DType::f32, DType::bf16})
      flop_case(dtype == DType::f32 ? "conv2d 3x3 64" : "conv2d 3x3 64 bf16", "conv2d(x, w, stride=1, padding=1)",
                {{"x", dtype, {32, 64, 56, 56}}, {"w", dtype, {64, 64, 3, 3}}}, 2.0 * 32 * 64 * 64 * 9 * 56 * 56);
    flop_case("conv2d 3x3 256 bf16", "conv2d(x, w, stride=1, padding=1)",
              {{"x", DType::bf16, {32, 256, 28, 28}}, {"w", DType::bf16, {256, 256, 3, 3}}}, 2.0 * 32 * 256 * 256 * 9 * 28 * 28);
    flop_case("conv2d 3x3 512 bf16", "conv2d(x, w, stride=1, padding=1)",
              {{"x", DType::bf16, {32, 512, 7, 7}}, {"w", DType::bf16, {512, 512, 3, 3}}}, 2.0 * 32 * 512 * 512 * 9 * 7 * 7);
    flop_case("conv2d 3x3 128 bf16, stride 2", "conv2d(x, w, stride=2, padding=1)",
              {{"x", DType::bf16, {32, 128, 56, 56}}, {"w", DType::bf16, {128, 128, 3, 3}}}, 2.0 * 32 * 128 * 128 * 9 * 28 * 28);
    flop_case("conv2d 1x1 256", "conv2d(x, w)", {{"x", DType::f32, {32, 256, 56, 56}}, {"w", DType::f32, {256, 256, 1, 1}}},
              2.0 * 32 * 256 * 256 * 56 * 56);
  }
  void flop_case(const std::string& name, const std::string& expression, const std::vector<NamedType>& inputs, double flops) {
    if (!options_.wants("matmul", name)) return;
    Work work = prepare(expression, inputs);
    report(name, stream_time(work, 20, options_.quick ? 1 : 3), flops, "FLOP/s");
  }

  void small() {
    const std::int64_t n = 1024;
    Work work = prepare("a + b", {{"a", DType::f32, {n}}, {"b", DType::f32, {n}}});
    work.run();
    double best = 1e300, best_run = 1e300, best_trip = 1e300, best_one = 1e300;
    for (int round = 0; round < 20; ++round) {
      double begin = now();
      for (int i = 0; i < 200; ++i) work.enqueue();
      best = std::min(best, (now() - begin) / 200);
      work.run();
      begin = now();
      for (int i = 0; i < 100; ++i) work.run();
      best_run = std::min(best_run, (now() - begin) / 100);
    }
    report("enqueue 1024", best);
    report("run 1024", best_run);
    const HostArray a = HostArray::full(DType::f32, {n}, 1.5), b = HostArray::full(DType::f32, {n}, 2.25);
    for (int round = 0; round < 20; ++round) {
      const double begin = now();
      for (int i = 0; i < 100; ++i) trip(*work.program, a, b);
      best_trip = std::min(best_trip, (now() - begin) / 100);
    }
    report("2 uploads + run + download 1024", best_trip);
    for (int round = 0; round < 20; ++round) {
      const double begin = now();
      for (int i = 0; i < 100; ++i) {
        work.run();
        device_.download(*work.outputs[0]);
      }
      best_one = std::min(best_one, (now() - begin) / 100);
    }
    report("run + download 1024", best_one);
    for (const std::int64_t elements : {std::int64_t{1024}, std::int64_t{1} << 24}) {
      const TensorType type{DType::f32, {elements}};
      double best_allocation = 1e300;
      for (int round = 0; round < 10; ++round) {
        const double begin = now();
        for (int i = 0; i < 10000; ++i) device_.allocate(type);
        best_allocation = std::min(best_allocation, (now() - begin) / 10000);
      }
      report(fmt::format("allocate + free {}", elements), best_allocation);
    }
    Work chain = prepare("softmax(matmul(a, b)) + sum(a, axis=0)", {{"a", DType::f32, {64, 64}}, {"b", DType::f32, {64, 64}}});
    report("chain of small steps", stream_time(chain, 100, 5));
  }

  void trip(Executable& program, const HostArray& a, const HostArray& b) {
    const auto x = device_.upload(a), y = device_.upload(b);
    const auto z = device_.allocate(program.output_types()[0]);
    program.run({x.get(), y.get()}, {z.get()});
    const HostArray result = device_.download(*z);
    if (result.value(7) != a.value(7) + b.value(7)) throw Error(ErrorCode::internal, "a + b is wrong");
  }

  void transfers() {
    Work tiny = prepare("-a", {{"a", DType::f32, {1}}});  // ends when everything before it has: an upload may return early
    for (const std::int64_t mebibytes :
         options_.quick ? std::vector<std::int64_t>{16} : std::vector<std::int64_t>{1, 16, 256, 1024}) {
      const std::int64_t elements = mebibytes << 18;
      const HostArray array = HostArray::full(DType::f32, {elements}, 1.25);
      const double bytes = static_cast<double>(array.bytes());
      double up = 1e300, down = 1e300;
      for (int round = 0; round < 6; ++round) {
        double begin = now();
        const auto buffer = device_.upload(array);
        tiny.run();
        up = std::min(up, now() - begin);
        begin = now();
        const HostArray back = device_.download(*buffer);
        down = std::min(down, now() - begin);
        if (std::memcmp(back.data(), array.data(), array.bytes()) != 0)
          throw Error(ErrorCode::internal, "a round trip changed bytes");
      }
      report(fmt::format("host to device {} MiB", mebibytes), up, bytes, "B/s");
      report(fmt::format("device to host {} MiB", mebibytes), down, bytes, "B/s");
    }
  }

  OpenDevice& device_;
  const Options& options_;
};

// Opening and closing, the driver's own calls beside ours.
void open_and_close(Backend& backend, const DeviceInfo& info, int cycles) {
  double best_open = 1e300, best_close = 1e300, best_retain = 1e300, best_release = 1e300;
  for (int i = 0; i < cycles; ++i) {
    double begin = now();
    const std::unique_ptr<OpenDevice> device = backend.open(info);
    best_open = std::min(best_open, now() - begin);
    begin = now();
    device->close();
    best_close = std::min(best_close, now() - begin);
    const cuda::Driver& driver = cuda::driver();
    cuda::RawContext raw = nullptr;
    cuda::Device card = 0;
    driver.device_get(&card, 0);
    begin = now();
    driver.context_retain(&raw, card);
    best_retain = std::min(best_retain, now() - begin);
    begin = now();
    driver.context_release(card);
    best_release = std::min(best_release, now() - begin);
  }
  report("re-open", best_open);
  report("close", best_close);
  report("driver: context retain", best_retain);
  report("driver: context release", best_release);
}

int run(const Options& options) {
  const std::unique_ptr<Backend> backend = cuda::make_backend();
  const std::vector<DeviceInfo> cards = backend->devices();
  if (cards.empty()) throw Error(ErrorCode::unavailable, "there is no NVIDIA card here");
  const double begin = now();
  const std::unique_ptr<OpenDevice> device = backend->open(cards[0]);
  report("first open", now() - begin);
  fmt::print("{{\"card\": \"{}\", \"threads\": {}}}\n", cards[0].name, process_pool().threads());
  Bench(*device, options).all();
  device->close();
  // On its own: cuBLASLt, once used, keeps the context until the process ends.
  if (options.only == "open") open_and_close(*backend, cards[0], 5);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--quick")
      options.quick = true;
    else if (argument == "--only" && i + 1 < argc)
      options.only = argv[++i];
    else {
      fmt::print(stderr, "usage: bench_cuda [--quick] [--only large|matmul|small|transfer|open|CASE]\n");
      return 2;
    }
  }
  try {
    return run(options);
  } catch (const Error& error) {
    fmt::print(stderr, "bench_cuda: {}\n{}\n", error.what(), error.hint());
    return exit_status(error.code());
  }
}

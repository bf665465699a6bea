// bench_opencl: the processor through OpenCL (PoCL) beside our own CPU backend, and the cost of opening it again and again.
//
//   bench_opencl [--rounds N] [--output FILE]   the same programs on both, in turns; ratios of the times
//   bench_opencl --only softmax                 those whose name contains it
//   bench_opencl --chain exp --chain pow        op(a * b + 0.5), or op(a * b + 0.5, b), of these ops instead
//   bench_opencl --dtype bfloat16               in another element type
//   bench_opencl --cycles 10000                 opened, used and closed: memory, descriptors and threads before and after
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <thread>

#include "backends/cpu/backend.h"
#include "backends/opencl/backend.h"
#include "backends/opencl/threads.h"
#include "contender.h"
#include "programs.h"
#include "tenon/error.h"
#include "tenon/ops.h"

namespace {

namespace fs = std::filesystem;
using bench::Case;
using bench::Contender;
using tenon::apply;
using tenon::DType;
using tenon::Graph;
using tenon::HostArray;
using tenon::NodeId;
using tenon::OpenDevice;
using tenon::Shape;

constexpr double kBar = 1.3;
constexpr double kRest = 0.002;  // for threads that spin after their work

struct Work {
  std::string name;
  bool is_matrix;
  std::function<NodeId(Graph& g, NodeId a, NodeId b)> build;
};

NodeId one(Graph& g, std::string_view op, std::initializer_list<NodeId> inputs,
           std::initializer_list<tenon::NamedValue> parameters = {}) {
  return apply(g, op, inputs, parameters)[0];
}

// op(a * b + 0.5), or op(a * b + 0.5, b) where it takes two.
Work chain(const std::string& op) {
  const bool takes_two = tenon::find_op(op).min_inputs == 2;
  return {fmt::format("{}(a * b + 0.5{})", op, takes_two ? ", b" : ""), false, [=](Graph& g, NodeId a, NodeId b) {
            const NodeId x = one(g, "add", {one(g, "mul", {a, b}), g.literal(0.5)});
            return takes_two ? one(g, op, {x, b}) : one(g, op, {x});
          }};
}

const Work kSum{"a + b", false, [](Graph& g, NodeId a, NodeId b) { return one(g, "add", {a, b}); }};

std::vector<Work> all_work() {
  return {
      kSum,
      chain("gelu"),
      {"tanh(a) * sigmoid(b)", false,
       [](Graph& g, NodeId a, NodeId b) { return one(g, "mul", {one(g, "tanh", {a}), one(g, "sigmoid", {b})}); }},
      {"relu(a * b + a)", false,
       [](Graph& g, NodeId a, NodeId b) { return one(g, "relu", {one(g, "add", {one(g, "mul", {a, b}), a})}); }},
      {"where(a > b, a * b, a)", false,
       [](Graph& g, NodeId a, NodeId b) { return one(g, "where", {one(g, "gt", {a, b}), one(g, "mul", {a, b}), a}); }},
      {"softmax(a)", true, [](Graph& g, NodeId a, NodeId) { return one(g, "softmax", {a}); }},
      {"a + transpose(b)", true, [](Graph& g, NodeId a, NodeId b) { return one(g, "add", {a, one(g, "transpose", {b})}); }},
      {"sum(a)", false, [](Graph& g, NodeId a, NodeId) { return one(g, "sum", {a}); }},
      {"sum(gelu(a * b))", false,
       [](Graph& g, NodeId a, NodeId b) { return one(g, "sum", {one(g, "gelu", {one(g, "mul", {a, b})})}); }},
      {"sum(exp(a) * b) of each row", true,
       [](Graph& g, NodeId a, NodeId b) {
         return one(g, "sum", {one(g, "mul", {one(g, "exp", {a}), b})}, {{"axis", std::int64_t{1}}});
       }},
      {"sum(a * b) of each column", true,
       [](Graph& g, NodeId a, NodeId b) { return one(g, "sum", {one(g, "mul", {a, b})}, {{"axis", std::int64_t{0}}}); }},
      {"max(abs(a - b)) of each row", true,
       [](Graph& g, NodeId a, NodeId b) {
         return one(g, "max", {one(g, "abs", {one(g, "sub", {a, b})})}, {{"axis", std::int64_t{1}}});
       }},
      {"layer_norm(a + b)", true, [](Graph& g, NodeId a, NodeId b) { return one(g, "layer_norm", {one(g, "add", {a, b})}); }},
      {"log_softmax(a * b)", true, [](Graph& g, NodeId a, NodeId b) { return one(g, "log_softmax", {one(g, "mul", {a, b})}); }},
      {"relu(a - mean(a) of each row)", true,
       [](Graph& g, NodeId a, NodeId) {
         const NodeId mean = one(g, "mean", {a}, {{"axis", std::int64_t{1}}, {"keepdims", true}});
         return one(g, "relu", {one(g, "sub", {a, mean})});
       }},
      {"gelu(transpose(a) * b)", true,
       [](Graph& g, NodeId a, NodeId b) { return one(g, "gelu", {one(g, "mul", {one(g, "transpose", {a}), b})}); }},
  };
}

Shape shape_of(const Work& work, std::int64_t elements) {
  if (!work.is_matrix) return {elements};
  const auto side = static_cast<std::int64_t>(std::llround(std::sqrt(static_cast<double>(elements))));
  return {side, side};
}

Graph graph_of(const Work& work, const Shape& shape, DType dtype = DType::f32) {
  Graph graph;
  const NodeId a = graph.input("a", dtype, shape), b = graph.input("b", dtype, shape);
  graph.set_outputs({work.build(graph, a, b)});
  return graph;
}

// Nearly everywhere: a * b + 0.5 may be rounded once or twice, and where it is almost zero, or at the edge of a function's
// domain, that is another argument.
void check_equal(const std::string& name, const HostArray& x, const HostArray& y) {
  const HostArray left = x.cast(DType::f32), right = y.cast(DType::f32);
  const std::span<const float> a = left.view<float>(), b = right.view<float>();
  const float allowed = x.dtype() == DType::bf16 ? 1e-2f : x.dtype() == DType::f16 ? 2e-3f : 1e-4f;
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::abs(a[i] - b[i]) <= 0.1f * allowed + allowed * std::abs(b[i]) || a[i] == b[i] ||
        (std::isnan(a[i]) && std::isnan(b[i])))
      continue;
    if (++count > a.size() / 1000)
      throw tenon::Error(tenon::ErrorCode::internal, fmt::format("{}: element {} is {} and {}", name, i, a[i], b[i]));
  }
}

Case case_of(const Work& work, std::int64_t elements, DType dtype, OpenDevice& processor, OpenDevice& opencl) {
  const Shape shape = shape_of(work, elements);
  const std::vector<HostArray> inputs{bench::random_array(shape, 1).cast(dtype), bench::random_array(shape, 2).cast(dtype)};
  const Graph graph = graph_of(work, shape, dtype);
  auto ours = std::make_shared<bench::Prepared>(processor, graph, inputs);
  auto theirs = std::make_shared<bench::Prepared>(opencl, graph, inputs);
  ours->run();
  theirs->run();
  check_equal(work.name, theirs->result(), ours->result());
  const int calls = elements <= (1 << 20) ? 15 : 3;
  Case c{work.name, elements, {}};
  c.contenders.push_back({"cpu", [=] { return bench::fastest(calls, [&] { ours->run(); }); }, kRest});
  c.contenders.push_back({"opencl", [=] { return bench::fastest(calls, [&] { theirs->run(); }); }, kRest});
  c.contenders.push_back({"cpu fresh", [=] { return bench::fastest(calls, [&] { ours->run_fresh(); }); }, kRest});
  c.contenders.push_back({"opencl fresh", [=] { return bench::fastest(calls, [&] { theirs->run_fresh(); }); }, kRest});
  return c;
}

// The middle one of the ratios within a round.
double median_ratio(const Contender& a, const Contender& b) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < a.rounds.size(); ++i) ratios.push_back(a.rounds[i] / b.rounds[i]);
  std::sort(ratios.begin(), ratios.end());
  return ratios[ratios.size() / 2];
}

std::string now() {
  const std::time_t time = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", std::gmtime(&time));
  return text;
}

double load_average() {
  double load = 0;
  std::ifstream("/proc/loadavg") >> load;
  return load;
}

std::string duration(double seconds) {
  return seconds < 1e-3 ? fmt::format("{:.1f} us", 1e6 * seconds) : fmt::format("{:.2f} ms", 1e3 * seconds);
}

tenon::DeviceInfo opencl_processor(tenon::Backend& backend) {
  for (tenon::DeviceInfo& device : backend.devices())
    if (device.kind == tenon::DeviceKind::cpu) return device;
  throw tenon::Error(tenon::ErrorCode::not_found, "no OpenCL platform for processors is installed",
                     "apt-get install pocl-opencl-icd");
}

// What a run costs at least, however little it does: median of a few hundred.
double least_cost(OpenDevice& device) {
  const Shape shape{16};
  const std::vector<HostArray> inputs{bench::random_array(shape, 1), bench::random_array(shape, 2)};
  bench::Prepared program(device, graph_of(kSum, shape), inputs);
  std::vector<double> times;
  for (int i = 0; i < 400; ++i) times.push_back(bench::fastest(1, [&] { program.run(); }));
  std::nth_element(times.begin(), times.begin() + 200, times.end());
  return times[200];
}

std::string compare(int rounds, const std::vector<Work>& all, DType dtype) {
  const auto cpu = tenon::cpu::make_backend(), opencl = tenon::opencl::make_backend();
  const auto processor = cpu->open(cpu->devices().at(0));
  const auto device = opencl->open(opencl_processor(*opencl));
  const double load = load_average();
  const double least = least_cost(*processor), least_opencl = least_cost(*device);
  std::vector<Case> cases;
  // One after the other: together their memory would be too much.
  for (const std::int64_t elements : {std::int64_t{1} << 20, std::int64_t{1} << 24})
    for (const Work& work : all) {
      std::vector<Case> now{case_of(work, elements, dtype, *processor, *device)};
      bench::run_rounds(now, rounds, [&](int round) {
        if (isatty(STDERR_FILENO))
          fmt::print(stderr, "\r\033[K{}, {} M elements: round {}/{}", work.name, elements >> 20, round + 1, rounds);
      });
      for (Contender& each : now[0].contenders) each.measure = nullptr;
      cases.push_back(std::move(now[0]));
    }
  if (isatty(STDERR_FILENO)) fmt::print(stderr, "\r\033[K");

  std::string text = fmt::format(
      "{}, {}, {}, {} cores, load {:.1f} before, {} rounds, {}. A run over 16 elements of float32: cpu {}, opencl {}.\n\n", now(),
      device->info().name, device->info().runtime_version, std::thread::hardware_concurrency(), load, rounds, tenon::name(dtype),
      duration(least), duration(least_opencl));
  text += "| work | elements | cpu | opencl | ratio, best [median] | at most 1.3 | ratio into fresh memory |\n";
  text += "| --- | --- | --- | --- | --- | --- | --- |\n";
  for (const Case& c : cases) {
    const Contender &a = c.contenders[0], &b = c.contenders[1];
    const double ratio = b.best() / a.best(), fresh = c.contenders[3].best() / c.contenders[2].best();
    text += fmt::format("| {} | {} M | {} | {} | {:.2f} [{:.2f}] | {} | {:.2f} [{:.2f}] |\n", c.name, c.size >> 20,
                        duration(a.best()), duration(b.best()), ratio, median_ratio(b, a), ratio <= kBar ? "yes" : "**no**",
                        fresh, median_ratio(c.contenders[3], c.contenders[2]));
  }
  return text;
}

DType type_named(const std::string& text) {
  if (const auto dtype = tenon::parse_dtype(text); dtype && *dtype != DType::boolean) return *dtype;
  throw tenon::Error(tenon::ErrorCode::invalid_argument, fmt::format("{} is no type of numbers", text),
                     "--dtype float32, bfloat16, float64, int32, ...");
}

// --- Opening and closing ---

struct Held {
  std::size_t descriptors = 0, threads = 0, kilobytes = 0;
};

Held held() {
  Held h;
  const fs::directory_iterator all("/proc/self/fd");
  h.descriptors = static_cast<std::size_t>(std::distance(begin(all), end(all)));
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("Threads:")) h.threads = std::stoul(line.substr(8));
    if (line.starts_with("VmRSS:")) h.kilobytes = std::stoul(line.substr(6));
  }
  return h;
}

void open_use_close(tenon::Backend& backend, const tenon::DeviceInfo& info, const Graph& graph, bool closes) {
  const auto device = backend.open(info);
  const auto program = device->compile(graph);
  const auto a = device->upload(HostArray::full(DType::f32, {4096}, 1)), y = device->allocate({DType::f32, {4096}});
  program->run({a.get(), a.get()}, {y.get()});
  if (device->download(*y).value(4095) != 2) throw tenon::Error(tenon::ErrorCode::internal, "a wrong result");
  if (closes) device->close();
}

int cycles(int count) {
  const auto backend = tenon::opencl::make_backend();
  const tenon::DeviceInfo info = opencl_processor(*backend);
  const Graph graph = graph_of(kSum, {4096});
  // What platforms and allocators keep is kept by then.
  for (int i = 0; i < std::min(count, 500); ++i) open_use_close(*backend, info, graph, i % 2 == 0);
  const Held before = held();
  const double begin = bench::seconds_now();
  for (int i = 0; i < count; ++i) {
    open_use_close(*backend, info, graph, i % 2 == 0);
    if ((i + 1) % std::max(1, count / 10) == 0)
      fmt::print(stderr, "{} cycles: {} KiB, {} descriptors, {} threads\n", i + 1, held().kilobytes, held().descriptors,
                 held().threads);
  }
  const double seconds = bench::seconds_now() - begin;
  const Held after = held();
  fmt::print(
      "{} cycles of opening, compiling, running and closing, {:.2f} ms each; descriptors {} -> {}, threads {} -> {}, memory {} "
      "-> {} KiB\n",
      count, 1e3 * seconds / count, before.descriptors, after.descriptors, before.threads, after.threads, before.kilobytes,
      after.kilobytes);
  // A page here and there is the allocator's; a leak of one small object a cycle would be more.
  const bool grew = after.kilobytes > before.kilobytes + 256 + static_cast<std::size_t>(count) / 16;
  return after.descriptors > before.descriptors || after.threads > before.threads || grew ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  tenon::opencl::ask_for_device_without_threads();
  int rounds = 21, count = 0;
  std::string output, only, dtype = "float32";
  std::vector<std::string> chains;
  CLI::App app{"Compares the processor through OpenCL with the CPU backend, or opens and closes it many times"};
  app.add_option("--rounds", rounds, "turns each of the two gets")->check(CLI::Range(1, 10000));
  app.add_option("--only", only, "work whose name contains this");
  app.add_option("--chain", chains, "op(a * b + 0.5) of these ops only");
  app.add_option("--dtype", dtype, "element type: float32, bfloat16, float64, int32, ...");
  app.add_option("--output", output, "write the table here");
  app.add_option("--cycles", count, "open, use and close so many times instead")->check(CLI::Range(1, 10000000));
  CLI11_PARSE(app, argc, argv);
  try {
    if (count > 0) return cycles(count);
    std::vector<Work> work;
    for (const std::string& op : chains) work.push_back(chain(op));
    if (work.empty()) work = all_work();
    std::erase_if(work, [&](const Work& each) { return each.name.find(only) == std::string::npos; });
    if (work.empty())
      throw tenon::Error(tenon::ErrorCode::not_found, fmt::format("no work is called like '{}'", only), "run it without --only");
    const std::string text = compare(rounds, work, type_named(dtype));
    std::cout << text;
    if (!output.empty()) std::ofstream(output) << text;
  } catch (const tenon::Error& e) {
    std::cerr << "bench_opencl: " << e.what() << (e.hint().empty() ? "" : "; " + e.hint()) << "\n";
    return 1;
  }
}

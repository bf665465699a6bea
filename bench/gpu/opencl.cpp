// bench_opencl: opens, uses and closes the CPU through OpenCL (PoCL) many times; memory, descriptors and threads before and
// after.
//
//   bench_opencl [--cycles N]
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "backends/opencl/backend.h"
#include "cpu/contender.h"
#include "tenon/error.h"
#include "tenon/ops.h"

namespace {

namespace fs = std::filesystem;
using tenon::apply;
using tenon::DType;
using tenon::Graph;
using tenon::HostArray;
using tenon::Shape;

tenon::DeviceInfo opencl_cpu(tenon::Backend& backend) {
  for (tenon::DeviceInfo& device : backend.devices())
    if (device.kind == tenon::DeviceKind::cpu) return device;
  throw tenon::Error(tenon::ErrorCode::not_found, "no OpenCL platform for CPUs is installed", "apt-get install pocl-opencl-icd");
}

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
  const tenon::DeviceInfo info = opencl_cpu(*backend);
  Graph graph;
  const Shape shape{4096};
  graph.set_outputs(apply(graph, "add", {graph.input("a", DType::f32, shape), graph.input("b", DType::f32, shape)}));
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
  int count = 10000;
  CLI::App app{"Opens, uses and closes the CPU through OpenCL many times; fails if anything is left behind"};
  app.add_option("--cycles", count, "how many times")->check(CLI::Range(1, 10000000));
  CLI11_PARSE(app, argc, argv);
  try {
    return cycles(count);
  } catch (const tenon::Error& e) {
    std::cerr << "bench_opencl: " << e.what() << (e.hint().empty() ? "" : "; " + e.hint()) << "\n";
    return 1;
  }
}

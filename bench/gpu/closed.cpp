// What it costs that a closed card is really free: the card in a worker process against the card in this one.
//
//   bench_closed                 run, transfers and opening, in process and in a worker, alternating
//   bench_closed --cycles 100    request, close, look: after each close nvidia-smi and /proc must show nothing of ours
//   bench_closed --driver        the driver's own times, and which files of the card it holds open after each step
//   bench_closed --once          opens the card in this process and runs one request (started by the first form)
//
// The request is a matrix product, a convolution and attention.
#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "backends/cuda/backend.h"
#include "hal/worker/worker.h"
#include "tenon/error.h"
#include "tenon/expression.h"
#include "tenon/manager.h"
#include "tenon/ops.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

double seconds_of(const std::function<void()>& action) {
  const auto begin = Clock::now();
  action();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}
double median(std::vector<double> all) {
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}
double fastest(int times, const std::function<void()>& action) {
  double best = 1e30;
  for (int i = 0; i < times; ++i) best = std::min(best, seconds_of(action));
  return best;
}

Graph request_program() {
  return parse_expression(
      "sum(a @ a) + sum(conv2d(reshape(a, [1, 64, 64, 64]), ones([8, 64, 3, 3]))) + "
      "sum(attention(reshape(a, [8, 512, 64]), reshape(a, [8, 512, 64]), reshape(a, [8, 512, 64])))",
      std::vector<NamedType>{{"a", DType::f32, {512, 512}}});
}
HostArray request_input() { return HostArray::full(DType::f32, {512, 512}, 0.5); }

void request(OpenDevice& device) {
  const auto program = device.compile(request_program());
  const auto a = device.upload(request_input()), y = device.allocate(program->output_types()[0]);
  program->run({a.get()}, {y.get()});
  device.download(*y);
}

// --- What is on the card ---
std::set<pid_t> processes_on_cards() {
  std::set<pid_t> found;
  FILE* const answer = popen("nvidia-smi --query-compute-apps=pid --format=csv,noheader", "r");
  char line[256];
  while (std::fgets(line, sizeof line, answer))
    if (const long pid = std::atol(line); pid > 0) found.insert(static_cast<pid_t>(pid));
  pclose(answer);
  return found;
}
std::vector<std::string> card_files(pid_t pid) {
  std::vector<std::string> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(fs::path("/proc") / std::to_string(pid) / "fd", error)) {
    const std::string target = fs::read_symlink(entry.path(), error).string();
    if (target.starts_with("/dev/nvidia")) found.push_back(target);
  }
  std::sort(found.begin(), found.end());
  return found;
}
std::vector<pid_t> ours() {
  std::vector<pid_t> all{getpid()};
  for (const auto& task : fs::directory_iterator("/proc/self/task")) {
    std::ifstream list(task.path() / "children");
    for (pid_t pid; list >> pid;) all.push_back(pid);
  }
  return all;
}

int cycles(int count) {
  Config config;
  config.ledger = config.profile = false;
  config.keep_open = KeepOpenPolicy::on_demand;
  DeviceManager manager(config);
  const Graph program = request_program();
  const std::vector<HostArray> inputs{request_input()};
  int seen = 0, holding = 0;
  std::vector<double> times;
  for (int i = 0; i < count; ++i) {
    times.push_back(seconds_of([&] { manager.run(program, inputs, {.device = "cuda:0"}); }));
    manager.close("cuda:0");
    const std::set<pid_t> users = processes_on_cards();
    for (const pid_t pid : ours()) {
      seen += users.contains(pid);
      holding += !card_files(pid).empty();
    }
  }
  fmt::print(
      "{} cycles: after the close {} processes of ours in nvidia-smi, {} with files of the card open; first request {:.0f} ms, "
      "later ones {:.0f} ms (median)\n",
      count, seen, holding, 1e3 * times[0], 1e3 * median(times));
  return seen + holding == 0 ? 0 : 1;
}

// --- In process against in a worker ---
void compare(const char* what, double here, double there, double bytes = 0) {
  if (bytes > 0)
    fmt::print("| {} | {:.1f} GB/s | {:.1f} GB/s | {:.3f} |\n", what, bytes / here / 1e9, bytes / there / 1e9, here / there);
  else
    fmt::print("| {} | {:.2f} us | {:.2f} us | +{:.2f} us |\n", what, here * 1e6, there * 1e6, (there - here) * 1e6);
}

struct Side {
  std::unique_ptr<OpenDevice> device;
  std::unique_ptr<Executable> add;
  std::unique_ptr<Buffer> x, y;
  HostArray small = HostArray::full(DType::f32, {1024}, 1);

  explicit Side(std::unique_ptr<OpenDevice> opened) : device(std::move(opened)) {
    Graph graph;
    const NodeId a = graph.input("a", DType::f32, {1024}), b = graph.input("b", DType::f32, {1024});
    graph.set_outputs(apply(graph, "add", {a, b}));
    add = device->compile(graph);
    x = device->upload(small);
    y = device->allocate({DType::f32, {1024}});
  }
  double run() {
    return fastest(2000, [&] { add->run({x.get(), x.get()}, {y.get()}); });
  }
  double run_and_read() {
    return fastest(2000, [&] {
      add->run({x.get(), x.get()}, {y.get()});
      device->download(*y);
    });
  }
  double request() {
    return fastest(1000, [&] {
      const auto a = device->upload(small), b = device->upload(small);
      add->run({a.get(), b.get()}, {y.get()});
      device->download(*y);
    });
  }
  double upload(const HostArray& array) {
    return fastest(7, [&] { device->upload(array); });
  }
  double download(const HostArray& array) {
    const auto buffer = device->upload(array);
    return fastest(7, [&] { device->download(*buffer); });
  }
};

int overhead() {
  const auto here_backend = cuda::make_backend(), there_backend = isolate(cuda::make_backend());
  const DeviceInfo card = here_backend->devices().at(0);
  {
    Side here(here_backend->open(card)), there(there_backend->open(card));
    fmt::print("| work | in process | in a worker | |\n| --- | --- | --- | --- |\n");
    compare("run 1024", here.run(), there.run());
    compare("run + download 1024", here.run_and_read(), there.run_and_read());
    compare("2 uploads + run + download 1024", here.request(), there.request());
    for (const std::int64_t mebibytes : {1, 16, 256, 1024}) {
      const HostArray array = HostArray::full(DType::u8, {mebibytes << 20}, 1);
      const auto bytes = static_cast<double>(array.bytes());
      compare(fmt::format("host to device {} MiB", mebibytes).c_str(), here.upload(array), there.upload(array), bytes);
      compare(fmt::format("device to host {} MiB", mebibytes).c_str(), here.download(array), there.download(array), bytes);
    }
    there.device->close();
  }
  // A program that has just started against a server that has closed its card: both open it and answer one request.
  std::vector<double> once, again;
  for (int i = 0; i < 7; ++i) {
    if (FILE* const child = popen(fmt::format("/proc/{}/exe --once", getpid()).c_str(), "r")) {
      double seconds = 0;
      if (std::fscanf(child, "%lf", &seconds) == 1) once.push_back(seconds);
      pclose(child);
    }
    again.push_back(seconds_of([&] {
      const auto device = there_backend->open(card);
      request(*device);
      device->close();
    }));
    usleep(700'000);
  }
  fmt::print("| open + request + close, new process against worker | {:.0f} ms | {:.0f} ms | {:.2f} |\n", 1e3 * median(once),
             1e3 * median(again), median(again) / median(once));
  return 0;
}

int once() {
  const auto backend = cuda::make_backend();
  const double seconds = seconds_of([&] {
    const auto device = backend->open(backend->devices().at(0));
    request(*device);
    device->close();
  });
  fmt::print("{}\n", seconds);
  return 0;
}

int driver_times() {
  const auto step = [](const char* what, const std::function<void()>& action) {
    const double seconds = seconds_of(action);
    fmt::print("{}: {:.1f} ms; in nvidia-smi {}; files {}\n", what, 1e3 * seconds, processes_on_cards().contains(getpid()),
               fmt::join(card_files(getpid()), " "));
  };
  void* library = nullptr;
  void* context = nullptr;
  const auto function = [&](const char* name) { return dlsym(library, name); };
  step("load the driver", [&] { library = dlopen("libcuda.so.1", RTLD_NOW); });
  step("load cuBLASLt",
       [] { dlopen("libcublasLt.so.13", RTLD_NOW) || dlopen("/usr/local/cuda/lib64/libcublasLt.so.13", RTLD_NOW); });
  step("cuInit", [&] { reinterpret_cast<int (*)(unsigned)>(function("cuInit"))(0); });
  for (int i = 0; i < 2; ++i) {
    step("context retain", [&] { reinterpret_cast<int (*)(void**, int)>(function("cuDevicePrimaryCtxRetain"))(&context, 0); });
    step("context release", [&] { reinterpret_cast<int (*)(int)>(function("cuDevicePrimaryCtxRelease_v2"))(0); });
  }
  return 0;
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  try {
    const std::string what = argc > 1 ? argv[1] : "";
    if (what == "--cycles" && argc > 2) return tenon::cycles(std::atoi(argv[2]));
    if (what == "--driver") return tenon::driver_times();
    if (what == "--once") return tenon::once();
    if (what.empty()) return tenon::overhead();
  } catch (const tenon::Error& error) {
    fmt::print(stderr, "{}\n{}\n", error.what(), error.hint());
    return 1;
  }
  fmt::print(stderr, "usage: bench_closed [--cycles N | --driver | --once]\n");
  return 2;
}

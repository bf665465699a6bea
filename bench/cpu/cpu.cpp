// bench_cpu: Tenon's CPU backend, the limit (loops by hand, the BLAS's own gemm, copy bandwidth) and the peers, in one run.
// Usually started by bench/run, which builds it and names the peers' Python.
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iostream>
#include <set>

#include "base/threads/thread_pool.h"
#include "cpu/blas.h"
#include "cpu/peers.h"
#include "cpu/programs.h"
#include "cpu/report.h"
#include "tenon/error.h"
#include "tenon/manager.h"

extern char** environ;

namespace {

using bench::Case;
using bench::Contender;

constexpr double kPeerRest = 0.010;  // OpenMP's threads spin for some milliseconds after their work
constexpr double kBlasRest = 0.040;  // OpenBLAS's for more

struct Options {
  int rounds = 21;
  int threads = tenon::usable_cores();
  std::string python, script, program, output, command;
  std::vector<std::string> ops;
  std::set<std::string> only_some;  // empty: all
};

int calls_for(std::int64_t elements) { return elements <= (1 << 20) ? 15 : 3; }

const bench::HandLoops& best_loops() {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) return *bench::hand_loops_v4();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return *bench::hand_loops_v3();
  throw tenon::Error(tenon::ErrorCode::unimplemented, "the hand-written loops need AVX2", "run the benchmark on a newer CPU");
}

// The limit must do the same work: results that differ by more than rounding mean that one of the two is wrong.
void check_equal(const std::string& op, const tenon::HostArray& ours, const float* hand) {
  const std::span<const float> values = ours.view<float>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float wanted = hand[i];
    if (std::abs(values[i] - wanted) > 1e-4f + 1e-4f * std::abs(wanted))
      throw tenon::Error(tenon::ErrorCode::internal,
                         fmt::format("{}: element {} is {} by Tenon and {} by hand", op, i, values[i], wanted));
  }
}

void add_peers(Case& c, bench::Peers& peers, int calls) {
  for (const std::string& peer : peers.names()) {
    const std::string op = c.name;
    const std::int64_t size = c.size;
    c.contenders.push_back({peer, [&peers, peer, op, size, calls] { return peers.measure(peer, op, size, calls); }, kPeerRest});
  }
}

std::vector<Case> elementwise_cases(const Options& o, tenon::OpenDevice& device, bench::SpinPool& pool, bench::Peers& peers) {
  std::vector<Case> cases;
  for (const std::int64_t size : {std::int64_t{1} << 20, std::int64_t{1} << 24})
    for (const std::string& op : o.ops) {
      if (std::ranges::find(bench::kOps, op) == std::end(bench::kOps)) continue;
      const tenon::Shape shape = bench::shape_for(op, size);
      const tenon::HostArray a = bench::random_array(shape, 1), b = bench::random_array(shape, 2);
      auto hand = std::make_shared<bench::ByHand>(best_loops(), pool, op, a, b);
      auto ours = std::make_shared<bench::Prepared>(device, bench::graph_for(op, shape), std::vector{a, b});
      hand->run();
      ours->run();
      check_equal(op, ours->result(), hand->result());
      const int calls = calls_for(size);
      Case c{op, size, {}};
      c.contenders.push_back({"limit", [=] { return bench::fastest(calls, [&] { hand->run(); }); }});
      c.contenders.push_back({"tenon", [=] { return bench::fastest(calls, [&] { ours->run(); }); }});
      c.contenders.push_back({"fresh", [=] { return bench::fastest(calls, [&] { ours->run_fresh(); }); }});
      add_peers(c, peers, size <= (1 << 20) ? 5 : 1);
      cases.push_back(std::move(c));
    }
  return cases;
}

// Beside the peers only: there are no loops by hand for these.
constexpr const char* kMatrixOps[] = {"sum_columns", "max_columns", "sum_products", "variance",   "minus_max",
                                      "layer_norm",  "log_softmax", "cumsum",       "to_bfloat16"};
constexpr const char* kFloat64Ops[] = {"add",   "exp",   "log",  "sin", "cos",  "tanh",    "sigmoid",
                                       "expm1", "log1p", "atan", "erf", "gelu", "softmax", "sum"};

void check_ops(const std::vector<std::string>& ops) {
  const auto among = [](const auto& list, const std::string& op) { return std::ranges::find(list, op) != std::end(list); };
  for (const std::string& op : ops)
    if (!among(bench::kOps, op) && !among(kMatrixOps, op) && !among(kFloat64Ops, op))
      throw tenon::Error(tenon::ErrorCode::invalid_argument, fmt::format("there is no measurement of {}", op),
                         fmt::format("there are {}, {} and, in float64, {}", fmt::join(bench::kOps, " "),
                                     fmt::join(kMatrixOps, " "), fmt::join(kFloat64Ops, " ")));
}

std::vector<Case> matrix_cases(const Options& o, tenon::OpenDevice& device, bench::Peers& peers) {
  std::vector<Case> cases;
  for (const std::int64_t size : {std::int64_t{1} << 20, std::int64_t{1} << 24})
    for (const std::string op : kMatrixOps) {
      if (!o.only_some.empty() && !o.only_some.contains(op)) continue;
      const tenon::Shape shape = bench::shape_for(op, size);
      const std::vector inputs{bench::random_array(shape, 1), bench::random_array(shape, 2)};
      auto ours = std::make_shared<bench::Prepared>(device, bench::graph_for(op, shape), inputs);
      const int calls = calls_for(size);
      Case c{op, size, {}};
      c.contenders.push_back({"tenon", [=] { return bench::fastest(calls, [&] { ours->run(); }); }});
      c.contenders.push_back({"fresh", [=] { return bench::fastest(calls, [&] { ours->run_fresh(); }); }});
      add_peers(c, peers, size <= (1 << 20) ? 5 : 1);
      cases.push_back(std::move(c));
    }
  return cases;
}

// The same in float64.
std::vector<Case> float64_cases(const Options& o, tenon::OpenDevice& device, bench::Peers& peers) {
  using tenon::DType;
  std::vector<Case> cases;
  for (const std::int64_t size : {std::int64_t{1} << 20, std::int64_t{1} << 24})
    for (const std::string op : kFloat64Ops) {
      if (!o.only_some.empty() && !o.only_some.contains(op)) continue;
      const tenon::Shape shape = bench::shape_for(op, size);
      tenon::HostArray a = bench::random_array(shape, 1).cast(DType::f64);
      if (op.starts_with("log"))
        for (double& x : a.mutable_view<double>()) x = std::abs(x) + 0.1;
      const tenon::HostArray b = bench::random_array(shape, 2).cast(DType::f64);
      auto ours = std::make_shared<bench::Prepared>(device, bench::graph_for(op, shape, DType::f64), std::vector{a, b});
      const int calls = calls_for(size);
      Case c{op + "_f64", size, {}};
      c.contenders.push_back({"tenon", [=] { return bench::fastest(calls, [&] { ours->run(); }); }});
      c.contenders.push_back({"fresh", [=] { return bench::fastest(calls, [&] { ours->run_fresh(); }); }});
      add_peers(c, peers, size <= (1 << 20) ? 5 : 1);
      cases.push_back(std::move(c));
    }
  return cases;
}

std::vector<Case> matmul_cases(const Options& o, tenon::OpenDevice& device, bench::Peers& peers) {
  static const std::vector<bench::Blas> libraries = bench::load_blas(o.threads);
  std::vector<Case> cases;
  for (const std::int64_t size : {64, 256, 1024, 2048}) {
    const tenon::Shape shape{size, size};
    const tenon::HostArray a = bench::random_array(shape, 3), b = bench::random_array(shape, 4);
    auto ours = std::make_shared<bench::Prepared>(device, bench::graph_for("matmul", shape), std::vector{a, b});
    auto out = std::make_shared<tenon::HostArray>(tenon::HostArray::zeros(tenon::DType::f32, shape));
    const int calls = size <= 64 ? 400 : size <= 256 ? 30 : size <= 1024 ? 2 : 1;
    Case c{"matmul", size, {}};
    c.contenders.push_back({"tenon", [=] { return bench::fastest(calls, [&] { ours->run(); }); }, kPeerRest});
    for (const bench::Blas& blas : libraries) {
      float* result = out->mutable_view<float>().data();
      const auto multiply = [=, &blas] {
        blas.multiply(static_cast<int>(size), a.view<float>().data(), b.view<float>().data(), result);
      };
      c.contenders.push_back({blas.name, [=, keep = out] { return bench::fastest(calls, multiply); }, kBlasRest});
    }
    add_peers(c, peers, std::min(calls, 30));
    cases.push_back(std::move(c));
  }
  return cases;
}

std::vector<Case> small_cases(tenon::OpenDevice& device, bench::Peers& peers) {
  constexpr int kBatch = 1000;
  std::vector<Case> cases;
  for (const std::string op : {"add", "gelu"}) {
    const tenon::HostArray a = bench::random_array({16}, 5), b = bench::random_array({16}, 6);
    auto ours = std::make_shared<bench::Prepared>(device, bench::graph_for(op, {16}), std::vector{a, b});
    Case c{op, 16, {}};
    c.contenders.push_back({"tenon", [=] {
                              return bench::fastest(5,
                                                    [&] {
                                                      for (int i = 0; i < kBatch; ++i) ours->run();
                                                    }) /
                                     kBatch;
                            }});
    add_peers(c, peers, 3 * kBatch);
    cases.push_back(std::move(c));
  }
  return cases;
}

Case copy_case(bench::SpinPool& pool, std::int64_t size) {
  const tenon::HostArray a = bench::random_array({size}, 7);
  auto hand = std::make_shared<bench::ByHand>(best_loops(), pool, "copy", a, a);
  Case c{"copy", size, {}};
  c.contenders.push_back({"limit", [=] { return bench::fastest(calls_for(size), [&] { hand->run(); }); }});
  return c;
}

// Wall time of one run of a command, its output thrown away.
double process_seconds(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  const double begin = bench::seconds_now();
  pid_t pid = 0;
  int status = 0;
  const int error = posix_spawn(&pid, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error == 0) waitpid(pid, &status, 0);
  const double seconds = bench::seconds_now() - begin;
  if (error != 0 || status != 0)
    throw tenon::Error(tenon::ErrorCode::not_found, fmt::format("{} did not run", command[0]), "name the program with --program");
  return seconds;
}

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown CPU";
}

double load_average() {
  double load = 0;
  std::ifstream("/proc/loadavg") >> load;
  return load;
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", std::gmtime(&now));
  return text;
}

bench::Session measure(const Options& o) {
  bench::Peers peers(o.python, o.script, o.threads);
  bench::SpinPool pool(o.threads);
  const std::shared_ptr<tenon::OpenDevice> device = tenon::process_manager().open("cpu:0");

  bench::Session s;
  s.date = today();
  s.cpu = cpu_name();
  s.command = o.command;
  s.isa = best_loops().isa;
  s.threads = o.threads;
  s.rounds = o.rounds;
  s.load = load_average();
  s.peers = peers.names();
  s.peer_versions = peers.versions();
  s.missing = peers.missing();
  const auto stage = [&](const char* name, std::vector<Case>& cases, int rounds) {
    bench::run_rounds(cases, rounds, [&](int round) { fmt::print(stderr, "\r{}: round {}/{}   ", name, round + 1, rounds); });
  };

  s.elementwise = elementwise_cases(o, *device, pool, peers);
  stage("elementwise", s.elementwise, o.rounds);
  s.matrices = matrix_cases(o, *device, peers);
  stage("rows and columns", s.matrices, o.rounds);
  s.float64 = float64_cases(o, *device, peers);
  stage("float64", s.float64, o.rounds);
  std::vector<Case> copies;
  copies.push_back(copy_case(pool, std::int64_t{1} << 20));
  copies.push_back(copy_case(pool, std::int64_t{1} << 24));
  stage("copy", copies, o.rounds);
  s.copy_small = copies[0];
  s.copy_large = copies[1];
  s.small = small_cases(*device, peers);
  stage("16 elements", s.small, o.rounds);
  s.matmul = matmul_cases(o, *device, peers);
  stage("matmul", s.matmul, o.rounds);
  if (!o.program.empty()) {
    std::vector<Case> cold(1);
    cold[0].contenders.push_back({"/bin/true", [] { return process_seconds({"/bin/true"}); }});
    cold[0].contenders.push_back({"tenon run '1+1'", [&] { return process_seconds({o.program, "run", "1+1"}); }});
    stage("cold start", cold, std::max(20, o.rounds));
    s.cold_start = cold[0];
  }
  fmt::print(stderr, "\n");
  return s;
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app{"Measures Tenon's CPU backend against hand-written loops, the machine's BLAS and Python peers"};
  app.add_option("--rounds", o.rounds, "turns each contender gets")->check(CLI::Range(1, 10000));
  app.add_option("--threads", o.threads, "threads of each contender")->check(CLI::Range(1, 1024));
  app.add_option("--ops", o.ops, "only these ops at 1M and 16M");
  app.add_option("--python", o.python, "the interpreter that has the peers");
  app.add_option("--peers", o.script, "peers.py");
  app.add_option("--program", o.program, "the tenon program, for the cold start");
  app.add_option("--output", o.output, "write the tables here");
  app.add_option("--command", o.command, "the command to name in the tables");
  CLI11_PARSE(app, argc, argv);
  setenv("TENON_THREADS", std::to_string(o.threads).c_str(), 1);
  o.only_some.insert(o.ops.begin(), o.ops.end());
  if (o.ops.empty()) o.ops.assign(std::begin(bench::kOps), std::end(bench::kOps));
  try {
    check_ops(o.ops);
    const std::string text = bench::markdown(measure(o));
    std::cout << text;
    if (!o.output.empty()) std::ofstream(o.output) << text;
  } catch (const tenon::Error& e) {
    std::cerr << "bench_cpu: " << e.what() << (e.hint().empty() ? "" : "; " + e.hint()) << "\n";
    return 1;
  }
}

// tenon_conformance: every op of the catalogue on a device, against the reference.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "backends/all.h"
#include "backends/opencl/backend.h"
#include "cli/option_checks.h"
#include "conformance/host_tensix.h"
#include "conformance/random/random_program.h"
#include "conformance/report/report.h"
#include "conformance/report/support.h"
#include "tenon/error.h"
#include "tenon/manager.h"

namespace tenon::conformance {
namespace {

struct Options {
  std::string backend, device;
  std::vector<std::string> ops, dtypes;
  bool matrix = false, markdown = false, list = false, quick = false, elementwise = false;
  std::optional<int> only_case;
  int every = 1, sample = 0, types = 0, programs = 0;
  std::string save, check, support;
  std::string level;
  std::uint64_t seed = 1;
};

constexpr const char* kHostTensix = "tensix-host";

std::vector<const OpInfo*> chosen_ops(const Options& options) {
  std::vector<const OpInfo*> ops;
  for (const std::string& name : options.ops) ops.push_back(&find_op(name));
  if (options.ops.empty())
    for (const OpInfo& op : all_ops())
      if (!options.elementwise || op.elementwise) ops.push_back(&op);
  return ops;
}

// float32, and of the others as many as asked for, going on where the op before stopped.
std::vector<DType> some_dtypes(const OpInfo& op, int count) {
  if (op.dtypes.size() <= static_cast<std::size_t>(count)) return op.dtypes;
  std::vector<DType> chosen, others;
  for (const DType dtype : op.dtypes) (dtype == DType::f32 ? chosen : others).push_back(dtype);
  const auto wanted = static_cast<std::size_t>(count) - chosen.size();
  const auto first = static_cast<std::size_t>(&op - all_ops().data()) * wanted;
  for (std::size_t i = 0; i < wanted; ++i) chosen.push_back(others[(first + i) % others.size()]);
  return chosen;
}

std::vector<DType> chosen_dtypes(const Options& options, const OpInfo& op) {
  if (options.dtypes.empty()) return options.types > 0 ? some_dtypes(op, options.types) : op.dtypes;
  std::vector<DType> dtypes;
  for (const std::string& text : options.dtypes) {
    const std::optional<DType> dtype = parse_dtype(text);
    if (!dtype) throw Error(ErrorCode::invalid_argument, fmt::format("{} is not a dtype", text));
    if (std::find(op.dtypes.begin(), op.dtypes.end(), *dtype) != op.dtypes.end()) dtypes.push_back(*dtype);
  }
  return dtypes;
}

DeviceInfo requested_device(const Options& options, const DeviceManager& manager) {
  if (options.backend == kHostTensix) return open_host_tensix()->info();
  if (options.backend.empty()) return manager.find(options.device.empty() ? "cpu" : options.device);
  for (const DeviceInfo& device : manager.devices())
    if (std::find(device.backends.begin(), device.backends.end(), options.backend) != device.backends.end() &&
        (options.device.empty() || options.device == device.id))
      return device;
  throw Error(ErrorCode::not_found, fmt::format("no device {} is driven by a backend {}", options.device, options.backend));
}

// A device is opened by its first backend unless another is asked for. OpenCL's own device is kept bare: it compiles many
// programs together, and most of this suite's time there is the compiler's.
std::shared_ptr<OpenDevice> open_device(const std::string& backend, const DeviceInfo& device) {
  if (backend == kHostTensix) return open_host_tensix();
  if (device.backends.at(0) == backend && backend != "opencl") return process_manager().open(device.id);
  static BackendRegistry registry;
  if (registry.backends().empty()) register_all_backends(registry);
  return registry.find(backend)->open(device);
}

void list(const Options& options) {
  for (const OpInfo* op : chosen_ops(options))
    for (DType dtype : chosen_dtypes(options, *op))
      for (const Case& c : cases_for(*op, dtype, options.quick ? Extent::quick : Extent::full))
        fmt::print("{} {} {}: {}\n", op->name, name(dtype), c.number, c.label);
}

Results run_all(const Options& options, const std::string& backend, OpenDevice& device, std::string command) {
  std::function<void(std::span<const Graph>)> prepare;
  if (backend == "opencl") prepare = [&](std::span<const Graph> graphs) { opencl::prepare(device, graphs); };
  if (backend == kHostTensix) prepare = [&](std::span<const Graph> graphs) { prepare_host_tensix(device, graphs); };
  Runner runner(device, {.seed = options.seed,
                         .extent = options.quick ? Extent::quick : Extent::full,
                         .only_case = options.only_case,
                         .every = options.every,
                         .sample = options.sample,
                         .prepare = std::move(prepare),
                         .command = std::move(command)});
  Results results;
  for (const OpInfo* op : chosen_ops(options)) {
    const std::vector<DType> dtypes = chosen_dtypes(options, *op);
    runner.prepare(*op, dtypes);
    for (DType dtype : dtypes) results[{op->name, dtype}] = runner.run(*op, dtype);
  }
  return results;
}

// A device that cannot be used now leaves every op untested, and says why.
Results all_unavailable(const Options& options, const Error& error) {
  Results results;
  for (const OpInfo* op : chosen_ops(options))
    for (DType dtype : chosen_dtypes(options, *op))
      results[{op->name, dtype}] = Verdict{.status = Status::unavailable, .reason = error.what()};
  return results;
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", std::gmtime(&now));
  return text;
}

std::string command_text(const Options& options, const std::string& device) {
  return fmt::format("tenon_conformance{} --device {}{}{}", options.backend.empty() ? "" : " --backend " + options.backend,
                     device, options.quick ? " --quick" : "",
                     options.sample > 0 ? fmt::format(" --sample {}", options.sample) : "");
}

Column column_of_run(const Options& options, const Results& results, const DeviceInfo& device) {
  const std::string runtime = device.runtime_version.empty() ? device.driver_version : device.runtime_version;
  return column_of(results, {{"device", device.name + (runtime.empty() ? "" : ", " + runtime)},
                             {"date", today()},
                             {"command", command_text(options, device.id)},
                             {"extent", options.sample > 0 ? fmt::format("{} a pair", options.sample)
                                        : options.quick    ? "small"
                                                           : "all"}});
}

void save(const std::string& path, const Column& now) {
  Column column;
  if (std::filesystem::exists(path)) column = read_column(path);
  column.merge(now);
  std::ofstream file(path);
  file << column_text(column);
  if (!file.flush()) throw Error(ErrorCode::unavailable, fmt::format("{} cannot be written", path));
}

DType program_dtype(const Options& options) {
  if (options.dtypes.empty()) return DType::f32;
  const std::optional<DType> dtype = parse_dtype(options.dtypes[0]);
  if (!dtype || !is_float(*dtype) || is_block(*dtype))
    throw Error(ErrorCode::invalid_argument, fmt::format("{} is not a floating-point type of programs", options.dtypes[0]));
  return *dtype;
}

// Whole programs instead of ops. A failure names the seed that repeats it.
int run_programs(const Options& options) {
  const DeviceInfo info = requested_device(options, process_manager());
  const std::shared_ptr<OpenDevice> device = open_device(options.backend.empty() ? info.backends.at(0) : options.backend, info);
  int failed = 0;
  for (int i = 0; i < options.programs; ++i) {
    const auto seed = static_cast<std::uint32_t>(options.seed + static_cast<std::uint64_t>(i));
    const RandomProgram program(seed, program_dtype(options));
    std::string wrong;
    try {
      wrong = what_differs(run_twice(*device, program), bounded_run(program.graph(), program.inputs()));
    } catch (const Error& error) {
      wrong = error.what();
    }
    if (wrong.empty()) continue;
    ++failed;
    fmt::print("seed {}: {}\n  {}\n", seed, program.text(), wrong);
  }
  fmt::print("{} random programs on {}, {} failed\n", options.programs, info.id, failed);
  return failed == 0 ? 0 : 1;
}

int run(const Options& options) {
  if (options.programs > 0) return run_programs(options);
  if (options.list) {
    list(options);
    return 0;
  }
  if (!options.support.empty()) {
    fmt::print("{}", support_text(options.support));
    return 0;
  }
  DeviceInfo info = requested_device(options, process_manager());
  Results results;
  try {
    const std::string backend = options.backend.empty() ? info.backends.at(0) : options.backend;
    const std::shared_ptr<OpenDevice> device = open_device(backend, info);
    info = device->info();
    results = run_all(options, backend, *device, command_text(options, info.id));
  } catch (const Error& e) {
    if (e.code() != ErrorCode::unavailable) throw;
    results = all_unavailable(options, e);
  }
  if (options.matrix) fmt::print("{}\n", matrix_text(results));
  if (options.markdown) fmt::print("{}", markdown_text(results, info.id));
  fmt::print(options.markdown ? stderr : stdout, "{}", summary_text(results));
  bool passed = true;
  for (const auto& [key, verdict] : results) passed = passed && verdict.status != Status::fail;
  const Column column = column_of_run(options, results, info);
  if (!options.save.empty()) save(options.save, column);
  if (!options.check.empty()) {
    const std::string changed = differences(column, read_column(options.check));
    if (!changed.empty()) fmt::print("not what {} says:\n{}", options.check, changed);
    passed = passed && changed.empty();
  }
  return passed ? 0 : 1;
}

}  // namespace
}  // namespace tenon::conformance

int main(int argc, char** argv) {
  tenon::conformance::Options options;
  CLI::App app{"Runs every op of the catalogue on a device and compares with the reference interpreter."};
  app.add_option("--backend", options.backend, "a device of this backend, driven by it");
  app.add_option("--device", options.device, "this device, e.g. cpu:0 (default: cpu)");
  app.add_option("--op", options.ops, "these ops only");
  app.add_option("--dtype", options.dtypes, "these element types only");
  const CLI::Validator count(tenon::cli::in_range(1, 1'000'000), "");
  app.add_option("--case", options.only_case, "this case of each op and type only")
      ->check(CLI::Validator(tenon::cli::in_range(0, 1'000'000), ""));
  app.add_option("--every", options.every, "run one of this many cases only")->check(count);
  app.add_option("--sample", options.sample, "at most this many cases of each op and type")->check(count);
  app.add_option("--types", options.types, "at most this many element types of each op, different ones for the next op")
      ->check(count);
  app.add_flag("--elementwise", options.elementwise, "elementwise ops only");
  app.add_flag("--quick", options.quick, "fewer and smaller cases");
  app.add_flag("--matrix", options.matrix, "print the support matrix");
  app.add_flag("--markdown", options.markdown, "print docs/conformance.md");
  app.add_option("--save", options.save, "write what runs and what is refused to this file, or into it");
  app.add_option("--check", options.check, "fail if this file says otherwise");
  app.add_option("--support", options.support, "print docs/support.md from the files in this folder")
      ->check(CLI::ExistingDirectory);
  app.add_flag("--list", options.list, "list the cases");
  app.add_option("--level", options.level, "instruction set of the CPU backend: v2, v3, v4 (as TENON_ISA)");
  CLI::Option* const programs =
      app.add_option("--programs", options.programs, "run this many random programs of several ops instead, of the first --dtype")
          ->check(count);
  for (const char* const of_ops : {"--op", "--case", "--every", "--sample", "--types", "--elementwise", "--quick", "--matrix",
                                   "--markdown", "--save", "--check", "--support", "--list"})
    programs->excludes(app.get_option(of_ops));
  app.add_option("--seed", options.seed, "of the random values, or of the first random program (default: 1)");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return 0;
  } catch (const CLI::ParseError& e) {
    fmt::print(stderr, "tenon_conformance: {}\nsee tenon_conformance --help\n", e.what());
    return tenon::exit_status(tenon::ErrorCode::invalid_argument);
  }
  // Read once, when the backend opens.
  if (!options.level.empty()) setenv("TENON_ISA", options.level.c_str(), 1);
  try {
    return tenon::conformance::run(options);
  } catch (const tenon::Error& e) {
    fmt::print(stderr, "tenon_conformance: {}\n{}{}", e.what(), e.hint(), e.hint().empty() ? "" : "\n");
    return tenon::exit_status(e.code());
  }
}

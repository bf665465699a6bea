// tenon_conformance: every op of the catalogue on a device, against the reference.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>

#include "conformance/report.h"
#include "tenon/error.h"
#include "tenon/manager.h"

namespace tenon::conformance {
namespace {

struct Options {
  std::string backend, device;
  std::vector<std::string> ops, dtypes;
  bool matrix = false, markdown = false, list = false, quick = false, elementwise = false;
  std::optional<int> only_case;
  int every = 1;
  std::string level;
  std::uint64_t seed = 1;
};

std::vector<const OpInfo*> chosen_ops(const Options& options) {
  std::vector<const OpInfo*> ops;
  for (const std::string& name : options.ops) ops.push_back(&find_op(name));
  if (options.ops.empty())
    for (const OpInfo& op : all_ops())
      if (!options.elementwise || op.elementwise) ops.push_back(&op);
  return ops;
}

std::vector<DType> chosen_dtypes(const Options& options, const OpInfo& op) {
  if (options.dtypes.empty()) return op.dtypes;
  std::vector<DType> dtypes;
  for (const std::string& text : options.dtypes) {
    const std::optional<DType> dtype = parse_dtype(text);
    if (!dtype) throw Error(ErrorCode::invalid_argument, fmt::format("{} is not a dtype", text));
    if (std::find(op.dtypes.begin(), op.dtypes.end(), *dtype) != op.dtypes.end()) dtypes.push_back(*dtype);
  }
  return dtypes;
}

std::string device_wish(const Options& options, const DeviceManager& manager) {
  if (!options.device.empty()) return options.device;
  if (options.backend.empty()) return "cpu";
  for (const DeviceInfo& device : manager.devices())
    if (std::find(device.backends.begin(), device.backends.end(), options.backend) != device.backends.end()) return device.id;
  throw Error(ErrorCode::not_found, fmt::format("no device is driven by a backend {}", options.backend));
}

void list(const Options& options) {
  for (const OpInfo* op : chosen_ops(options))
    for (DType dtype : chosen_dtypes(options, *op))
      for (const Case& c : cases_for(*op, dtype, options.quick ? Extent::quick : Extent::full))
        fmt::print("{} {} {}: {}\n", op->name, name(dtype), c.number, c.label);
}

Results run_all(const Options& options, OpenDevice& device, std::string command) {
  Runner runner(device, {.seed = options.seed,
                         .extent = options.quick ? Extent::quick : Extent::full,
                         .only_case = options.only_case,
                         .every = options.every,
                         .command = std::move(command)});
  Results results;
  for (const OpInfo* op : chosen_ops(options))
    for (DType dtype : chosen_dtypes(options, *op)) results[{op->name, dtype}] = runner.run(*op, dtype);
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

int run(const Options& options) {
  if (options.list) {
    list(options);
    return 0;
  }
  const std::string wish = device_wish(options, process_manager());
  Results results;
  try {
    const std::shared_ptr<OpenDevice> device = process_manager().open(wish);
    results = run_all(options, *device, fmt::format("tenon_conformance --device {}{}", wish, options.quick ? " --quick" : ""));
  } catch (const Error& e) {
    if (e.code() != ErrorCode::unavailable) throw;
    results = all_unavailable(options, e);
  }
  if (options.matrix) fmt::print("{}\n", matrix_text(results));
  if (options.markdown) fmt::print("{}", markdown_text(results, wish));
  fmt::print(options.markdown ? stderr : stdout, "{}", summary_text(results));
  bool passed = true;
  for (const auto& [key, verdict] : results) passed = passed && verdict.status != Status::fail;
  return passed ? 0 : 1;
}

}  // namespace
}  // namespace tenon::conformance

int main(int argc, char** argv) {
  tenon::conformance::Options options;
  CLI::App app{"Runs every op of the catalogue on a device and compares with the reference interpreter."};
  app.add_option("--backend", options.backend, "a device of this backend");
  app.add_option("--device", options.device, "this device, e.g. cpu:0 (default: cpu)");
  app.add_option("--op", options.ops, "these ops only");
  app.add_option("--dtype", options.dtypes, "these element types only");
  app.add_option("--case", options.only_case, "this case of each op and type only");
  app.add_option("--every", options.every, "one of so many cases only")->check(CLI::PositiveNumber);
  app.add_flag("--elementwise", options.elementwise, "elementwise ops only");
  app.add_flag("--quick", options.quick, "fewer and smaller cases");
  app.add_flag("--matrix", options.matrix, "print the support matrix");
  app.add_flag("--markdown", options.markdown, "print docs/conformance.md");
  app.add_flag("--list", options.list, "list the cases");
  app.add_option("--level", options.level, "instruction set of the CPU backend: v2, v3, v4 (as TENON_ISA)");
  app.add_option("--seed", options.seed, "of the random values (default: 1)");
  CLI11_PARSE(app, argc, argv);
  // Read once, when the backend opens.
  if (!options.level.empty()) setenv("TENON_ISA", options.level.c_str(), 1);
  try {
    return tenon::conformance::run(options);
  } catch (const tenon::Error& e) {
    fmt::print(stderr, "tenon_conformance: {}\n{}{}", e.what(), e.hint(), e.hint().empty() ? "" : "\n");
    return tenon::exit_status(e.code());
  }
}

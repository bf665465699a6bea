#include <fmt/format.h>

#include <memory>
#include <stop_token>

#include "base/text/units.h"
#include "cli/commands/commands.h"
#include "cli/inputs/inputs.h"
#include "cli/json.h"
#include "cli/measure.h"
#include "cli/option_checks.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/progress_talk.h"
#include "graph/work.h"
#include "ops/names.h"
#include "present/device/device.h"
#include "tenon/error.h"
#include "tenon/manager.h"

namespace tenon::cli {
namespace {

constexpr const char* kExamples =
    R"("compute" runs the compiled program on tensors that are already on the device; "end to end" also
looks up the program, uploads the inputs and downloads the results. Bytes are those of the inputs
and outputs, operations are those of the graph, each counted once.

Examples:
  tenon bench 'gelu(a * b + 0.5)' a='rand([1000000])' b='rand([1000000])'
  tenon bench 'a @ b' a='rand([1024, 1024])' b='rand([1024, 1024])' --seconds 3 --json)";

struct BenchArguments {
  std::string expression;
  std::vector<std::string> inputs;
  std::string dtype, device = "auto";
  double seconds = 1;
};

Measurement measure_compute(OpenDevice& device, const Graph& graph, std::span<const HostArray> arrays, double seconds,
                            const std::stop_token& stop, const std::function<void(double)>& progress) {
  const std::unique_ptr<Executable> program = device.compile(graph);
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<const Buffer*> inputs;
  std::vector<Buffer*> outputs;
  for (const HostArray& array : arrays) {
    buffers.push_back(device.upload(array));
    inputs.push_back(buffers.back().get());
  }
  for (const TensorType& type : program->output_types()) {
    buffers.push_back(device.allocate(type));
    outputs.push_back(buffers.back().get());
  }
  const auto work = [&] {
    if (stop.stop_requested()) throw Error(ErrorCode::cancelled, "the measurement was interrupted");
    program->run(std::span<const Buffer* const>(inputs), std::span<Buffer* const>(outputs));
  };
  return measure(work, seconds, progress);
}

void write(JsonWriter& json, const char* name, const Measurement& m, const Cost& work) {
  json.key(name).begin_object();
  json.member("median_seconds", m.median_seconds);
  json.member("p10_seconds", m.p10_seconds);
  json.member("p90_seconds", m.p90_seconds);
  json.member("samples", m.samples);
  json.member("calls", m.calls);
  json.member("bytes_per_second", static_cast<double>(work.bytes_read + work.bytes_written) / m.median_seconds);
  json.member("flops_per_second", work.flops / m.median_seconds);
  json.end_object();
}

std::string row(const char* label, const Measurement& m, const Cost& work) {
  return fmt::format("{:<12}{:>10}   {:>10} to {:<10}{:>12}   {:>14}   {:>8} calls\n", label, format_seconds(m.median_seconds),
                     format_seconds(m.p10_seconds), format_seconds(m.p90_seconds),
                     format_rate(static_cast<double>(work.bytes_read + work.bytes_written) / m.median_seconds, "B/s"),
                     format_rate(work.flops / m.median_seconds, "FLOP/s"), m.calls);
}

struct Measured {
  DeviceInfo device;
  Measurement compute, whole;
};

Measured measure_both(const BenchArguments& arguments, const Graph& graph, const std::vector<HostArray>& arrays,
                      Interrupt& interrupt, const Session& session) {
  DeviceManager& manager = process_manager();
  LeaseOptions requested;
  requested.device = arguments.device;
  requested.cancel = interrupt.token();
  ProgressTalk talk(session.console);
  requested.on_wait = [&](const QueuePlace& place) { talk.waiting(requested.device, place); };
  const std::shared_ptr<OpenDevice> device = manager.open(requested);
  const double half = arguments.seconds / 2;
  Measured measured{.device = device->info(), .compute = {}, .whole = {}};
  measured.compute = measure_compute(*device, graph, arrays, half, requested.cancel, talk.measuring("compute"));
  RunOptions options;
  options.device = measured.device.id;
  options.cancel = interrupt.token();
  measured.whole = measure([&] { manager.run(graph, arrays, options); }, half, talk.measuring("end to end"));
  return measured;
}

int bench(const BenchArguments& arguments, const Session& session) {
  std::optional<DType> dtype;
  if (!arguments.dtype.empty()) dtype = dtype_named(arguments.dtype);
  const std::vector<Input> inputs = parse_inputs(arguments.inputs, dtype);
  const Graph graph = parse_program(arguments.expression, inputs, dtype);
  const std::vector<HostArray> arrays = arrays_of(inputs);
  const Cost work = cost(graph);

  Interrupt interrupt(nothing_needs_closing);
  Measured measured;
  try {
    measured = measure_both(arguments, graph, arrays, interrupt, session);
  } catch (const Error& error) {
    if (interrupt.exit_status() == 0 || error.code() != ErrorCode::cancelled) throw;
    return interrupt.exit_status();
  }
  const auto& [device, compute, whole] = measured;

  std::ostream& out = session.console.out;
  if (session.json) {
    print_document(out, 2, [&](JsonWriter& json) {
      json.member("expression", arguments.expression);
      json.key("device");
      present::write_device_brief(json, measured.device);
      json.member("bytes_read", work.bytes_read);
      json.member("bytes_written", work.bytes_written);
      json.member("flops", work.flops);
      write(json, "compute", measured.compute, work);
      write(json, "end_to_end", measured.whole, work);
    });
    return 0;
  }
  const std::string head =
      fmt::format("{:<12}{:>10}   {:>10}    {:<10}{:>12}   {:>14}", "", "median", "p10", "p90", "moved", "computed");
  out << session.console.bold(head) << '\n' << row("compute", compute, work) << row("end to end", whole, work);
  out << session.console.dim(fmt::format("on {}, {} read, {} written, {} per call", device.id,
                                         format_bytes(static_cast<double>(work.bytes_read)),
                                         format_bytes(static_cast<double>(work.bytes_written)), format_rate(work.flops, "FLOP")))
      << '\n';
  return 0;
}

}  // namespace

void add_bench_command(Command& app, Session& session) {
  auto arguments = std::make_shared<BenchArguments>();
  Command* command = app.add_subcommand("bench", "Measure an expression: compute only and end to end");
  command->add_option("expression", arguments->expression, "Expression to measure, e.g. 'a @ b'")->required()->type_name("EXPR");
  command->add_option("inputs", arguments->inputs, "Values of its names, as for tenon run")->type_name("NAME=VALUE");
  command->add_option("--dtype", arguments->dtype, "dtype of inputs given as values, float literals and created tensors")
      ->type_name("DTYPE");
  command->add_option("--device", arguments->device, "Device to use: auto, a kind (cpu) or an id (cpu:0)")->type_name("DEVICE");
  command->add_option("--seconds", arguments->seconds, "Total measuring time")->check(in_range(0.001, 3600.0))->type_name("S");
  add_output_options(*command, session);
  command->footer(kExamples);
  command->callback([arguments, &session] { session.action = [arguments, &session] { return bench(*arguments, session); }; });
}

}  // namespace tenon::cli

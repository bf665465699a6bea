#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <stop_token>

#include "base/text/units.h"
#include "cli/commands/commands.h"
#include "cli/inputs/inputs.h"
#include "cli/json.h"
#include "cli/option_checks.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/plot.h"
#include "cli/terminal/progress_talk.h"
#include "cli/terminal/svg_file.h"
#include "manager/device_owners.h"
#include "manager/routing/tuning.h"
#include "ops/names.h"
#include "present/device/device.h"
#include "tenon/error.h"
#include "tenon/manager.h"
#include "tenon/manager/batch.h"

namespace tenon::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kNotes =
    R"(Starting from 1, the batch is doubled on the device itself. The time of a batch is upload, compute
and download of one run, the fastest of a few. The first input and all inputs with the same number
of rows grow with the batch, or those named by --grow; their values are repeated. The knee is the
smallest batch with at least 90 % of the best throughput.

Examples:
  tenon tune 'relu(x @ w)' x='rand([1, 512])' w='rand([512, 512])'
  tenon tune 'softmax(x)' x='rand([1, 4096])' --latency 0.005 --svg curve.svg
  tenon tune 'x @ w' x='rand([1, 64])' w='rand([64, 64])' --device gpu --memory-budget 1GiB --json)";

struct TuneArguments {
  std::string expression;
  std::vector<std::string> inputs, grow;
  std::string dtype, device = "auto", svg;
  int axis = 0;
  std::optional<std::uint64_t> memory_bytes;
  std::optional<double> latency_seconds;
  std::int64_t max_batch = 1 << 20;
  double seconds = 10;
};

// |array| with |extent| slices along |axis|, its own repeated.
HostArray repeated(const HostArray& array, int axis, std::int64_t extent) {
  if (is_block(array.dtype())) return repeated(array.cast(DType::f32), axis, extent).cast(array.dtype());
  const Shape& shape = array.shape();
  HostArray grown = HostArray::empty(array.dtype(), shape.with(axis, extent));
  std::size_t outer = 1;
  for (int i = 0; i < axis; ++i) outer *= static_cast<std::size_t>(shape[i]);
  const std::size_t have = static_cast<std::size_t>(shape[axis]), want = static_cast<std::size_t>(extent);
  const std::size_t slice = array.bytes() / (outer * have);
  std::byte* to = grown.mutable_data();
  for (std::size_t o = 0; o < outer; ++o)
    for (std::size_t i = 0; i < want; i += have) {
      const std::size_t count = std::min(have, want - i) * slice;
      std::memcpy(to, array.data() + o * have * slice, count);
      to += count;
    }
  return grown;
}

// The program and its inputs for any batch.
class Subject {
 public:
  Subject(const TuneArguments& arguments)
      : arguments_(arguments),
        inputs_(parse_inputs(arguments.inputs, dtype())),
        grows_(inputs_.size()) {
    if (inputs_.empty())
      throw Error(ErrorCode::invalid_argument, "no input can grow with the batch: the expression has no inputs",
                  "give one, e.g. x='rand([1, 64])'");
    for (const std::string& name : arguments_.grow) mark(name);
    if (arguments_.grow.empty()) mark_by_rows();
  }

  std::vector<Input> inputs(std::int64_t batch) const {
    std::vector<Input> grown = inputs_;
    for (std::size_t i = 0; i < grown.size(); ++i)
      if (grows_[i]) grown[i].array = repeated(grown[i].array, arguments_.axis, batch);
    return grown;
  }
  Graph graph(const std::vector<Input>& inputs) const { return parse_program(arguments_.expression, inputs, dtype()); }
  // Of inputs and results, from shapes alone.
  std::uint64_t bytes(std::int64_t batch) const {
    std::vector<NamedType> types;
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const HostArray& array = inputs_[i].array;
      types.push_back({inputs_[i].name, array.dtype(), grows_[i] ? array.shape().with(arguments_.axis, batch) : array.shape()});
      total += storage_bytes(types.back().dtype, types.back().shape);
    }
    const std::optional<DType> wanted = dtype();
    ExpressionOptions options;
    if (wanted && is_float(*wanted)) options.default_float = *wanted;
    const Graph program = parse_expression(arguments_.expression, types, options);
    for (const NodeId id : program.outputs()) total += storage_bytes(program[id].dtype, program[id].shape);
    return total;
  }
  std::vector<std::string> growing() const {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      if (grows_[i]) names.push_back(inputs_[i].name);
    return names;
  }

 private:
  std::optional<DType> dtype() const {
    return arguments_.dtype.empty() ? std::nullopt : std::optional(dtype_named(arguments_.dtype));
  }
  bool can_grow(const HostArray& array) const {
    return array.shape().rank() > arguments_.axis && array.shape()[arguments_.axis] > 0 && array.elements() > 0;
  }
  void mark(const std::string& name) {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i].name != name) continue;
      if (!can_grow(inputs_[i].array)) refuse(inputs_[i]);
      grows_[i] = true;
      return;
    }
    throw Error(ErrorCode::invalid_argument, fmt::format("--grow {}: no input has this name", name));
  }
  void mark_by_rows() {
    if (!can_grow(inputs_[0].array)) refuse(inputs_[0]);
    const std::int64_t have = inputs_[0].array.shape()[arguments_.axis];
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      grows_[i] = can_grow(inputs_[i].array) && inputs_[i].array.shape()[arguments_.axis] == have;
  }
  [[noreturn]] void refuse(const Input& input) const {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{} has shape {} and cannot grow along axis {}", input.name, to_string(input.array.shape()), arguments_.axis),
        "choose another --batch-axis, or name the inputs that grow with --grow");
  }

  const TuneArguments& arguments_;
  std::vector<Input> inputs_;
  std::vector<bool> grows_;
};

double moving_and_computing(const Timeline& timeline) {
  double seconds = 0;
  for (const Span& span : timeline)
    if (span.stage == "uploading" || span.stage == "computing" || span.stage == "downloading") seconds += span.seconds;
  return seconds;
}

// The fastest of at least three runs, of more where they are short.
double measure(const Subject& subject, std::int64_t batch, const RunOptions& options) {
  constexpr auto kEnough = std::chrono::milliseconds(50);
  const std::vector<Input> inputs = subject.inputs(batch);
  const Graph graph = subject.graph(inputs);
  const std::vector<HostArray> arrays = arrays_of(inputs);
  double best = std::numeric_limits<double>::infinity();
  const Clock::time_point begin = Clock::now();
  for (int runs = 0; runs < 3 || (Clock::now() - begin < kEnough && runs < 1000); ++runs)
    best = std::min(best, moving_and_computing(process_manager().run(graph, arrays, options).timeline));
  return best;
}

std::string format_rows(double value) { return format_rate(value, "/s"); }

Curve curve_of(const TuneArguments& arguments, const DeviceInfo& device, const TuneResult& result) {
  Curve curve;
  curve.title = fmt::format("{} on {}", arguments.expression, device.id);
  curve.x_label = "batch";
  curve.y_label = "rows per second";
  curve.second_label = "seconds per batch";
  for (const TunePoint& point : result.points) {
    curve.points.push_back({static_cast<double>(point.batch), point.rows_per_second()});
    curve.second.push_back({static_cast<double>(point.batch), point.seconds});
  }
  curve.mark = static_cast<double>(result.knee().batch);
  curve.format_y = format_rows;
  curve.format_second = format_seconds;
  return curve;
}

void write(JsonWriter& json, const TunePoint& point) {
  json.begin_object();
  json.member("batch", point.batch);
  json.member("seconds", point.seconds);
  json.member("rows_per_second", point.rows_per_second());
  json.member("bytes", point.bytes);
  json.end_object();
}

void print_json(const TuneArguments& arguments, const DeviceInfo& device, const Subject& subject, const TuneResult& result,
                const BatchConfig& rule, std::ostream& out) {
  print_document(out, 2, [&](JsonWriter& json) {
    json.member("expression", arguments.expression);
    json.key("device");
    present::write_device_brief(json, device);
    json.member("batch_axis", arguments.axis);
    json.list("growing", subject.growing());
    json.key("points").begin_array();
    for (const TunePoint& point : result.points) write(json, point);
    json.end_array();
    json.key("knee");
    write(json, result.knee());
    json.key("fastest");
    write(json, result.fastest());
    json.member("stopped", result.stopped);
    json.member("rule_of_thumb", rule.batch_size);
  });
}

void print_text(const TuneArguments& arguments, const DeviceInfo& device, const TuneResult& result, const BatchConfig& rule,
                const Console& console) {
  std::ostream& out = console.out;
  out << console.bold(fmt::format("{:>9}{:>12}{:>14}{:>12}", "BATCH", "SECONDS", "ROWS", "MEMORY")) << '\n';
  for (const TunePoint& point : result.points) {
    const bool is_knee = &point == &result.knee();
    const std::string row =
        fmt::format("{:>9}{:>12}{:>14}{:>12}{}", point.batch, format_seconds(point.seconds), format_rows(point.rows_per_second()),
                    format_bytes(static_cast<double>(point.bytes)), is_knee ? "  <- knee" : "");
    out << (is_knee ? console.bold(row) : row) << '\n';
  }
  out << '\n' << plot_text(curve_of(arguments, device, result), std::min(console.width, 80), 14, !console.is_utf8()) << '\n';
  const TunePoint &knee = result.knee(), &fastest = result.fastest();
  out << fmt::format("Use a batch of {}: {}, {:.0f} % of the best, {} per batch.\n", knee.batch,
                     format_rows(knee.rows_per_second()), 100 * knee.rows_per_second() / fastest.rows_per_second(),
                     format_seconds(knee.seconds));
  out << console.dim(
             fmt::format("stopped: {}; the rule of thumb for a {} is {}", result.stopped, name(device.kind), rule.batch_size))
      << '\n';
}

TuneResult find_on(const Lease& lease, const TuneArguments& arguments, const Subject& subject, const std::stop_token& stop,
                   ProgressTalk& talk) {
  RunOptions options;
  options.device = lease.device().id;
  options.cancel = stop;
  const Clock::time_point begin = Clock::now();
  TuneLimits limits;
  limits.memory_bytes = std::min(memory_budget_of(process_manager().config(), lease.device()).value_or(limits.memory_bytes),
                                 arguments.memory_bytes.value_or(limits.memory_bytes));
  limits.latency_seconds = arguments.latency_seconds;
  limits.max_batch = arguments.max_batch;
  limits.is_over = [&] { return std::chrono::duration<double>(Clock::now() - begin).count() > arguments.seconds; };
  TuneSubject tried;
  tried.measure = [&](std::int64_t batch) { return measure(subject, batch, options); };
  tried.bytes_of = [&](std::int64_t batch) { return subject.bytes(batch); };
  tried.on_begin = [&](std::int64_t batch) { talk.measuring_batch(batch); };
  return find_batch_size(tried, limits);
}

int tune(const TuneArguments& arguments, const Session& session) {
  const Subject subject(arguments);
  DeviceManager& manager = process_manager();
  const Graph smallest = subject.graph(subject.inputs(1));  // what is wrong with it is said before a device is opened
  SvgFile svg(arguments.svg);
  Interrupt interrupt(nothing_needs_closing);
  LeaseOptions requested;
  requested.device = manager.explain(smallest, arguments.device).device.id;
  requested.cancel = interrupt.token();
  ProgressTalk talk(session.console);
  requested.on_wait = [&](const QueuePlace& place) { talk.waiting(requested.device, place); };
  Lease lease;
  TuneResult result;
  try {
    lease = manager.lease(requested);
    result = find_on(lease, arguments, subject, requested.cancel, talk);
  } catch (const Error& error) {
    if (interrupt.exit_status() != 0 && error.code() == ErrorCode::cancelled) return interrupt.exit_status();
    throw;
  }
  talk.clear();

  const DeviceInfo& device = lease.device();
  const BatchConfig rule = batch_config(device.kind, 1, manager.config());
  if (session.json)
    print_json(arguments, device, subject, result, rule, session.console.out);
  else
    print_text(arguments, device, result, rule, session.console);
  if (!svg.is_wanted()) return 0;
  svg.save(curve_of(arguments, device, result));
  if (!session.json) session.console.out << "saved to " << arguments.svg << '\n';
  return 0;
}

}  // namespace

void add_tune_command(Command& app, Session& session) {
  auto arguments = std::make_shared<TuneArguments>();
  Command* command = app.add_subcommand("tune", "Find the batch size that keeps a device busy");
  command->add_option("expression", arguments->expression, "Expression to compute for each batch, e.g. 'relu(x @ w)'")
      ->required()
      ->type_name("EXPR");
  command->add_option("inputs", arguments->inputs, "Values of its names, as for tenon run")->type_name("NAME=VALUE");
  command->add_option("--batch-axis", arguments->axis, "Axis that grows with the batch")
      ->check(in_range(0, kMaxRank - 1))
      ->type_name("AXIS");
  command->add_option("--grow", arguments->grow, "Input that grows with the batch; may be repeated")
      ->may_repeat()
      ->type_name("NAME");
  command->add_option("--dtype", arguments->dtype, "dtype of inputs given as values, float literals and created tensors")
      ->type_name("DTYPE");
  command->add_option("--device", arguments->device, "Device to use: auto, a kind (cpu) or an id (cpu:0)")->type_name("DEVICE");
  command->add_option("--memory-budget", arguments->memory_bytes, "Maximum memory of a batch, e.g. 512MiB")
      ->transform(size_in_bytes())
      ->type_name("BYTES");
  command->add_option("--latency", arguments->latency_seconds, "Maximum time of a batch in seconds")
      ->check(in_range(1e-9, 1e6))
      ->type_name("SECONDS");
  command->add_option("--max-batch", arguments->max_batch, "Largest batch to try")
      ->check(in_range(std::int64_t{1}, std::int64_t{1} << 40))
      ->type_name("N");
  command->add_option("--seconds", arguments->seconds, "Maximum measuring time in seconds")
      ->check(in_range(0.001, 3600.0))
      ->type_name("S");
  command->add_option("--svg", arguments->svg, "Save the curve as SVG")->type_name("FILE");
  add_output_options(*command, session);
  command->footer(kNotes);
  command->callback([arguments, &session] { session.action = [arguments, &session] { return tune(*arguments, session); }; });
}

}  // namespace tenon::cli

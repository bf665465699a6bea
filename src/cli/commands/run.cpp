#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "array/format_array.h"
#include "base/units.h"
#include "cli/application.h"
#include "cli/commands/commands.h"
#include "cli/explain.h"
#include "cli/inputs.h"
#include "cli/json.h"
#include "cli/option_checks.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/progress_talk.h"
#include "reference/comparison.h"
#include "reference/reference.h"
#include "tenon/error.h"
#include "tenon/io.h"
#include "tenon/manager.h"

namespace tenon::cli {
namespace {

namespace json = boost::json;

constexpr const char* kExamples = R"(Inputs:
  name=VALUE             a number, a literal [[1, 2], [3, 4]], or an expression such as rand([8, 8], seed=1)
  name=@FILE.npy         a NumPy file
  name=@FILE.safetensors the only tensor of the file; FILE.safetensors:TENSOR chooses one

--compare: an element matches within 16 units in the last place (2 for 16-bit and block formats), or
within 2^-15 of the largest value (1e-10 for float64); integers and bools must be equal.

Examples:
  tenon run '1 + 1'
  tenon run 'gelu(a @ b + 0.5)' a='[[1, 2], [3, 4]]' b='[[0.5], [0.25]]'
  tenon run 'elu(-1, 2)' --dtype bfloat16
  tenon run 't = x * x; t / sum(t)' x='randn([1000], seed=7)' --compare
  tenon run 'values, indices = top_k(x, 3); values, indices' x='[3, 1, 4, 1, 5]' --json)";

constexpr std::size_t kMaxProgramName = 80;  // of an expression, in the ledger

struct RunArguments {
  std::string expression;
  std::vector<std::string> inputs;
  std::string output, dtype, device = "auto";
  int repeat = 1;
  std::optional<double> timeout_seconds;
  bool compare = false, explain = false;
};

void check_output(const std::string& path, std::size_t results) {
  if (path.empty()) return;
  if (path.ends_with(".safetensors")) return;
  if (!path.ends_with(".npy"))
    throw Error(ErrorCode::invalid_argument, fmt::format("cannot tell the format of '{}'", path), "name it .npy or .safetensors");
  if (results != 1)
    throw Error(ErrorCode::invalid_argument, fmt::format("a .npy file holds one tensor, the result has {}", results),
                "name it .safetensors");
}

void save(const std::string& path, const std::vector<HostArray>& outputs) {
  if (path.ends_with(".npy")) return save_npy(path, outputs[0]);
  ArrayFile file;
  for (std::size_t i = 0; i < outputs.size(); ++i)
    file.arrays.emplace(outputs.size() == 1 ? "result" : fmt::format("result{}", i), outputs[i]);
  save_safetensors(path, file);
}

std::vector<Comparison> compare_all(const Graph& graph, std::span<const HostArray> inputs, const RunResult& result) {
  const std::vector<std::vector<double>> reference = reference_doubles(graph, inputs);
  std::vector<Comparison> comparisons;
  for (std::size_t i = 0; i < result.outputs.size(); ++i) comparisons.push_back(compare(result.outputs[i], reference[i]));
  return comparisons;
}

json::object to_json(const Comparison& c) {
  const auto number = [](double value) { return std::isfinite(value) ? json::value(value) : json::value("Infinity"); };
  return {{"max_abs", number(c.max_abs)},
          {"max_rel", number(c.max_rel)},
          {"max_ulp", number(c.max_ulp)},
          {"mismatches", c.mismatches},
          {"matches", c.mismatches == 0}};
}

json::object result_json(const HostArray& array, const Comparison* comparison) {
  json::array shape(array.shape().begin(), array.shape().end());
  json::object object{{"shape", std::move(shape)}, {"dtype", name(array.dtype())}, {"values", cli::to_json(array)}};
  if (comparison != nullptr) object["comparison"] = to_json(*comparison);
  return object;
}

void print_json(std::ostream& out, const RunResult& result, const std::vector<Comparison>& comparisons, bool explain) {
  json::object document{{"schema", 1}};
  const auto comparison = [&](std::size_t i) { return comparisons.empty() ? nullptr : &comparisons[i]; };
  if (result.outputs.size() == 1) {
    for (auto& member : result_json(result.outputs[0], comparison(0))) document[member.key()] = std::move(member.value());
  } else {
    json::array results;
    for (std::size_t i = 0; i < result.outputs.size(); ++i) results.push_back(result_json(result.outputs[i], comparison(i)));
    document["results"] = std::move(results);
  }
  document["device"] = cli::to_json(result.device);
  json::array timeline;
  for (const Span& span : result.timeline)
    timeline.push_back({{"stage", span.stage}, {"start_seconds", span.start_seconds}, {"seconds", span.seconds}});
  document["timeline"] = std::move(timeline);
  if (explain) document["routing"] = explanation_json(*result.decision);
  out << to_text(document);
}

std::string comparison_text(const Comparison& c, const HostArray& array) {
  if (!is_float(array.dtype()) && c.mismatches == 0) return "compared with the reference: equal";
  return fmt::format("compared with the reference: max abs {:.3g}, max rel {:.3g}, max {:.3g} ULP: {}", c.max_abs, c.max_rel,
                     c.max_ulp, c.mismatches == 0 ? "match" : fmt::format("{} of {} differ", c.mismatches, array.elements()));
}

// |finish| is called when the values are printed: what the device still does then is in the last line.
void print_text(const Console& console, RunResult& result, const std::vector<Comparison>& comparisons, const std::string& saved,
                const std::function<void()>& finish) {
  const ArrayStyle style{.width = console.width};
  for (std::size_t i = 0; i < result.outputs.size(); ++i) {
    const HostArray& array = result.outputs[i];
    if (saved.empty()) console.out << format_array(array, style) << '\n';
    const bool last = i + 1 == result.outputs.size();
    std::string line = fmt::format("{} {}", to_string(array.shape()), name(array.dtype()));
    if (last) {
      console.out << std::flush;
      finish();
      line += fmt::format(" on {}", result.device.id);
      for (const Span& span : result.timeline)
        if (span.seconds > 0) line += fmt::format(", {} {}", span.stage, format_seconds(span.seconds));
    }
    console.out << console.dim(line) << '\n';
    if (!comparisons.empty()) console.out << comparison_text(comparisons[i], array) << '\n';
    if (!last && saved.empty()) console.out << '\n';
  }
  if (!saved.empty()) console.out << "saved to " << saved << '\n';
}

int run(const RunArguments& arguments, const Session& session) {
  std::optional<DType> dtype;
  if (!arguments.dtype.empty()) dtype = parse_dtype_option(arguments.dtype);
  const std::vector<Input> inputs = parse_inputs(arguments.inputs, dtype);
  const Graph graph = parse_program(arguments.expression, inputs, dtype);
  check_output(arguments.output, graph.outputs().size());

  const std::vector<HostArray> arrays = arrays_of(inputs);
  RunOptions options;
  options.device = arguments.device;
  options.repeat = arguments.repeat;
  options.program = arguments.expression.substr(0, kMaxProgramName);
  if (arguments.timeout_seconds)
    options.timeout =
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(*arguments.timeout_seconds));
  options.explain = arguments.explain;
  if (arguments.explain && !session.json)
    options.on_decision = [&](const Decision& decision) {
      session.console.out << explanation(decision, session.console) << '\n' << std::flush;
    };
  Interrupt interrupt(nothing_needs_closing);
  options.cancel = interrupt.token();
  ProgressTalk talk(session.console);
  options.on_progress = [&](const Progress& progress) { talk.stage(progress); };
  RunResult result;
  try {
    result = process_manager().run(graph, arrays, options);
  } catch (const Error& error) {
    if (interrupt.exit_status() == 0 || error.code() != ErrorCode::cancelled) throw;
    return interrupt.exit_status();
  }
  std::vector<Comparison> comparisons;
  if (arguments.compare) comparisons = compare_all(graph, arrays, result);
  if (!arguments.output.empty()) save(arguments.output, result.outputs);

  // The command ends now, so the device closes whatever the policy; that is part of what the run took.
  const auto close = [&] { process_manager().close_after(result); };
  if (session.json) {
    close();
    print_json(session.console.out, result, comparisons, arguments.explain);
  } else {
    print_text(session.console, result, comparisons, arguments.output, close);
  }
  for (const Comparison& comparison : comparisons)
    if (comparison.mismatches > 0) return kExitMismatch;
  return 0;
}

}  // namespace

void add_run_command(Command& app, Session& session) {
  auto arguments = std::make_shared<RunArguments>();
  Command* command = app.add_subcommand("run", "Compute an expression and print the result");
  command->add_option("expression", arguments->expression, "What to compute, e.g. 'gelu(a @ b + 0.5)'")
      ->transform(as_typed())
      ->required()
      ->type_name("EXPR");
  command->add_option("inputs", arguments->inputs, "Values of the names in it: name=VALUE or name=@file.npy")
      ->type_name("NAME=VALUE");
  command->add_option("-o,--output", arguments->output, "Save the result as .npy or .safetensors instead of printing it")
      ->type_name("FILE");
  command->add_option("--dtype", arguments->dtype, "dtype of inputs given as values, of float literals and of created tensors")
      ->type_name("DTYPE");
  command->add_option("--device", arguments->device, "auto, a kind (cpu), or an id (cpu:0)")->type_name("DEVICE");
  command->add_option("--repeat", arguments->repeat, "Compute N times and report the fastest")
      ->check(in_range(1, 1'000'000))
      ->type_name("N");
  command->add_option("--timeout", arguments->timeout_seconds, "Give up waiting for the device after this time; exit 4")
      ->check(in_range(0.0, 1e9))
      ->type_name("SECONDS");
  command->add_flag("--explain", arguments->explain, "Say what each device would take, and why one was chosen");
  command->add_flag("--compare", arguments->compare, "Compare with the double-precision reference; exit 5 if they differ");
  add_output_options(*command, session);
  command->footer(kExamples);
  command->callback([arguments, &session] { session.action = [arguments, &session] { return run(*arguments, session); }; });
}

}  // namespace tenon::cli

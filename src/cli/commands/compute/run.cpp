#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "array/format_array.h"
#include "cli/application.h"
#include "cli/commands/commands.h"
#include "cli/inputs/inputs.h"
#include "cli/json.h"
#include "cli/mesh_run.h"
#include "cli/option_checks.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/progress_talk.h"
#include "expression/result_names.h"
#include "ops/names.h"
#include "present/device/device.h"
#include "present/mesh.h"
#include "present/route.h"
#include "present/run.h"
#include "present/tensor/comparison.h"
#include "present/tensor/tensor.h"
#include "tenon/array/io.h"
#include "tenon/error.h"
#include "tenon/manager.h"

namespace tenon::cli {
namespace {

constexpr const char* kExamples = R"(Inputs:
  name=VALUE             a number, a literal [[1, 2], [3, 4]], or an expression such as rand([8, 8], seed=1)
  name=@FILE.npy         a NumPy file
  name=@FILE.safetensors the only tensor of the file; FILE.safetensors:TENSOR selects one; .npz likewise
  name=@FILE.csv         rows of numbers
  name='tensor([1, 2])'  what PyTorch, NumPy or JAX print, and rows of numbers: '1 2; 3 4'

@FILE.tenon instead of an expression: a program that Program::save, or Program.save of the Python package,
wrote. Its inputs have the names of the function's arguments.

--compare: an element matches if it is within 16 ULP (2 for 16-bit and block formats), or
within 2^-15 of the largest value (1e-10 for float64); integers and bools must be equal.

Examples:
  tenon run '1 + 1'
  tenon run 'gelu(a @ b + 0.5)' a='[[1, 2], [3, 4]]' b='[[0.5], [0.25]]'
  tenon run 'elu(-1, 2)' --dtype bfloat16
  tenon run 't = x * x; t / sum(t)' x='randn([1000], seed=7)' --compare
  tenon run 'values, indices = top_k(x, 3); values, indices' x='[3, 1, 4, 1, 5]' --json
  tenon run 'x @ w' x='randn([8, 64])' w='randn([64, 32])' --sim gpu --sim gpu --mesh m=2 --shard x=-,m --shard w=m,- --explain
  tenon run @step.tenon x=@batch.npy scale=0.5
  mpirun -n 4 tenon run 'x @ w' x=@x.npy w=@w.npy --mesh data=4 --shard x=data,-)";

constexpr std::size_t kMaxProgramName = 80;  // of an expression, in the ledger

struct RunArguments {
  std::string expression;
  std::vector<std::string> inputs;
  std::string output, dtype, device = "auto", routing, prefer;
  int repeat = 1;
  std::optional<double> timeout_seconds;
  bool compare = false, explain = false;
  MeshArguments mesh;
};

void check_output(const std::string& path, std::size_t results) {
  if (path.empty() || path.ends_with(".safetensors") || path.ends_with(".npz")) return;
  if (!path.ends_with(".npy") && !path.ends_with(".csv"))
    throw Error(ErrorCode::invalid_argument, fmt::format("cannot tell the file format of '{}'", path),
                "use a name that ends in .npy, .npz, .safetensors or .csv");
  if (results != 1)
    throw Error(ErrorCode::invalid_argument, fmt::format("this file can store one tensor, but there are {} results", results),
                "use a name that ends in .npz or .safetensors");
}

void write_result(JsonWriter& json, const HostArray& array, const Compared* compared, double reference_seconds) {
  present::write_type(json, array.dtype(), array.shape());
  present::write_size(json, array.dtype(), array.shape());
  json.key("values");
  present::write_values(json, array);
  if (compared == nullptr) return;
  json.key("comparison");
  present::write_comparison(json, array, *compared, reference_seconds);
}

void write(JsonWriter& json, const RunArguments& arguments, const RunResult& result, const std::vector<std::string>& names,
           const ComparedResults& compared) {
  const auto write_one = [&](std::size_t i) {
    write_result(json, result.outputs[i], compared.results.empty() ? nullptr : &compared.results[i], compared.reference_seconds);
  };
  if (result.outputs.size() == 1) {
    write_one(0);
  } else {
    json.key("results").begin_array();
    for (std::size_t i = 0; i < result.outputs.size(); ++i) {
      json.begin_object();
      json.member("name", names[i]);
      write_one(i);
      json.end_object();
    }
    json.end_array();
  }
  json.key("device");
  present::write_device_brief(json, *result.device);
  json.key("timeline");
  present::write_timeline(json, result.timeline);
  present::write_cost(json, cost_of(result, process_manager().config()));
  if (!arguments.explain || !result.decision) return;
  json.key("route");
  present::write_route(json, arguments.device, *result.decision);
}

// |finish| is called when the values are printed: what the device still does then is in the last line.
void print_text(const Console& console, RunResult& result, const std::vector<std::string>& names,
                const std::vector<Compared>& compared, const std::string& saved, const std::function<void()>& finish) {
  const ArrayStyle style{.width = console.width};
  for (std::size_t i = 0; i < result.outputs.size(); ++i) {
    const HostArray& array = result.outputs[i];
    if (saved.empty()) console.out << format_array(array, style) << '\n';
    const bool last = i + 1 == result.outputs.size();
    std::string line = fmt::format("{} {}", to_string(array.shape()), name(array.dtype()));
    if (names.size() > 1) line = fmt::format("{}: {}", names[i], line);
    if (last) {
      console.out << std::flush;
      finish();
      const std::string stages = present::timeline_text(result.timeline);
      const auto tier = result.device->details.find("tier");
      const std::string how = tier == result.device->details.end() ? "" : fmt::format(" ({})", tier->second);
      line += fmt::format(" on {}{}{}{}", result.device->id, how, stages.empty() ? "" : ", ", stages);
      if (const std::optional<RunCost> cost = cost_of(result, process_manager().config()); cost && cost->dollars > 0)
        line += ", cost " + present::money_text(cost->dollars, cost->is_estimate);
    }
    console.out << console.dim(line) << '\n';
    if (!compared.empty()) console.out << present::comparison_text(array, compared[i].comparison) << '\n';
    if (!last && saved.empty()) console.out << '\n';
  }
  if (!saved.empty()) console.out << "saved to " << saved << '\n';
}

RoutingMode routing_mode_named(const std::string& text) {
  for (const RoutingMode mode : {RoutingMode::prefer, RoutingMode::fastest, RoutingMode::cheapest, RoutingMode::pinned})
    if (text == name(mode)) return mode;
  throw Error(ErrorCode::invalid_argument, fmt::format("unknown routing mode '{}'", text));
}

// What is to be computed: an expression or a saved program, with its values.
struct Work {
  Graph graph;
  std::vector<HostArray> inputs;
  std::vector<std::string> names;  // of the results
  std::string device;              // the request, "auto" if there is none
};

Work work_of(const RunArguments& arguments) {
  if (arguments.expression.starts_with('@')) {
    if (!arguments.dtype.empty())
      throw Error(ErrorCode::invalid_argument, "--dtype does not work with a saved program", "its dtypes are recorded in it");
    const Program program = Program::load(arguments.expression.substr(1));
    return {program.graph(), inputs_of(program, arguments.inputs), numbered_results(program.graph().outputs().size()),
            arguments.device == "auto" ? program.device() : arguments.device};
  }
  std::optional<DType> dtype;
  if (!arguments.dtype.empty()) dtype = dtype_named(arguments.dtype);
  const std::vector<Input> inputs = parse_inputs(arguments.inputs, dtype);
  Graph graph = parse_program(arguments.expression, inputs, dtype);
  std::vector<std::string> names = result_names(arguments.expression, graph.outputs().size());
  return {std::move(graph), arrays_of(inputs), std::move(names), arguments.device};
}

int run(const RunArguments& arguments, Session& session) {
  const Work work = work_of(arguments);
  const Graph& graph = work.graph;
  const std::vector<HostArray>& arrays = work.inputs;
  check_output(arguments.output, graph.outputs().size());

  RunOptions options;
  options.device = work.device;
  options.repeat = arguments.repeat;
  options.prefer = arguments.prefer;
  if (!arguments.routing.empty()) options.routing = routing_mode_named(arguments.routing);
  options.program = arguments.expression.substr(0, kMaxProgramName);
  if (arguments.timeout_seconds)
    options.timeout =
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(*arguments.timeout_seconds));
  options.explain = arguments.explain;
  if (arguments.explain && !session.json)
    options.on_decision = [&](const Decision& decision) {
      session.console.out << present::route_text(decision, session.console.style()) << '\n' << std::flush;
    };
  // A process of an MPI job always says why it ends.
  const bool is_one_of_many = !arguments.mesh.axes.empty() && started_by_mpi();
  session.ends_at_once = is_one_of_many;
  Interrupt interrupt(is_one_of_many ? std::function<bool()>() : nothing_needs_closing);
  options.cancel = interrupt.token();
  ProgressTalk talk(session.console);
  options.on_progress = [&](const Progress& progress) { talk.stage(progress); };
  RunResult result;
  std::optional<MeshAnswer> on_mesh;
  try {
    if (!arguments.mesh.axes.empty()) {
      on_mesh = run_on_mesh(arguments.mesh, graph, arrays, work.device, options, arguments.explain, session);
      result = present::as_run(on_mesh->run.result);
    } else {
      result = process_manager().run(graph, arrays, options);
    }
  } catch (const Error& error) {
    if (interrupt.exit_status() == 0 || error.code() != ErrorCode::cancelled) throw;
    // A launcher ends the job when one of its processes is gone: each of the others says what it was doing.
    if (is_one_of_many) session.console.err << "tenon: " << error.what() << '\n' << std::flush;
    return interrupt.exit_status();
  }
  if (is_one_of_many) finish_mpi(arguments.mesh.deadline_seconds);
  session.ends_at_once = false;
  if (on_mesh && !on_mesh->is_printed) return 0;
  ComparedResults compared;
  if (arguments.compare) compared = compare_with_reference(graph, arrays, result.outputs);
  const std::vector<std::string>& names = work.names;
  if (!arguments.output.empty()) save_arrays(arguments.output, present::results_file(result.outputs, names));

  // The command ends now, so the device closes whatever the policy; that is part of what the run took.
  const auto close = [&] {
    if (on_mesh)
      process_manager().close_all();
    else
      process_manager().close_after(result);
  };
  if (session.json) {
    close();
    print_document(session.console.out, 2, [&](JsonWriter& json) {
      write(json, arguments, result, names, compared);
      if (!on_mesh) return;
      json.key("mesh");
      present::write_mesh(json, on_mesh->run);
    });
  } else {
    print_text(session.console, result, names, compared.results, arguments.output, close);
    if (on_mesh) session.console.out << session.console.dim(present::mesh_text(on_mesh->run)) << '\n';
  }
  for (const Compared& each : compared.results)
    if (each.comparison.mismatches > 0) return kExitMismatch;
  return 0;
}

}  // namespace

void add_run_command(Command& app, Session& session) {
  auto arguments = std::make_shared<RunArguments>();
  Command* command = app.add_subcommand("run", "Compute an expression or a saved program and print the result");
  command
      ->add_option("expression", arguments->expression,
                   "Expression to compute, e.g. 'gelu(a @ b + 0.5)', or @FILE of a saved program")
      ->required()
      ->type_name("EXPR");
  command
      ->add_option("inputs", arguments->inputs, "Values of its names: name=VALUE or name=@FILE (.npy, .npz, .safetensors, CSV)")
      ->type_name("NAME=VALUE");
  command
      ->add_option("-o,--output", arguments->output,
                   "Save the results as .npy, .npz, .safetensors or .csv instead of printing them")
      ->type_name("FILE");
  command->add_option("--dtype", arguments->dtype, "dtype of inputs given as values, float literals and created tensors")
      ->type_name("DTYPE");
  command->add_option("--device", arguments->device, "Device to use: auto, a kind (cpu) or an id (cpu:0)")->type_name("DEVICE");
  command->add_option("--routing", arguments->routing, "How auto chooses: prefer, fastest, cheapest or pinned")
      ->check(one_of({"prefer", "fastest", "cheapest", "pinned"}))
      ->type_name("MODE");
  command->add_option("--prefer", arguments->prefer, "What auto prefers: a kind or a device")->type_name("DEVICE");
  command->add_option("--repeat", arguments->repeat, "Compute N times and report the fastest")
      ->check(in_range(1, 1'000'000))
      ->type_name("N");
  command->add_option("--timeout", arguments->timeout_seconds, "Seconds to wait for the device; exit status 4 on timeout")
      ->check(in_range(0.0, 1e9))
      ->type_name("SECONDS");
  command->add_flag("--explain", arguments->explain, "Show the predicted time of each device and why one was chosen");
  command->add_flag("--compare", arguments->compare, "Compare with the double-precision reference; exit status 5 if they differ");
  add_mesh_options(*command, arguments->mesh);
  add_output_options(*command, session);
  command->footer(kExamples);
  command->callback([arguments, &session] { session.action = [arguments, &session] { return run(*arguments, session); }; });
}

}  // namespace tenon::cli

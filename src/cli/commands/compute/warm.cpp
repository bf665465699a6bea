#include <fmt/format.h>

#include <memory>

#include "base/text/units.h"
#include "cli/commands/commands.h"
#include "cli/inputs/inputs.h"
#include "cli/json.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/progress_talk.h"
#include "ops/names.h"
#include "present/device/device.h"
#include "present/run.h"
#include "tenon/error.h"
#include "tenon/manager.h"

namespace tenon::cli {
namespace {

constexpr const char* kNotes =
    R"(Runs the expression twice: the first run opens the device and compiles; the second shows what later runs
take while the device stays open. Compiled kernels of CUDA and OpenCL devices are kept on disk, so that other
processes compile nothing, either. The times also go into the profile that routing predicts from.

Examples:
  tenon warm 'softmax(a @ b)' a='rand([512, 512])' b='rand([512, 512])' --device gpu
  tenon warm 'gelu(x)' x=@x.npy --device opencl --json)";

struct WarmArguments {
  std::string expression;
  std::vector<std::string> inputs;
  std::string dtype, device = "auto";
};

double total(const Timeline& timeline) {
  double seconds = 0;
  for (const Span& span : timeline) seconds += span.seconds;
  return seconds;
}

int warm(const WarmArguments& arguments, const Session& session) {
  std::optional<DType> dtype;
  if (!arguments.dtype.empty()) dtype = dtype_named(arguments.dtype);
  const std::vector<Input> inputs = parse_inputs(arguments.inputs, dtype);
  const Graph graph = parse_program(arguments.expression, inputs, dtype);
  const std::vector<HostArray> arrays = arrays_of(inputs);
  Interrupt interrupt(nothing_needs_closing);
  RunOptions options;
  options.device = arguments.device;
  options.cancel = interrupt.token();
  ProgressTalk talk(session.console);
  options.on_progress = [&](const Progress& progress) { talk.stage(progress); };
  RunResult first, second;
  try {
    LeaseOptions wanted;
    wanted.device = process_manager().find(arguments.device).id;
    wanted.cancel = options.cancel;
    const Lease lease = process_manager().lease(wanted);
    options.device = wanted.device;
    first = process_manager().run(graph, arrays, options);
    second = process_manager().run(graph, arrays, options);
  } catch (const Error& error) {
    if (interrupt.exit_status() == 0 || error.code() != ErrorCode::cancelled) throw;
    return interrupt.exit_status();
  }
  process_manager().close(first.device->id);
  if (session.json) {
    print_document(session.console.out, 1, [&](JsonWriter& json) {
      json.member("expression", arguments.expression);
      json.key("device");
      present::write_device_brief(json, *first.device);
      json.key("first");
      present::write_timeline(json, first.timeline);
      json.key("later");
      present::write_timeline(json, second.timeline);
      json.seconds("first_seconds", total(first.timeline));
      json.seconds("later_seconds", total(second.timeline));
    });
    return 0;
  }
  std::ostream& out = session.console.out;
  out << fmt::format("first run  {:>9}  {}\n", format_seconds(total(first.timeline)), present::timeline_text(first.timeline));
  out << fmt::format("later runs {:>9}  {}\n", format_seconds(total(second.timeline)), present::timeline_text(second.timeline));
  out << session.console.dim("on " + first.device->id) << '\n';
  return 0;
}

}  // namespace

void add_warm_command(Command& app, Session& session) {
  auto arguments = std::make_shared<WarmArguments>();
  Command* command = app.add_subcommand("warm", "Compile an expression ahead of its first use and show what that saves");
  command->add_option("expression", arguments->expression, "Expression to compile")->required()->type_name("EXPR");
  command->add_option("inputs", arguments->inputs, "Values of its names, as for tenon run")->type_name("NAME=VALUE");
  command->add_option("--dtype", arguments->dtype, "dtype of inputs given as values, float literals and created tensors")
      ->type_name("DTYPE");
  command->add_option("--device", arguments->device, "Device to use: auto, a kind (cpu) or an id (cpu:0)")->type_name("DEVICE");
  add_output_options(*command, session);
  command->footer(kNotes);
  command->callback([arguments, &session] { session.action = [arguments, &session] { return warm(*arguments, session); }; });
}

}  // namespace tenon::cli

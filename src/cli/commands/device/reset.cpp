#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <string>

#include "cli/commands/commands.h"
#include "cli/json.h"
#include "cli/terminal/interrupt.h"
#include "manager/reset.h"
#include "tenon/error.h"
#include "tenon/manager.h"

namespace tenon::cli {
namespace {

constexpr const char* kNotes =
    R"(Closes the device and resets it with its vendor's tool (tt-smi -r, nvidia-smi --gpu-reset). A device that
another process holds or waits for is not reset; a CPU has nothing to reset. Asks first unless --yes is given.

Examples:
  tenon reset tenstorrent:0
  tenon reset gpu:0 --yes)";

struct ResetArguments {
  std::string device;
  bool yes = false;
};

bool is_confirmed(const ResetPlan& plan, const Session& session) {
  session.console.err << fmt::format("{} Reset {}? [y/N] ", plan.message, plan.device.id) << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

int reset(const ResetArguments& arguments, const Session& session) {
  Interrupt interrupt(nothing_needs_closing);
  const ResetPlan plan = plan_reset(process_manager(), arguments.device);
  if (!arguments.yes) {
    if (session.json || !session.console.err_is_terminal)
      throw Error(ErrorCode::invalid_argument, fmt::format("{} The reset must be confirmed.", plan.message), "add --yes");
    if (!is_confirmed(plan, session)) return 1;
  }
  const ResetResult result = reset_device(process_manager(), plan, interrupt.token());
  if (session.json) {
    print_document(session.console.out, 1, [&](JsonWriter& json) {
      json.member("device", plan.device.id);
      json.member("message", result.message);
      json.member("output", result.output);
    });
    return 0;
  }
  if (!result.output.empty()) session.console.out << result.output << (result.output.ends_with('\n') ? "" : "\n");
  session.console.out << fmt::format("{}: {}\n", plan.device.id, result.message);
  return 0;
}

}  // namespace

void add_reset_command(Command& app, Session& session) {
  auto arguments = std::make_shared<ResetArguments>();
  Command* command = app.add_subcommand("reset", "Reset a device that is in a bad state");
  command->add_option("device", arguments->device, "The device: an id, an alias, a PCI address or a path in /dev")
      ->required()
      ->type_name("DEVICE");
  command->add_flag("-y,--yes", arguments->yes, "Do not ask for confirmation");
  add_output_options(*command, session);
  command->footer(kNotes);
  command->callback([arguments, &session] { session.action = [arguments, &session] { return reset(*arguments, session); }; });
}

}  // namespace tenon::cli

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "base/log.h"
#include "base/system/state_directory.h"
#include "cli/child_process.h"
#include "cli/commands/commands.h"
#include "cli/option_checks.h"
#include "cli/terminal/progress_talk.h"
#include "lease/device_environment.h"
#include "lease/turnstile/queue_text.h"
#include "lease/turnstile/turnstile.h"
#include "manager/ledger/accounts.h"
#include "manager/ledger/ledger.h"
#include "tenon/error.h"
#include "tenon/manager.h"

namespace tenon::cli {
namespace {

constexpr const char* kNotes = R"(Waits for the device, runs the command, and releases the device when the command ends. The
command gets TENON_LEASE (device@epoch) and, depending on the device, CUDA_VISIBLE_DEVICES,
TT_VISIBLE_DEVICES or TPU_VISIBLE_CHIPS. Signals are forwarded. The exit status is that of the
command, or 128 plus the number of the signal that ended it; 127 if the command does not exist,
126 if it cannot be executed. A nested request for the same device shares the lease.

Examples:
  tenon exec --device cpu:0 -- true
  tenon exec --device cpu --timeout 60 -- sh -c 'echo $TENON_LEASE')";

constexpr int kExitNoSuchCommand = 127;
constexpr int kExitCannotRun = 126;
constexpr std::chrono::milliseconds kLedgerPatience{250};

struct ExecArguments {
  std::string device;
  std::optional<double> timeout_seconds;
  bool is_shared = false;
};

int run(const Session& session, const std::vector<std::pair<std::string, std::string>>& variables, bool& was_killed) {
  try {
    const ChildOutcome outcome = run_child(session.trailing, variables);
    was_killed = outcome.was_killed;
    return outcome.exit_status;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::resource_exhausted) throw;
    session.console.err << fmt::format("tenon: {}\n", error.what());
    return error.code() == ErrorCode::not_found ? kExitNoSuchCommand : kExitCannotRun;
  }
}

// The command may use the device for all of this time, and nobody else can.
void write_down(const Session& session, DeviceInfo device, TicketNumber epoch, SystemTime asked, SystemTime granted, int status) {
  const Config& config = process_manager().config();
  const std::string directory = state_directory(session.console.environment);
  const SystemTime now = std::chrono::system_clock::now();
  const double held = std::chrono::duration<double>(now - granted).count();
  if (!config.ledger || !ledger_is_built() || directory.empty()) return;
  if (!LedgerAccounts::is_worth_writing(device, held)) return;
  device = with_price(std::move(device), config.prices);
  Use use{.begin = granted, .device = device.id, .kind = std::string(name(device.kind)), .program = program_of(session.trailing)};
  use.result = status == 0 ? "ok" : fmt::format("exit {}", status);
  use.failures = status == 0 ? 0 : 1;
  use.epoch = epoch;
  use.runs = use.leases = use.opens = 1;
  use.open_seconds = use.held_seconds = std::max(0.0, held);
  use.queued_seconds = std::max(0.0, std::chrono::duration<double>(granted - asked).count());
  use.price_per_hour = device.cost_per_hour;
  use.price_is_estimate = device.cost_is_estimate;
  try {
    LedgerStore(directory + "/ledger.db", LedgerLimits::of_environment(), kLedgerPatience).append({&use, 1});
  } catch (const Error& error) {
    logging::warn("this use of {} is not recorded: {}", device.id, error.what());
  }
}

QueuePlace place_of(const Turnstile::Queue& queue, TicketNumber ticket) {
  QueuePlace mine;
  for (const Turnstile::Position& place : queue.places) {
    if (place.ticket >= ticket) break;
    ++mine.ahead_elsewhere;
    if (place.is_holding && mine.holder.empty()) mine.holder = who(place);
  }
  return mine;
}

int execute(const ExecArguments& arguments, const Session& session) {
  if (session.trailing.empty())
    throw Error(ErrorCode::invalid_argument, "a command is required",
                "put it after --, for example: tenon exec --device cpu -- make test");
  const DeviceInfo device = process_manager().find(arguments.device);
  const Turnstile turnstile(RunDirectory::open(session.console.environment), device.id);
  auto variables = visibility_variables(device);
  bool was_killed = false;
  Turnstile::Options options{.kind = arguments.is_shared ? TicketKind::shared : TicketKind::exclusive};
  if (is_leased_already(turnstile, session.console.environment("TENON_LEASE"), options.kind))
    return run(session, variables, was_killed);

  if (arguments.timeout_seconds)
    options.timeout =
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(*arguments.timeout_seconds));
  ProgressTalk talk(session.console);
  options.on_wait = [&](TicketNumber ticket) {
    const Turnstile::Queue queue = turnstile.queue();
    talk.stage({"queued", device.id, place_of(queue, ticket)}, waiting_sentence(queue, ticket));
  };
  const SystemTime asked = std::chrono::system_clock::now();
  Turnstile::Pass pass = turnstile.enter(options);
  const SystemTime granted = std::chrono::system_clock::now();
  if (pass.is_dirty())
    session.console.err << fmt::format("tenon: the last holder of {} died; the state of the device is unknown\n", device.id)
                        << std::flush;
  // Leases of the programs around this one stay in force.
  std::string leases(session.console.environment("TENON_LEASE"));
  if (!leases.empty()) leases += ',';
  variables.emplace_back("TENON_LEASE", leases + LeaseName{device.id, pass.epoch()}.text());
  session.console.out.flush();
  const int status = run(session, variables, was_killed);
  const TicketNumber epoch = pass.epoch();
  // Who dies by a signal seldom tidies up, and a command that could not be started has put nothing right.
  const bool could_not_start = status == kExitNoSuchCommand || status == kExitCannotRun;
  if (was_killed || (pass.is_dirty() && could_not_start))
    pass.give_back_dirty();
  else
    pass.give_back();
  write_down(session, device, epoch, asked, granted, status);
  return status;
}

}  // namespace

void add_exec_command(Command& app, Session& session) {
  auto arguments = std::make_shared<ExecArguments>();
  Command* command = app.add_subcommand("exec", "Run a command while holding a device: tenon exec --device ID -- COMMAND...");
  command->add_option("--device", arguments->device, "Device to hold: a kind (cpu) or an id (cpu:0)")
      ->required()
      ->type_name("DEVICE");
  command->add_option("--timeout", arguments->timeout_seconds, "Seconds to wait for the device; 0: fail if it is not free")
      ->check(in_range(0.0, 1e8))
      ->type_name("SECONDS");
  command->add_flag("--shared", arguments->is_shared, "Share the device with other shared holders");
  command->footer(kNotes);
  command->callback([arguments, &session] { session.action = [arguments, &session] { return execute(*arguments, session); }; });
}

}  // namespace tenon::cli

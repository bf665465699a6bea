#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <sstream>

#include "base/system/state_directory.h"
#include "base/text/units.h"
#include "cli/application.h"
#include "cli/commands/commands.h"
#include "cli/diagnose/bundle.h"
#include "cli/json.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/progress_talk.h"
#include "diagnose/device_programs.h"
#include "lease/turnstile/run_directory.h"
#include "manager/ledger/store.h"
#include "tenon/device/simulated.h"
#include "tenon/diagnostics.h"
#include "tenon/error.h"
#include "tenon/manager.h"

namespace tenon::cli {
namespace {

constexpr std::uint64_t kLowMemory = std::uint64_t{256} << 20;

struct DoctorArguments {
  std::string device, bundle;
  std::vector<std::string> only, skip;
};

void print(const Check& check, const Console& console) {
  constexpr std::string_view colours[] = {"32", "33", "1;31"};  // green, yellow, red
  const std::string verdict =
      console.colour_out ? fmt::format("\033[{}m{}\033[0m", colours[static_cast<int>(check.verdict)], name(check.verdict))
                         : std::string(name(check.verdict));
  console.out << fmt::format("{}  {:<28}  {}{}\n", verdict, check.id, check.text,
                             check.seconds ? ", " + format_seconds(*check.seconds) : "");
  // What was looked for and not found has a remedy without being a problem: for somebody who has such a card.
  if (!check.remedy.empty() && (check.verdict != Verdict::pass || check.id.starts_with("accelerator.")))
    console.out << fmt::format("      {}\n", check.remedy);
  console.out << std::flush;
}

// Whether the check |id| is among |wanted|, which are ids or the first words of some: "host", "cpu:0", "cpu:0.matmul".
bool is_among(const std::string& id, const std::vector<std::string>& wanted) {
  return std::ranges::any_of(
      wanted, [&](const std::string& word) { return id == word || (id.starts_with(word) && id[word.size()] == '.'); });
}

// The checks so far. In text each is shown when it is done: those of a device may take a while.
class Findings {
 public:
  Findings(const Session& session, const DoctorArguments& arguments) : session_(session), arguments_(arguments) {}

  bool wants(const std::string& id) const {
    return (arguments_.only.empty() || is_among(id, arguments_.only)) && !is_among(id, arguments_.skip);
  }
  void push_back(Check check) {
    if (!wants(check.id)) return;
    if (!session_.json) print(check, session_.console);
    checks_.push_back(std::move(check));
  }
  const std::vector<Check>& checks() const { return checks_; }

 private:
  const Session& session_;
  const DoctorArguments& arguments_;
  std::vector<Check> checks_;
};

// |wanted| is the one that was asked for: it has failed if it cannot be used.
void check_devices(const Detection& found, const std::string& wanted, Findings& checks) {
  for (const DeviceInfo& device : found.devices) {
    if (!device.same_as.empty() && device.id != wanted) continue;
    checks.push_back({.id = "device." + device.id,
                      .verdict = device.available      ? Verdict::pass
                                 : device.id == wanted ? Verdict::fail
                                                       : Verdict::warn,
                      .text = device.available ? device.name : fmt::format("{}: {}", device.name, device.reason),
                      .remedy = device.remedy});
  }
  for (const Check& check : check_accelerators(found)) checks.push_back(check);
  for (const std::string& note : found.notes) checks.push_back({.id = "detection.note", .verdict = Verdict::warn, .text = note});
}

void check_memory(const Detection& found, Findings& checks) {
  for (const DeviceInfo& device : found.devices) {
    if (device.kind != DeviceKind::cpu || !device.same_as.empty() || is_simulated(device) || !device.memory_free_bytes) continue;
    const bool low = *device.memory_free_bytes < kLowMemory;
    checks.push_back({.id = "host.memory",
                      .verdict = low ? Verdict::warn : Verdict::pass,
                      .text = format_bytes(static_cast<double>(*device.memory_free_bytes)) + " free",
                      .remedy = low ? "close other programs or raise the memory limit" : ""});
  }
}

void check_configuration(const Session& session, Findings& checks) {
  LoadedConfig loaded;
  try {
    loaded = load_config(session.config_sources());
  } catch (const Error& error) {
    checks.push_back({.id = "host.configuration", .verdict = Verdict::fail, .text = error.what(), .remedy = error.hint()});
    return;
  }
  for (const std::string& warning : loaded.warnings)
    checks.push_back({.id = "host.configuration", .verdict = Verdict::warn, .text = warning, .remedy = "see tenon config"});
  if (loaded.warnings.empty())
    checks.push_back(
        {.id = "host.configuration", .text = loaded.file.empty() ? "no file; using defaults" : "read from " + loaded.file});
}

// Without one, processes cannot queue for devices. Looking does not make it.
void check_run_directory(const Session& session, Findings& checks) {
  Check check{.id = "host.run_directory"};
  try {
    const auto directory = RunDirectory::open_existing(session.console.environment);
    check.text = directory ? "processes share devices through " + directory->path() : "created when a device is first shared";
  } catch (const Error& error) {
    check.verdict = Verdict::warn;
    check.text = error.what();
    check.remedy = error.hint();
  }
  checks.push_back(std::move(check));
}

// A folder that is not there yet is made in the nearest one above it.
bool can_be_written(std::filesystem::path folder) {
  std::error_code ignored;
  while (!std::filesystem::exists(folder, ignored) && folder.has_relative_path()) folder = folder.parent_path();
  if (!std::filesystem::is_directory(folder, ignored)) {
    errno = ENOTDIR;
    return false;
  }
  return access(folder.c_str(), W_OK | X_OK) == 0;
}

void check_ledger(const Session& session, Findings& checks) {
  Check check{.id = "host.ledger", .text = "created when a device is first used"};
  const std::string directory = state_directory(session.console.environment);
  const std::string file = directory + "/ledger.db";
  try {
    if (!ledger_is_built()) {
      check.text = "this build of Tenon has no ledger";
    } else if (directory.empty()) {
      check.verdict = Verdict::warn;
      check.text = "no folder for it";
      check.remedy = "set HOME, or set TENON_STATE_DIR to a folder that this user can write to";
    } else if (!can_be_written(directory)) {
      check.verdict = Verdict::warn;
      check.text = fmt::format("cannot write to {}: {}", directory, std::strerror(errno));
      check.remedy = "give this user write permission, or set TENON_STATE_DIR to another folder";
    } else if (std::error_code ignored; std::filesystem::exists(file, ignored)) {
      LedgerStore store = LedgerStore::open_existing(file);
      const LedgerStore::Size size = store.size();
      const bool is_intact = store.is_intact();
      check.verdict = is_intact ? Verdict::pass : Verdict::warn;
      check.text = fmt::format("{} rows and {} days, {}{}", size.rows, size.days, format_bytes(static_cast<double>(size.bytes)),
                               is_intact ? "" : "; damaged");
      check.remedy = is_intact ? "" : fmt::format("move {} away; a new file will be created", file);
    }
  } catch (const Error& error) {
    check.verdict = Verdict::warn;
    check.text = error.what();
    check.remedy = error.hint();
  }
  checks.push_back(std::move(check));
}

// The devices to compute on: |wanted| alone where one was asked for.
std::vector<std::string> to_examine(const Detection& found, const std::string& wanted, Findings& checks) {
  std::vector<std::string> usable;
  for (const DeviceInfo& device : found.devices) {
    const bool is_requested = wanted.empty() ? device.same_as.empty() : device.id == wanted;
    if (device.available && is_requested) usable.push_back(device.id);
  }
  if (usable.empty() && wanted.empty())
    checks.push_back(
        {.id = "device.any", .verdict = Verdict::fail, .text = "no devices are visible", .remedy = "see the devices above"});
  return usable;
}

std::vector<Check> examine(const DoctorArguments& arguments, Interrupt& interrupt, const Session& session) {
  const Detection found = process_manager().detect();
  const std::string wanted = arguments.device.empty() ? "" : process_manager().find(arguments.device).id;
  Findings checks(session, arguments);
  check_devices(found, wanted, checks);
  check_memory(found, checks);
  check_configuration(session, checks);
  check_run_directory(session, checks);
  check_ledger(session, checks);
  RunOptions how;
  how.cancel = interrupt.token();
  ProgressTalk talk(session.console);
  how.on_progress = [&](const Progress& progress) { talk.stage(progress); };
  for (const std::string& device : to_examine(found, wanted, checks)) {
    std::vector<Diagnostic> programs = device_diagnostics();
    std::erase_if(programs, [&](const Diagnostic& program) { return !checks.wants(device + "." + program.id); });
    diagnose(device, process_manager(), programs, how, [&](const Check& check) { checks.push_back(check); });
  }
  return checks.checks();
}

Verdict worst_of(const std::vector<Check>& checks) {
  Verdict worst = Verdict::pass;
  for (const Check& check : checks) worst = std::max(worst, check.verdict);
  return worst;
}

std::string document_of(const std::vector<Check>& checks) {
  std::ostringstream out;
  print_document(out, 1, [&](JsonWriter& json) {
    json.member("verdict", name(worst_of(checks)));
    json.key("checks").begin_array();
    for (const Check& check : checks) {
      json.begin_object();
      json.member("id", check.id);
      json.member("verdict", name(check.verdict));
      json.member("text", check.text);
      json.member("remedy", check.remedy);
      json.member("seconds", check.seconds);
      json.end_object();
    }
    json.end_array();
  });
  return out.str();
}

// What another command of this program prints, with this one's configuration.
std::string output_of(std::vector<std::string> arguments, const Session& session) {
  std::ostringstream out, err;
  Console console{.out = out, .err = err};
  console.environment = session.console.environment;
  if (!session.config_file.empty()) arguments.insert(arguments.end(), {"--config", session.config_file});
  for (const std::string& assignment : session.assignments) arguments.insert(arguments.end(), {"--set", assignment});
  for (const std::string& device : session.simulated) arguments.insert(arguments.end(), {"--sim", device});
  run_application(std::move(arguments), console);
  return out.str();
}

void make_bundle(const std::string& path, const std::vector<Check>& checks, const Session& session) {
  std::vector<std::pair<std::string, std::string>> variables;
  Redactor redactor;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string text(*entry);
    const std::size_t mark = text.find('=');
    if (mark == std::string::npos) continue;
    variables.emplace_back(text.substr(0, mark), text.substr(mark + 1));
    redactor.add_variable(variables.back().first, variables.back().second);
  }
  for (const auto& [name, value] : process_manager().config().environment) redactor.add_variable(name, value);
  redactor.set_home(session.console.environment("HOME"));

  std::vector<BundleFile> files{{"doctor.json", document_of(checks)}};
  for (const char* command : {"devices", "report", "config", "queue", "cost"})
    files.push_back({fmt::format("{}.json", command), output_of({command, "--json"}, session)});
  files.push_back({"environment.txt", relevant_environment(variables, redactor)});
  for (BundleFile& file : system_files()) files.push_back(std::move(file));
  const std::size_t count = files.size();
  const std::uint64_t bytes = write_bundle(path, std::move(files), redactor);
  session.console.err << fmt::format(
      "tenon: wrote {} with {} files, {}; secrets were removed, but review it before you send it\n", path, count,
      format_bytes(static_cast<double>(bytes)));
}

int run_doctor(const DoctorArguments& arguments, const Session& session) {
  Interrupt interrupt;
  std::vector<Check> checks;
  try {
    checks = examine(arguments, interrupt, session);
  } catch (const Error& error) {
    if (interrupt.exit_status() == 0 || error.code() != ErrorCode::cancelled) throw;
    return interrupt.exit_status();
  }
  if (session.json) session.console.out << document_of(checks);
  if (!arguments.bundle.empty()) make_bundle(arguments.bundle, checks, session);
  return static_cast<int>(worst_of(checks));
}

}  // namespace

void add_doctor_command(Command& app, Session& session) {
  auto arguments = std::make_shared<DoctorArguments>();
  Command* command = app.add_subcommand("doctor", "Check the machine and run test computations on every usable device");
  command->add_option("--device", arguments->device, "Compute only on this device: a kind or an id")->type_name("DEVICE");
  command
      ->add_option("--bundle", arguments->bundle,
                   "Also write diagnostic information about this machine to FILE, for a bug report")
      ->type_name("FILE.tar.gz");
  command->add_option("--only", arguments->only, "Only these checks: an id or its first word (host, cpu:0); may be repeated")
      ->may_repeat()
      ->type_name("CHECK");
  command->add_option("--skip", arguments->skip, "Not these checks; may be repeated")->may_repeat()->type_name("CHECK");
  add_output_options(*command, session);
  command->footer(
      "The bundle contains the output of doctor, devices, report, config, queue and cost, versions, os-release\nand the "
      "environment variables of devices. Values of variables and settings with secret-sounding names\nare removed.\n\nExit "
      "status: 0 everything passed, 1 there were warnings, 2 something failed.\n\nExamples:\n  tenon doctor\n  tenon doctor "
      "--device cpu --json\n  tenon doctor --only accelerator --only host\n  tenon doctor --bundle tenon.tar.gz");
  command->callback(
      [arguments, &session] { session.action = [arguments, &session] { return run_doctor(*arguments, session); }; });
}

}  // namespace tenon::cli

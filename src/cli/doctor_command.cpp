#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sstream>

#include "base/state_directory.h"
#include "base/units.h"
#include "cli/application.h"
#include "cli/bundle.h"
#include "cli/commands.h"
#include "cli/diagnostics.h"
#include "cli/json.h"
#include "lease/run_directory.h"
#include "manager/ledger_store.h"
#include "tenon/error.h"
#include "tenon/manager.h"

namespace tenon::cli {
namespace {

constexpr std::uint64_t kLowMemory = std::uint64_t{256} << 20;

struct DoctorArguments {
  std::string device, bundle;
};

std::string_view text_of(Verdict verdict) {
  constexpr std::string_view names[] = {"PASS", "WARN", "FAIL"};
  return names[static_cast<int>(verdict)];
}

void check_devices(const Detection& found, std::vector<Check>& checks) {
  for (const DeviceInfo& device : found.devices)
    checks.push_back({.id = "device." + device.id,
                      .verdict = device.available ? Verdict::pass : Verdict::warn,
                      .text = device.available ? device.name : fmt::format("{}: {}", device.name, device.reason),
                      .remedy = device.remedy});
  for (const std::string& note : found.notes) checks.push_back({.id = "detection.note", .verdict = Verdict::warn, .text = note});
}

void check_memory(const Detection& found, std::vector<Check>& checks) {
  for (const DeviceInfo& device : found.devices) {
    if (device.kind != DeviceKind::cpu || !device.memory_free_bytes) continue;
    const bool low = *device.memory_free_bytes < kLowMemory;
    checks.push_back({.id = "host.memory",
                      .verdict = low ? Verdict::warn : Verdict::pass,
                      .text = format_bytes(static_cast<double>(*device.memory_free_bytes)) + " free",
                      .remedy = low ? "end other programs, or raise the memory limit" : ""});
  }
}

void check_configuration(const Session& session, std::vector<Check>& checks) {
  const LoadedConfig loaded = load_config(session.config_sources());
  for (const std::string& warning : loaded.warnings)
    checks.push_back({.id = "host.configuration", .verdict = Verdict::warn, .text = warning, .remedy = "see tenon config"});
  if (loaded.warnings.empty())
    checks.push_back(
        {.id = "host.configuration", .text = loaded.file.empty() ? "no file; defaults" : "read from " + loaded.file});
}

// Without one, processes cannot queue for devices. Looking does not make it.
void check_run_directory(const Session& session, std::vector<Check>& checks) {
  Check check{.id = "host.run_directory"};
  try {
    const auto directory = RunDirectory::open_existing(session.console.environment);
    check.text = directory ? "processes meet in " + directory->path() : "made when a device is first shared";
  } catch (const Error& error) {
    check.verdict = Verdict::warn;
    check.text = error.what();
    check.remedy = error.hint();
  }
  checks.push_back(std::move(check));
}

void check_ledger(const Session& session, std::vector<Check>& checks) {
  Check check{.id = "host.ledger", .text = "made when a device is first used"};
  const std::string directory = state_directory(session.console.environment);
  const std::string file = directory + "/ledger.db";
  try {
    if (!ledger_is_built()) {
      check.text = "this build keeps none";
    } else if (directory.empty()) {
      check.verdict = Verdict::warn;
      check.text = "there is no place for it";
      check.remedy = "set HOME, or TENON_STATE_DIR to a folder this user may write";
    } else if (std::error_code ignored; std::filesystem::exists(file, ignored)) {
      LedgerStore store = LedgerStore::open_existing(file);
      const LedgerStore::Size size = store.size();
      const bool is_intact = store.is_intact();
      check.verdict = is_intact ? Verdict::pass : Verdict::warn;
      check.text = fmt::format("{} rows and {} days, {}{}", size.rows, size.days, format_bytes(static_cast<double>(size.bytes)),
                               is_intact ? "" : "; damaged");
      check.remedy = is_intact ? "" : fmt::format("move {} away; a new one is made", file);
    }
  } catch (const Error& error) {
    check.verdict = Verdict::warn;
    check.text = error.what();
    check.remedy = error.hint();
  }
  checks.push_back(std::move(check));
}

// The devices to compute on; one that was asked for and cannot be used has failed.
std::vector<DeviceInfo> to_examine(const Detection& found, const std::string& wish, std::vector<Check>& checks) {
  std::vector<DeviceInfo> usable;
  if (wish.empty()) {
    for (const DeviceInfo& device : found.devices)
      if (device.available) usable.push_back(device);
    if (usable.empty())
      checks.push_back(
          {.id = "device.any", .verdict = Verdict::fail, .text = "no devices are visible", .remedy = "see the devices above"});
    return usable;
  }
  const DeviceInfo device = process_manager().find(wish);
  if (device.available) return {device};
  for (Check& check : checks)
    if (check.id == "device." + device.id) check.verdict = Verdict::fail;
  return {};
}

std::vector<Check> examine(const std::string& wish, const Session& session) {
  const Detection found = process_manager().detect();
  std::vector<Check> checks;
  check_devices(found, checks);
  check_memory(found, checks);
  check_configuration(session, checks);
  check_run_directory(session, checks);
  check_ledger(session, checks);
  for (const DeviceInfo& device : to_examine(found, wish, checks))
    for (Check& check : diagnose(device.id, process_manager())) checks.push_back(std::move(check));
  return checks;
}

Verdict worst_of(const std::vector<Check>& checks) {
  Verdict worst = Verdict::pass;
  for (const Check& check : checks) worst = std::max(worst, check.verdict);
  return worst;
}

boost::json::object to_json(const std::vector<Check>& checks) {
  boost::json::array list;
  for (const Check& check : checks)
    list.push_back(
        boost::json::object{{"id", check.id},
                            {"verdict", text_of(check.verdict)},
                            {"text", check.text},
                            {"remedy", check.remedy},
                            {"seconds", check.seconds ? boost::json::value(*check.seconds) : boost::json::value(nullptr)}});
  return {{"schema", 1}, {"verdict", text_of(worst_of(checks))}, {"checks", std::move(list)}};
}

void print(const std::vector<Check>& checks, std::ostream& out) {
  for (const Check& check : checks) {
    out << fmt::format("{}  {:<28}  {}{}\n", text_of(check.verdict), check.id, check.text,
                       check.seconds ? ", " + format_seconds(*check.seconds) : "");
    if (!check.remedy.empty() && check.verdict != Verdict::pass) out << fmt::format("      {}\n", check.remedy);
  }
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
  const LoadedConfig loaded = load_config(session.config_sources());
  for (const auto& [name, value] : loaded.config.environment) redactor.add_variable(name, value);
  redactor.set_home(session.console.environment("HOME"));

  std::vector<BundleFile> files{{"doctor.json", to_text(to_json(checks))}};
  for (const char* command : {"devices", "report", "config", "queue", "cost"})
    files.push_back({fmt::format("{}.json", command), output_of({command, "--json"}, session)});
  files.push_back({"environment.txt", relevant_environment(variables, redactor)});
  for (BundleFile& file : system_files()) files.push_back(std::move(file));
  const std::size_t count = files.size();
  const std::uint64_t bytes = write_bundle(path, std::move(files), redactor);
  session.console.err << fmt::format("tenon: {} has {} files, {}, secrets taken out; look through it before you send it\n", path,
                                     count, format_bytes(static_cast<double>(bytes)));
}

int run_doctor(const DoctorArguments& arguments, const Session& session) {
  const std::vector<Check> checks = examine(arguments.device, session);
  if (session.json)
    session.console.out << to_text(to_json(checks));
  else
    print(checks, session.console.out);
  if (!arguments.bundle.empty()) make_bundle(arguments.bundle, checks, session);
  return static_cast<int>(worst_of(checks));
}

}  // namespace

void add_doctor_command(CLI::App& app, Session& session) {
  auto arguments = std::make_shared<DoctorArguments>();
  CLI::App* command = app.add_subcommand("doctor", "Check the machine and compute something on every usable device");
  command->add_option("--device", arguments->device, "Compute on this one only: a kind or an id")->type_name("DEVICE");
  command->add_option("--bundle", arguments->bundle, "Also write what is known of this machine to FILE, for a bug report")
      ->type_name("FILE.tar.gz");
  add_output_options(*command, session);
  command->footer(
      "The bundle has the output of doctor, devices, report, config, queue and cost, versions, os-release\nand the environment "
      "of "
      "devices; values of variables and settings whose names say that they are\nsecret are taken out of all of it.\n\n"
      "Exit status: 0 everything passed, 1 with warnings, 2 something failed.\n\nExamples:\n  tenon doctor\n  tenon doctor "
      "--device cpu --json\n  tenon doctor --bundle tenon.tar.gz");
  command->callback(
      [arguments, &session] { session.action = [arguments, &session] { return run_doctor(*arguments, session); }; });
}

}  // namespace tenon::cli

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "base/system/state_directory.h"
#include "cli/commands/commands.h"
#include "cli/json.h"
#include "device/python_packages.h"
#include "manager/ledger/store.h"
#include "present/device/device.h"
#include "present/device/device_status.h"
#include "present/device/usage.h"
#include "tenon/manager.h"
#include "tenon/manager/batch.h"
#include "tenon/manager/routing.h"

namespace tenon::cli {
namespace {

using present::duration_text;
using present::money_text;

constexpr std::chrono::hours kCostPeriod{30 * 24};

struct SettingValue {
  std::string name, value, origin;
};

struct Framework {
  std::string name, version, folder;
};

struct Report {
  DeviceInfo current;
  Detection found;
  Config config;
  std::string config_file;
  std::vector<SettingValue> configuration;
  std::vector<Framework> frameworks;
  std::optional<Decision> decision;
  BatchConfig batch;
  UseReport costs;
  std::string costs_problem;  // why there are none
  std::vector<std::string> recommendations;
  std::vector<DeviceStatus> held;  // devices that another process holds
};

std::vector<SettingValue> read_configuration(const LoadedConfig& loaded, const Session& session) {
  std::vector<SettingValue> values;
  for (const Setting& setting : settings()) {
    std::string value = setting.environment_only;
    if (setting.get)
      value = setting.get(loaded.config);
    else if (const std::string given = session.console.environment(setting.variables.at(0).c_str()); !given.empty())
      value = given;
    values.push_back({setting.name, value, loaded.origins.at(setting.name)});
  }
  return values;
}

// What a reader looks for first, and everything somebody has set.
bool is_worth_a_line(const SettingValue& setting) {
  constexpr std::string_view always[] = {"prefer", "routing", "memory_strategy", "keep_open", "threads"};
  return setting.origin != "default" || std::find(std::begin(always), std::end(always), setting.name) != std::end(always);
}

std::vector<Framework> find_frameworks() {
  std::vector<Framework> found;
  for (const auto& [package, name] : {std::pair("torch", "PyTorch"), {"tensorflow", "TensorFlow"}, {"jax", "JAX"}})
    for (const PythonPackage& installed : installed_packages(SystemRoot(), {package}))
      found.push_back({name, installed.version, installed.folder});
  return found;
}

int count_of(const DeviceInfo& device, const char* key) {
  const auto found = device.details.find(key);
  return found == device.details.end() ? 0 : std::atoi(found->second.c_str());
}

// Why routing left a device aside, in its own words where there are any.
std::string why_not(const Report& report, const DeviceInfo& device) {
  if (report.decision)
    for (const Considered& considered : report.decision->considered)
      if (considered.candidate.device.id == device.id && !considered.remark.empty()) return considered.remark;
  return "not selected";
}

void recommend_devices(const Report& report, std::vector<std::string>& all) {
  bool accelerator = false;
  for (const DeviceInfo& device : report.found.devices) {
    if (!device.same_as.empty()) continue;
    accelerator |= device.kind != DeviceKind::cpu;
    if (!device.available)
      all.push_back(fmt::format("{} ({}) is not used: {}{}", device.id, device.name, device.reason,
                                device.remedy.empty() ? "" : "; " + device.remedy));
    if (device.available && device.kind != DeviceKind::cpu && device.id != report.current.id)
      all.push_back(fmt::format("{} ({}) was found but not selected: {}; use it with --device {}", device.id, device.name,
                                why_not(report, device), device.id));
    const int usable = count_of(device, "usable_cores"), threads = count_of(device, "threads");
    if (usable < threads)
      all.push_back(fmt::format("this process may use {} of {} hardware threads; raise its CPU limit or affinity to use more",
                                usable, threads));
  }
  if (!accelerator) all.push_back("no accelerator was found; programs run on the CPU; tenon doctor says what was looked for");
}

void recommend_use(const Report& report, std::vector<std::string>& all) {
  constexpr double kLongOpen = 600, kPoor = 0.1;
  const HardwareType hardware = hardware_type(report.current);
  if (report.current.kind != DeviceKind::cpu)
    all.push_back(fmt::format("{} needs batches of about {} rows to be busy; tenon tune measures this", report.current.id,
                              batch_recommendation(hardware).optimal_batch_size));
  for (const UseSum& sum : report.costs.groups) {
    const auto efficiency = sum.efficiency();
    const auto device = std::ranges::find(report.found.devices, sum.key, &DeviceInfo::id);
    if (device != report.found.devices.end() && !device->same_as.empty()) continue;
    if (sum.key.starts_with("cpu:") || !efficiency || *efficiency >= kPoor || sum.open_seconds < kLongOpen) continue;
    all.push_back(fmt::format(
        "{} computed for {:.1f} % of the {} it was open; {}", sum.key, 100 * *efficiency, duration_text(sum.open_seconds),
        report.config.keep_open == KeepOpenPolicy::always ? "keep_open = adaptive closes it between runs"
                                                          : "use larger batches or group runs to improve this"));
  }
  if (report.costs.total.money_is_estimate)
    all.push_back("costs are based on built-in estimates; set your own prices in the configuration: see tenon config prices");
}

std::vector<std::string> recommend(const Report& report) {
  std::vector<std::string> all;
  if (report.decision && !report.decision->warning.empty()) all.push_back(report.decision->warning);
  recommend_devices(report, all);
  recommend_use(report, all);
  for (const std::string& note : report.found.notes) all.push_back(note);
  return all;
}

void read_costs(Report& report, const Session& session) {
  const std::string directory = state_directory(session.console.environment);
  try {
    if (!ledger_is_built())
      report.costs_problem = "this build of Tenon has no ledger";
    else if (!report.config.ledger)
      report.costs_problem = "the setting ledger is off";
    else if (std::error_code ignored; directory.empty() || !std::filesystem::exists(directory + "/ledger.db", ignored))
      report.costs_problem = "no device usage is recorded yet";
    else
      report.costs = LedgerStore::open_existing(directory + "/ledger.db")
                         .sums({.since = std::chrono::system_clock::now() - kCostPeriod, .by = UseKey::device});
  } catch (const Error& error) {
    report.costs_problem = error.what();
  }
}

// Without a program only the kinds and the preferences of the configuration decide.
std::optional<Decision> decide(const Report& report) {
  std::vector<Candidate> candidates;
  for (const DeviceInfo& device : report.found.devices) candidates.push_back({.device = device});
  try {
    return route(report.config, "auto", candidates);
  } catch (const Error&) {
    return std::nullopt;
  }
}

Report make_report(const Session& session) {
  Report report;
  const LoadedConfig loaded = load_config(session.config_sources());
  report.config = loaded.config;
  report.config_file = loaded.file;
  report.found = process_manager().detect();
  const auto is_second_way = [](const DeviceInfo& device) { return !device.same_as.empty(); };
  if (!session.json) std::erase_if(report.found.devices, is_second_way);
  report.held = process_manager().status();
  std::erase_if(report.held, [](const DeviceStatus& status) { return present::holder_elsewhere(status) == nullptr; });
  report.decision = decide(report);
  report.current = report.decision ? report.decision->device : process_manager().find("auto");
  for (const DeviceInfo& device : report.found.devices)
    if (device.id == report.current.id) report.current = device;
  report.configuration = read_configuration(loaded, session);
  report.frameworks = find_frameworks();
  report.batch = batch_config(report.current.kind, 1, report.config);
  read_costs(report, session);
  report.recommendations = recommend(report);
  return report;
}

std::vector<std::string> kind_names(const Config& config) {
  std::vector<std::string> names;
  for (const DeviceKind kind : config.platform_priority) names.emplace_back(name(kind));
  return names;
}

void write_routing(JsonWriter& json, const Report& report) {
  json.key("routing").begin_object();
  json.member("mode", name(report.config.routing));
  json.member("prefer", report.config.prefer);
  json.list("platform_priority", kind_names(report.config));
  json.text_or_null("reason", report.decision ? report.decision->reason : "");
  json.text_or_null("warning", report.decision ? report.decision->warning : "");
  json.end_object();
}

void write_batch(JsonWriter& json, const Report& report) {
  const HardwareType hardware = hardware_type(report.current);
  const BatchSizeRecommendation known = batch_recommendation(hardware);
  json.key("batch_config").begin_object();
  json.member("batch_size", report.batch.batch_size);
  json.member("max_batch_size", report.batch.max_batch_size);
  json.member("min_batch_size", report.batch.min_batch_size);
  json.member("prefetch_factor", report.batch.prefetch_factor);
  json.member("hardware", name(hardware));
  json.member("hardware_min", known.min_batch_size);
  json.member("hardware_optimal", known.optimal_batch_size);
  json.member("hardware_critical", known.critical_batch_size);
  json.end_object();
}

void write_costs(JsonWriter& json, const Report& report) {
  json.key("costs").begin_object();
  json.member("days", kCostPeriod.count() / 24);
  json.member("currency", "USD");
  json.member("cost_dollars", report.costs.total.money);
  json.text_or_null("problem", report.costs_problem);
  json.key("devices").begin_array();
  for (const UseSum& sum : report.costs.groups) present::write_use_sum(json, sum, UseKey::device);
  json.end_array();
  json.end_object();
}

void write(JsonWriter& json, const Report& report) {
  json.key("current_device");
  present::write_device(json, report.current);
  json.key("all_devices").begin_array();
  for (const DeviceInfo& device : report.found.devices) present::write_device(json, device);
  json.end_array();
  json.key("held").begin_array();
  for (const DeviceStatus& status : report.held) {
    json.begin_object();
    json.member("device", status.device.id);
    json.key("users");
    present::write_users(json, status);
    json.end_object();
  }
  json.end_array();
  json.key("configuration").begin_array();
  for (const SettingValue& setting : report.configuration) {
    json.begin_object();
    json.member("name", setting.name);
    json.member("value", setting.value);
    json.member("origin", setting.origin);
    json.end_object();
  }
  json.end_array();
  json.key("frameworks").begin_array();
  for (const Framework& framework : report.frameworks) {
    json.begin_object();
    json.member("name", framework.name);
    json.member("version", framework.version);
    json.member("folder", framework.folder);
    json.end_object();
  }
  json.end_array();
  json.member("routing_mode", report.config.prefer == "auto" && report.config.routing != RoutingMode::pinned ? "auto" : "manual");
  write_routing(json, report);
  write_batch(json, report);
  write_costs(json, report);
  json.list("recommendations", report.recommendations);
}

void print_facts(const DeviceInfo& device, const Console& console) {
  for (const auto& [key, value] : present::device_facts(device)) console.out << fmt::format("    {:<20}{}\n", key, value);
}

void print_use(const Report& report, std::ostream& out, const Console& console) {
  out << '\n' << console.bold("Routing") << '\n';
  out << fmt::format("  {}, prefer {}, kinds {}\n", name(report.config.routing), report.config.prefer,
                     fmt::join(kind_names(report.config), " > "));
  if (report.decision) out << fmt::format("  {}: {}\n", report.current.id, report.decision->reason);
  out << '\n' << console.bold("Batches") << '\n';
  out << fmt::format("  batch size {} (from {} to {}), {} batches prefetched\n", report.batch.batch_size,
                     report.batch.min_batch_size, report.batch.max_batch_size, report.batch.prefetch_factor);
  out << '\n' << console.bold("Costs") << '\n';
  if (!report.costs_problem.empty() || report.costs.groups.empty()) {
    out << fmt::format("  {}\n", report.costs_problem.empty() ? "no device usage in the last 30 days" : report.costs_problem);
    return;
  }
  for (const UseSum& sum : report.costs.groups)
    out << fmt::format(
        "  {:<20}  {}, open {}, computing {}, in the last 30 days\n", sum.key,
        sum.money == 0 && sum.unpriced_open_seconds > 0 ? "no price" : money_text(sum.money, sum.money_is_estimate),
        duration_text(sum.open_seconds), duration_text(sum.compute_seconds));
}

void print_report(const Report& report, bool verbose, const Console& console) {
  std::ostream& out = console.out;
  out << console.bold("Current device") << fmt::format("\n  {}  {}\n", report.current.id, report.current.name);
  print_facts(report.current, console);
  out << '\n' << console.bold("All devices") << '\n' << present::device_table(report.found.devices, console.style(), 2);
  for (const DeviceStatus& status : report.held) out << "  " << present::held_text(status) << '\n';
  if (verbose)
    for (const DeviceInfo& device : report.found.devices) {
      if (device.id == report.current.id) continue;
      out << fmt::format("\n  {}  {}\n", device.id, device.name);
      print_facts(device, console);
    }
  out << '\n' << console.bold("Configuration") << '\n';
  for (const SettingValue& setting : report.configuration)
    if (verbose || is_worth_a_line(setting))
      out << fmt::format("  {:<22}  {}  ({})\n", setting.name, setting.value.empty() ? "none" : setting.value, setting.origin);
  out << '\n' << console.bold("Frameworks") << '\n';
  for (const Framework& framework : report.frameworks)
    out << fmt::format("  {:<20}  {}{}\n", framework.name, framework.version, verbose ? "  " + framework.folder : "");
  if (report.frameworks.empty()) out << "  none found\n";
  print_use(report, out, console);
  out << '\n' << console.bold("Recommendations") << '\n';
  for (const std::string& sentence : report.recommendations) out << "  " << sentence << '\n';
  if (report.recommendations.empty()) out << "  none\n";
}

}  // namespace

void add_report_command(Command& app, Session& session) {
  auto verbose = std::make_shared<bool>(false);
  Command* command = app.add_subcommand("report", "Describe this machine: devices, settings, frameworks and recommendations");
  command->add_flag("--verbose", *verbose, "Show everything known about every device");
  add_output_options(*command, session);
  command->footer("Examples:\n  tenon report\n  tenon report --verbose\n  tenon report --json");
  command->callback([verbose, &session] {
    session.action = [verbose, &session] {
      const Report report = make_report(session);
      if (session.json) {
        print_document(session.console.out, 2, [&](JsonWriter& json) { write(json, report); });
      } else {
        print_report(report, *verbose, session.console);
      }
      return 0;
    };
  });
}

}  // namespace tenon::cli

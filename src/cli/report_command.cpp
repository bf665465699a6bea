#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "base/thread_pool.h"
#include "cli/commands.h"
#include "cli/device_table.h"
#include "cli/json.h"
#include "device/python_packages.h"
#include "tenon/manager.h"

namespace tenon::cli {
namespace {

struct Setting {
  std::string name, value, origin;
};

struct Framework {
  std::string name, version, folder;
};

struct Report {
  DeviceInfo current;
  Detection found;
  std::vector<Setting> configuration;
  std::vector<Framework> frameworks;
  std::vector<std::string> recommendations;
};

// Only what has an effect today.
std::vector<Setting> read_configuration() {
  const auto given = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  std::vector<Setting> settings;
  const std::string threads = given("TENON_THREADS"), level = given("TENON_ISA");
  settings.push_back(
      {"threads", threads.empty() ? std::to_string(usable_cores()) : threads, threads.empty() ? "default" : "TENON_THREADS"});
  settings.push_back({"instruction set", level.empty() ? "best" : level, level.empty() ? "default" : "TENON_ISA"});
  return settings;
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

std::vector<std::string> recommend(const Report& report) {
  std::vector<std::string> all;
  bool accelerator = false;
  for (const DeviceInfo& device : report.found.devices) {
    accelerator |= device.kind != DeviceKind::cpu;
    if (!device.available)
      all.push_back(fmt::format("{} ({}) is not used: {}; {}", device.id, device.name, device.reason, device.remedy));
    if (device.available && device.kind != DeviceKind::cpu && device.id != report.current.id)
      all.push_back(fmt::format("{} ({}) is ready and not selected: --device {}", device.id, device.name, device.id));
    const int usable = count_of(device, "usable_cores"), threads = count_of(device, "threads");
    if (usable < threads)
      all.push_back(fmt::format("this process may use {} of {} hardware threads; raise its CPU limit or affinity for more",
                                usable, threads));
  }
  if (!accelerator) all.push_back("no accelerator was found; programs run on the processor");
  for (const std::string& note : report.found.notes) all.push_back(note);
  return all;
}

Report make_report() {
  Report report;
  report.found = process_manager().detect();
  report.current = process_manager().find("auto");
  for (const DeviceInfo& device : report.found.devices)
    if (device.id == report.current.id) report.current = device;
  report.configuration = read_configuration();
  report.frameworks = find_frameworks();
  report.recommendations = recommend(report);
  return report;
}

boost::json::object report_json(const Report& report) {
  boost::json::array devices, configuration, frameworks;
  for (const DeviceInfo& device : report.found.devices) devices.push_back(to_full_json(device));
  for (const Setting& setting : report.configuration)
    configuration.push_back(boost::json::object{{"name", setting.name}, {"value", setting.value}, {"origin", setting.origin}});
  for (const Framework& framework : report.frameworks)
    frameworks.push_back(
        boost::json::object{{"name", framework.name}, {"version", framework.version}, {"folder", framework.folder}});
  return {{"schema", 1},
          {"current_device", to_full_json(report.current)},
          {"all_devices", std::move(devices)},
          {"configuration", std::move(configuration)},
          {"frameworks", std::move(frameworks)},
          {"routing_mode", "auto"},
          {"recommendations", boost::json::array(report.recommendations.begin(), report.recommendations.end())}};
}

void print_facts(const DeviceInfo& device, const Console& console) {
  for (const auto& [key, value] : device_facts(device)) console.out << fmt::format("    {:<20}{}\n", key, value);
}

void print_report(const Report& report, bool verbose, const Console& console) {
  std::ostream& out = console.out;
  out << console.bold("Current device") << fmt::format("\n  {}  {}\n", report.current.id, report.current.name);
  print_facts(report.current, console);
  out << '\n' << console.bold("All devices") << '\n' << device_table(report.found.devices, console, 2);
  if (verbose)
    for (const DeviceInfo& device : report.found.devices) {
      if (device.id == report.current.id) continue;
      out << fmt::format("\n  {}  {}\n", device.id, device.name);
      print_facts(device, console);
    }
  out << '\n' << console.bold("Configuration") << '\n';
  for (const Setting& setting : report.configuration)
    out << fmt::format("  {:<20}  {}  ({})\n", setting.name, setting.value, setting.origin);
  out << '\n' << console.bold("Frameworks") << '\n';
  for (const Framework& framework : report.frameworks)
    out << fmt::format("  {:<20}  {}{}\n", framework.name, framework.version, verbose ? "  " + framework.folder : "");
  if (report.frameworks.empty()) out << "  none found\n";
  out << '\n' << console.bold("Routing") << "\n  auto: the first device that is ready\n";
  out << '\n' << console.bold("Recommendations") << '\n';
  for (const std::string& sentence : report.recommendations) out << "  " << sentence << '\n';
  if (report.recommendations.empty()) out << "  none\n";
}

}  // namespace

void add_report_command(CLI::App& app, Session& session) {
  auto verbose = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("report", "Describe this machine: devices, settings, frameworks, what could be better");
  command->add_flag("--verbose", *verbose, "Everything known of every device");
  add_output_options(*command, session);
  command->footer("Examples:\n  tenon report\n  tenon report --verbose\n  tenon report --json");
  command->callback([verbose, &session] {
    session.action = [verbose, &session] {
      const Report report = make_report();
      if (session.json) {
        session.console.out << to_text(report_json(report));
      } else {
        print_report(report, *verbose, session.console);
      }
      return 0;
    };
  });
}

}  // namespace tenon::cli

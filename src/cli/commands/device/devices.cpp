#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "cli/commands/commands.h"
#include "cli/json.h"
#include "cli/option_checks.h"
#include "present/device/device.h"
#include "present/device/device_fields.h"
#include "tenon/error.h"
#include "tenon/manager.h"

namespace tenon::cli {
namespace {

constexpr const char* kNotes =
    R"(A device may be named by its id (cuda:0), an alias (gpu:0), its number in this list (0), its uuid, its
PCI address or its path in /dev. The CPU through another driver (OpenCL) is listed only with --all.

Examples:
  tenon devices
  tenon devices cuda:0
  tenon devices --fields id,name,memory_free_bytes --format csv
  tenon devices --json
  tenon devices --watch --interval 5)";

struct DevicesArguments {
  std::vector<std::string> devices;
  std::string fields, format = "table";
  bool watch = false, ids = false, all = false;
  double interval_seconds = 1;
  int count = 0;  // 0: until interrupted
};

Detection chosen(const DevicesArguments& arguments) {
  Detection found = process_manager().detect();
  if (arguments.devices.empty()) {
    if (!arguments.all) std::erase_if(found.devices, [](const DeviceInfo& device) { return !device.same_as.empty(); });
    return found;
  }
  Detection named;
  for (const std::string& request : arguments.devices) {
    const std::string id = process_manager().find(request).id;
    const auto device = std::ranges::find(found.devices, id, &DeviceInfo::id);
    named.devices.push_back(device == found.devices.end() ? process_manager().find(request) : *device);
  }
  return named;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    if (std::string word = without_spaces(text.substr(at, end - at)); !word.empty()) words.push_back(std::move(word));
    at = end + 1;
  }
  return words;
}

void print_table(const Detection& found, const Console& console) {
  console.out << present::device_table(found.devices, console.style());
  for (const std::string& note : found.notes) console.out << "note: " << note << '\n';
}

void print_facts(const Detection& found, const Console& console) {
  for (const DeviceInfo& device : found.devices) {
    console.out << console.bold(fmt::format("{}  {}", device.id, device.name)) << '\n';
    if (!device.available) console.out << fmt::format("  not available: {}\n  {}\n", device.reason, device.remedy);
    for (const auto& [key, value] : present::device_facts(device)) console.out << fmt::format("  {:<20}{}\n", key, value);
  }
}

void print_fields(const Detection& found, const std::vector<std::string>& fields, const Console& console) {
  present::Rows rows{fields};
  for (const DeviceInfo& device : found.devices) {
    rows.emplace_back();
    for (const std::string& field : fields) {
      const std::string text = present::device_field(device, field);
      rows.back().push_back(text.empty() ? present::kNothing : text);
    }
  }
  console.out << present::table(rows, console.style());
}

WriteMembers members_of(const Detection& found, bool ids_alone) {
  return [&found, ids_alone](JsonWriter& json) {
    json.key(std::string_view(ids_alone ? "ids" : "devices")).begin_array();
    for (const DeviceInfo& device : found.devices) {
      if (ids_alone)
        json.value(device.id);
      else
        present::write_device(json, device);
    }
    json.end_array();
    if (!ids_alone) json.list("notes", found.notes);
  };
}

int schema_of(bool ids_alone) { return ids_alone ? 1 : 2; }

void print(const Detection& found, const DevicesArguments& arguments, const Console& console) {
  const std::vector<std::string> fields = split(arguments.fields);
  if (arguments.ids) {
    for (const DeviceInfo& device : found.devices) console.out << device.id << '\n';
  } else if (arguments.format == "csv") {
    console.out << present::device_csv(found.devices, fields.empty() ? present::device_field_names() : fields);
  } else if (!fields.empty()) {
    print_fields(found, fields, console);
  } else if (!arguments.devices.empty()) {
    print_facts(found, console);
  } else {
    print_table(found, console);
  }
}

void check(const DevicesArguments& arguments, const Session& session) {
  const bool is_formatted = !arguments.fields.empty() || arguments.format != "table";
  if (session.json && is_formatted)
    throw Error(ErrorCode::invalid_argument, "--json and --fields or --format cannot be combined", "use only one of them");
  if (arguments.ids && is_formatted)
    throw Error(ErrorCode::invalid_argument, "--ids and --fields or --format cannot be combined", "use --fields id");
}

int list_devices(const DevicesArguments& arguments, const Session& session) {
  check(arguments, session);
  const Detection found = chosen(arguments);
  if (session.json)
    print_document(session.console.out, schema_of(arguments.ids), members_of(found, arguments.ids));
  else
    print(found, arguments, session.console);
  return 0;
}

int watch_devices(const DevicesArguments& arguments, const Session& session) {
  check(arguments, session);
  for (int i = 0; arguments.count == 0 || i < arguments.count; ++i) {
    if (i > 0) std::this_thread::sleep_for(std::chrono::duration<double>(arguments.interval_seconds));
    const Detection found = chosen(arguments);
    if (session.json) {
      session.console.out << document(schema_of(arguments.ids), members_of(found, arguments.ids)) << '\n';
    } else {
      if (session.console.out_is_terminal) session.console.out << "\033[H\033[J";
      print(found, arguments, session.console);
    }
    if (!session.console.out.flush()) break;
  }
  return 0;
}

}  // namespace

void add_devices_command(Command& app, Session& session) {
  auto arguments = std::make_shared<DevicesArguments>();
  Command* command = app.add_subcommand("devices", "List the devices of this machine without opening them");
  command->add_option("device", arguments->devices, "Show all that is known of these devices")->type_name("DEVICE");
  command->add_flag("--ids", arguments->ids, "Print only the ids, one per line; with --json as a list");
  command->add_flag("--all", arguments->all, "Include the CPU through other drivers");
  command->add_option("--fields", arguments->fields, "Print these properties, separated by commas; names as in --json")
      ->type_name("FIELD,FIELD");
  command->add_option("--format", arguments->format, "table or csv")->check(one_of({"table", "csv"}))->type_name("FORMAT");
  Option* watch = command->add_flag("--watch", arguments->watch, "Repeat the list; with --json one line each time");
  command->add_option("--interval", arguments->interval_seconds, "Seconds between updates; 1 by default")
      ->check(in_range(0.01, 86400.0))
      ->needs(watch)
      ->type_name("SECONDS");
  command->add_option("--count", arguments->count, "Stop after this many updates")
      ->check(in_range(1, 1000000000))
      ->needs(watch)
      ->type_name("N");
  add_output_options(*command, session);
  command->footer(kNotes);
  command->callback([arguments, &session] {
    session.action = [arguments, &session] {
      return arguments->watch ? watch_devices(*arguments, session) : list_devices(*arguments, session);
    };
  });
}

}  // namespace tenon::cli

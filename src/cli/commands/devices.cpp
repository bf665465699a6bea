#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <thread>

#include "cli/commands/commands.h"
#include "cli/json.h"
#include "cli/option_checks.h"
#include "present/device.h"
#include "tenon/manager.h"

namespace tenon::cli {
namespace {

struct DevicesArguments {
  bool watch = false, ids = false;
  double interval_seconds = 1;
  int count = 0;  // 0: until interrupted
};

void print_table(const Detection& found, const Console& console) {
  console.out << present::device_table(found.devices, console.style());
  for (const std::string& note : found.notes) console.out << "note: " << note << '\n';
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

void print(const Detection& found, bool ids_alone, const Console& console) {
  if (!ids_alone) return print_table(found, console);
  for (const DeviceInfo& device : found.devices) console.out << device.id << '\n';
}

int list_devices(const DevicesArguments& arguments, const Session& session) {
  const Detection found = process_manager().detect();
  if (session.json)
    print_document(session.console.out, schema_of(arguments.ids), members_of(found, arguments.ids));
  else
    print(found, arguments.ids, session.console);
  return 0;
}

int watch_devices(const DevicesArguments& arguments, const Session& session) {
  for (int i = 0; arguments.count == 0 || i < arguments.count; ++i) {
    if (i > 0) std::this_thread::sleep_for(std::chrono::duration<double>(arguments.interval_seconds));
    const Detection found = process_manager().detect();
    if (session.json) {
      session.console.out << document(schema_of(arguments.ids), members_of(found, arguments.ids)) << '\n';
    } else {
      if (session.console.out_is_terminal) session.console.out << "\033[H\033[J";
      print(found, arguments.ids, session.console);
    }
    if (!session.console.out.flush()) break;
  }
  return 0;
}

}  // namespace

void add_devices_command(Command& app, Session& session) {
  auto arguments = std::make_shared<DevicesArguments>();
  Command* command = app.add_subcommand("devices", "List the devices of this machine without opening them");
  command->add_flag("--ids", arguments->ids, "Print only the ids, one per line; with --json as a list");
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
  command->footer("Examples:\n  tenon devices\n  tenon devices --json\n  tenon devices --watch --interval 5");
  command->callback([arguments, &session] {
    session.action = [arguments, &session] {
      return arguments->watch ? watch_devices(*arguments, session) : list_devices(*arguments, session);
    };
  });
}

}  // namespace tenon::cli

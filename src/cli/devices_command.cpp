#include <fmt/format.h>

#include <algorithm>

#include "cli/commands.h"
#include "cli/json.h"
#include "cli/units.h"
#include "tenon/manager.h"

namespace tenon::cli {
namespace {

int list_devices(const Session& session) {
  const std::vector<DeviceInfo> devices = process_manager().devices();
  if (session.json) {
    boost::json::array list;
    for (const DeviceInfo& device : devices) list.push_back(to_json(device));
    session.console.out << to_text(boost::json::object{{"schema", 1}, {"devices", std::move(list)}});
    return 0;
  }
  std::vector<std::vector<std::string>> rows{{"ID", "KIND", "MEMORY", "BACKENDS", "NAME"}};
  for (const DeviceInfo& device : devices)
    rows.push_back({device.id, std::string(name(device.kind)),
                    device.memory_total_bytes ? format_bytes(static_cast<double>(*device.memory_total_bytes)) : "-",
                    fmt::format("{}", fmt::join(device.backends, ",")), device.name});
  std::vector<std::size_t> widths(rows[0].size());
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::string line;
    for (std::size_t i = 0; i + 1 < widths.size(); ++i) line += fmt::format("{:<{}}  ", rows[r][i], widths[i]);
    line += rows[r].back();
    session.console.out << (r == 0 ? session.console.bold(line) : line) << '\n';
    if (r == 0 || devices[r - 1].available) continue;
    session.console.out << fmt::format("  not available: {}\n", devices[r - 1].reason);
    if (!devices[r - 1].remedy.empty()) session.console.out << fmt::format("  {}\n", devices[r - 1].remedy);
  }
  return 0;
}

}  // namespace

void add_devices_command(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand("devices", "List the devices of this machine; opens none of them");
  add_output_options(*command, session);
  command->footer("Examples:\n  tenon devices\n  tenon devices --json");
  command->callback([&session] { session.action = [&session] { return list_devices(session); }; });
}

}  // namespace tenon::cli

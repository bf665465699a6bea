#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/json.h"
#include "manager/config/settings.h"
#include "tenon/error.h"

namespace tenon::cli {
namespace {

namespace json = boost::json;

constexpr const char* kNotes = R"(A value comes from the strongest of: a flag of any command (--set NAME=VALUE, --sim TEXT), the
environment (TENON_NAME), the configuration file, the built-in default. The file is the one
--config or TENON_CONFIG names, else $XDG_CONFIG_HOME/tenon/config.toml, else
~/.config/tenon/config.toml, else /etc/tenon/config.toml. It is TOML:

  prefer = "gpu"
  memory_strategy = "conservative"
  platform_priority = ["tpu", "gpu", "cpu"]

  [prices]                       # US dollars an hour, by id, kind or name
  "cuda:0" = 3.5

  [environment]                  # set before a backend loads
  XLA_PYTHON_CLIENT_PREALLOCATE = "false"

  [[sim]]                        # a device that does not exist
  architecture = "wormhole"
  open = 0.1

Examples:
  tenon config
  tenon config memory_strategy
  tenon config --set memory_fraction=0.5 --json
  TENON_PREFER=cpu tenon config prefer)";

struct Row {
  const Setting* setting;
  std::string value, origin, default_value;
};

std::vector<Row> rows_of(const LoadedConfig& loaded, const ConfigEnvironment& environment) {
  std::vector<Row> rows;
  for (const Setting& setting : settings()) {
    const std::string& origin = loaded.origins.at(setting.name);
    if (setting.get) {
      rows.push_back({&setting, setting.get(loaded.config), origin, setting.get(Config{})});
    } else {
      const std::string given = environment(setting.variables.at(0).c_str());
      rows.push_back({&setting, given.empty() ? setting.environment_only : given, origin, setting.environment_only});
    }
  }
  return rows;
}

json::object to_json(const Row& row) {
  const Setting& setting = *row.setting;
  return {{"name", setting.name},   {"value", row.value},
          {"origin", row.origin},   {"default", row.default_value},
          {"takes", setting.takes}, {"variables", json::array(setting.variables.begin(), setting.variables.end())},
          {"group", setting.group}, {"doc", setting.doc}};
}

std::string shown(const std::string& value) { return value.empty() ? "(empty)" : value; }

void print_one(const Row& row, const Console& console) {
  const Setting& setting = *row.setting;
  console.out << console.bold(setting.name) << fmt::format(" = {}\n", shown(row.value));
  const auto line = [&](const char* label, const std::string& text) { console.out << fmt::format("  {:<10}{}\n", label, text); };
  line("from", row.origin);
  line("default", shown(row.default_value));
  line("takes", setting.takes);
  if (!setting.variables.empty()) line("variable", fmt::format("{}", fmt::join(setting.variables, ", then ")));
  line("", setting.doc);
}

void print_all(const std::vector<Row>& rows, const LoadedConfig& loaded, const Console& console) {
  std::size_t widest = 0;
  for (const Row& row : rows) widest = std::max(widest, shown(row.value).size());
  widest = std::min<std::size_t>(widest, 40);
  std::string group;
  for (const Row& row : rows) {
    if (row.setting->group != group) {
      console.out << (group.empty() ? "" : "\n") << console.bold(row.setting->group) << '\n';
      group = row.setting->group;
    }
    const std::string origin = row.origin == "default" ? console.dim(row.origin) : row.origin;
    console.out << fmt::format("  {:<22}  {:<{}}  {}\n", row.setting->name, shown(row.value), widest, origin);
  }
  console.out << '\n'
              << console.dim(loaded.file.empty() ? "no configuration file" : fmt::format("file: {}", loaded.file)) << '\n';
}

int show(const std::string& name, const Session& session) {
  const LoadedConfig loaded = load_config(session.config_sources());
  std::vector<Row> rows = rows_of(loaded, session.console.environment);
  if (!name.empty()) {
    const Setting& wanted = find_setting(name);
    std::erase_if(rows, [&](const Row& row) { return row.setting != &wanted; });
  }
  if (session.json) {
    json::array list;
    for (const Row& row : rows) list.push_back(to_json(row));
    session.console.out << to_text(json::object{{"schema", 1},
                                                {"file", loaded.file.empty() ? json::value() : json::value(loaded.file)},
                                                {"settings", std::move(list)},
                                                {"warnings", json::array(loaded.warnings.begin(), loaded.warnings.end())}});
    return 0;
  }
  if (name.empty()) {
    print_all(rows, loaded, session.console);
  } else {
    print_one(rows.at(0), session.console);
  }
  return 0;
}

}  // namespace

void add_config_command(Command& app, Session& session) {
  auto name = std::make_shared<std::string>();
  Command* command = app.add_subcommand("config", "Show every setting, its value and where that came from");
  command->add_option("name", *name, "Explain this one")->type_name("SETTING");
  add_output_options(*command, session);
  command->footer(kNotes);
  command->callback([name, &session] { session.action = [name, &session] { return show(*name, session); }; });
}

}  // namespace tenon::cli

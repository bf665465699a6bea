#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/json.h"
#include "manager/config/settings.h"
#include "tenon/error.h"

namespace tenon::cli {
namespace {

constexpr const char* kNotes = R"(In order of precedence, a value comes from a flag of any command (--set NAME=VALUE, --sim TEXT),
the environment (TENON_NAME), the configuration file, or the built-in default. The file is the
one named by --config or TENON_CONFIG, else $XDG_CONFIG_HOME/tenon/config.toml, else
~/.config/tenon/config.toml, else /etc/tenon/config.toml. It is TOML:

  prefer = "gpu"
  memory_strategy = "conservative"
  platform_priority = ["tpu", "gpu", "cpu"]

  [prices]                       # US dollars per hour, by id, kind or name
  "cuda:0" = 3.5

  [environment]                  # set before a backend loads
  XLA_PYTHON_CLIENT_PREALLOCATE = "false"

  [[sim]]                        # a simulated device
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

void write(JsonWriter& json, const Row& row) {
  const Setting& setting = *row.setting;
  json.begin_object();
  json.member("name", setting.name);
  json.member("value", row.value);
  json.member("origin", row.origin);
  json.member("default", row.default_value);
  json.member("takes", setting.takes);
  json.list("variables", setting.variables);
  json.member("group", setting.group);
  json.member("doc", setting.doc);
  json.end_object();
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
    print_document(session.console.out, 1, [&](JsonWriter& json) {
      json.text_or_null("file", loaded.file);
      json.key("settings").begin_array();
      for (const Row& row : rows) write(json, row);
      json.end_array();
      json.list("warnings", loaded.warnings);
    });
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
  Command* command = app.add_subcommand("config", "Show every setting, its value and the source of the value");
  command->add_option("name", *name, "Explain only this setting")->type_name("SETTING");
  add_output_options(*command, session);
  command->footer(kNotes);
  command->callback([name, &session] { session.action = [name, &session] { return show(*name, session); }; });
}

}  // namespace tenon::cli

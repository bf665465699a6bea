// Settings: the table of all settings, and the origin of each value.
//
// A setting is a field of Config with a name, bounds, environment variables and one line of documentation. The flag --set, the
// environment and the configuration file use the same parser, with the precedence flag > environment > file > default. The
// command, the documents and the tests read this table; no other list of settings exists.
//
//   LoadedConfig loaded = load_config({.flags = {{"memory_strategy", "conservative"}}});
//   DeviceManager manager(loaded.config);
//   loaded.origins.at("prefer")      // "COMPUTE_PREFER", "~/.config/tenon/config.toml line 3", "default"
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tenon/manager/config.h"

namespace tenon {

class Graph;

struct Setting {
  std::string name;                    // also the key in the file and in --set
  std::string group;                   // of the listing: "Memory"
  std::string takes;                   // the accepted values: "a number from 0.1 to 1", "true or false"
  std::vector<std::string> variables;  // of the environment, in order of precedence
  std::string doc;                     // one line
  std::string environment_only = {};   // if it is not a field of Config: its value if the variable is unset

  std::function<std::string(const Config&)> get = {};
  // Throws invalid_argument whose message is |takes|; the caller adds name and origin.
  std::function<void(Config&, const std::string&)> set = {};
  // If it is not a field of Config: whether a value has an effect. A value without effect counts as unset and causes a warning.
  std::function<bool(const std::string&)> has_effect = {};
};

// In the order they are applied and listed.
std::span<const Setting> settings();
// Throws not_found with the nearest name. "prices.cuda:0" finds prices.
const Setting& find_setting(std::string_view name);

using ConfigEnvironment = std::function<std::string(const char*)>;  // "" when unset
std::string process_variable(const char* name);

struct ConfigSources {
  std::string file = {};                                        // --config; "": $TENON_CONFIG, or the usual places
  std::vector<std::pair<std::string, std::string>> flags = {};  // --set, in order
  std::vector<std::string> simulated = {};                      // --sim, in order; replaces the configured ones
  ConfigEnvironment environment = process_variable;
  std::string system_file = "/etc/tenon/config.toml";
};

struct LoadedConfig {
  Config config;
  std::map<std::string, std::string> origins;  // by name of setting: "default", a variable, "--set", "FILE line 3"
  std::string file;                            // the file that was read; "" for none
  std::vector<std::string> warnings;           // sentences: values without effect, misspelt variables
};

// Throws invalid_argument naming setting, value and origin; not_found if a requested file does not exist.
LoadedConfig load_config(const ConfigSources& sources = {});

// "name=value" of --set. Throws invalid_argument.
std::pair<std::string, std::string> parse_assignment(std::string_view text);

// The file that would be read; "" for none. Throws not_found if a file is named but missing.
std::string find_config_file(const ConfigSources& sources);

// One value of a file, as text for the table's parsers.
struct FileValue {
  std::string name;   // "prefer", "prices.cuda:0", "sim"
  std::string value;  // lists are joined by commas, a table of sim by "key=value,..."
  int line = 0;
};
// Throws not_found, permission_denied; invalid_argument with the line if the file is not valid TOML; unimplemented if this build
// has no TOML parser.
std::vector<FileValue> read_config_file(const std::string& path);
bool can_read_config_files() noexcept;

// Sets Config::environment in this process. To be called before the first backend loads, while no other thread reads the
// environment.
void apply_environment(const Config& config);

// Throws invalid_argument for a program with 64-bit results if the configuration does not allow them.
void check_results(const Config& config, const Graph& graph);

}  // namespace tenon

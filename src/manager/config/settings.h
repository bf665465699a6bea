// Settings: the one table of everything that can be set, and where each value came from.
//
// A setting is a field of Config with a name, bounds, environment variables and a line of explanation. The flag --set, the
// environment and the configuration file all go through the same parser: flag > environment > file > default. The command, the
// documents and the tests read this table; nothing else lists settings.
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

#include "tenon/config.h"

namespace tenon {

class Graph;

struct Setting {
  std::string name;                    // also the key in the file and in --set
  std::string group;                   // of the listing: "Memory"
  std::string takes;                   // what values are accepted: "a number from 0.1 to 1", "true or false"
  std::vector<std::string> variables;  // of the environment, the strongest first
  std::string doc;                     // one line
  std::string environment_only = {};   // for what is no field of Config: its value when the variable is not set

  std::function<std::string(const Config&)> get = {};
  // Throws invalid_argument whose message is |takes|; the caller adds name and origin.
  std::function<void(Config&, const std::string&)> set = {};
  // Of what is no field of Config: whether a value has an effect. One that has none counts as unset, and is warned of.
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
  std::vector<std::string> simulated = {};                      // --sim, in order; the configured ones are left out then
  ConfigEnvironment environment = process_variable;
  std::string system_file = "/etc/tenon/config.toml";
};

struct LoadedConfig {
  Config config;
  std::map<std::string, std::string> origins;  // by name of setting: "default", a variable, "--set", "FILE line 3"
  std::string file;                            // read; "" for none
  std::vector<std::string> warnings;           // sentences: values without effect, misspelt variables
};

// Throws invalid_argument naming setting, value and origin; not_found for a file that was asked for and is not there.
LoadedConfig load_config(const ConfigSources& sources = {});

// "name=value" of --set. Throws invalid_argument.
std::pair<std::string, std::string> parse_assignment(std::string_view text);

// The file that would be read; "" for none. Throws not_found for one that is named and missing.
std::string find_config_file(const ConfigSources& sources);

// One value of a file, as text the table's parsers take.
struct FileValue {
  std::string name;   // "prefer", "prices.cuda:0", "sim"
  std::string value;  // lists are joined by commas, a table of sim by "key=value,..."
  int line = 0;
};
// Throws not_found, permission_denied; invalid_argument with the line for what is no TOML; unimplemented where this build has no
// reader of TOML.
std::vector<FileValue> read_config_file(const std::string& path);
bool can_read_config_files() noexcept;

// Sets Config::environment in this process. To be called before the first backend loads, while no other thread reads the
// environment.
void apply_environment(const Config& config);

// Throws invalid_argument for a program with 64-bit results where the configuration allows none.
void check_results(const Config& config, const Graph& graph);

}  // namespace tenon

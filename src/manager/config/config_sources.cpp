// Where a configuration comes from: flags over the environment over a file over the defaults.
#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "manager/config/settings.h"
#include "ops/names.h"
#include "tenon/error.h"

namespace tenon {
namespace {

// Text of |value| as it was given, cut where it is long.
std::string excerpt(const std::string& value) { return value.size() <= 60 ? value : value.substr(0, 57) + "..."; }

class Loader {
 public:
  explicit Loader(const ConfigSources& sources) : sources_(sources) {}

  LoadedConfig load() {
    for (const Setting& setting : settings()) loaded_.origins[setting.name] = "default";
    apply_file();
    apply_environment_variables();
    apply_flags();
    check();
    return std::move(loaded_);
  }

 private:
  struct Given {
    const Setting* setting = nullptr;
    std::string entry;  // of a table: what follows the dot
    std::string value, origin;
  };

  void apply(const Given& given) {
    const Setting& setting = *given.setting;
    if (!setting.set)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: {} can only be set by the environment", given.origin, setting.name),
                  fmt::format("set the variable {}", setting.variables.at(0)));
    const std::string text = given.entry.empty() ? given.value : given.entry + "=" + given.value;
    try {
      setting.set(loaded_.config, text);
    } catch (const Error& error) {
      // The simulated devices' parser says itself what is wrong with which key.
      if (setting.name == "sim") throw Error(error.code(), fmt::format("{}: {}", given.origin, error.what()), error.hint());
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: {} is '{}', not {}", given.origin, setting.name, excerpt(text), error.what()),
                  fmt::format("tenon config --help explains settings; the default of {} is {}", setting.name,
                              setting.get(Config{}).empty() ? "empty" : setting.get(Config{})));
    }
    loaded_.origins[setting.name] = given.origin;
    if (setting.name == "memory_fraction") loaded_.origins["memory_strategy"] = given.origin;
  }

  // Values of one place, in the table's order: that of memory_fraction and memory_strategy matters.
  void apply_all(const std::vector<Given>& values) {
    const Given *fraction = nullptr, *strategy = nullptr;
    for (const Setting& setting : settings())
      for (const Given& given : values) {
        if (given.setting != &setting) continue;
        apply(given);
        if (setting.name == "memory_fraction") fraction = &given;
        if (setting.name == "memory_strategy") strategy = &given;
      }
    if (fraction && strategy && loaded_.config.memory_fraction && strategy->value != name(MemoryStrategy::custom))
      loaded_.warnings.push_back(fmt::format("{}: memory_strategy {} has no effect, because memory_fraction is {}",
                                             strategy->origin, strategy->value, fraction->value));
  }

  Given given(const std::string& name, std::string value, std::string origin) const {
    try {
      const Setting& setting = find_setting(name);
      const std::size_t dot = name.find('.');
      return {&setting, dot == std::string::npos ? "" : name.substr(dot + 1), std::move(value), std::move(origin)};
    } catch (const Error& error) {
      throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}", origin, error.what()), error.hint());
    }
  }

  void apply_file() {
    loaded_.file = find_config_file(sources_);
    if (loaded_.file.empty()) return;
    std::vector<Given> values;
    for (FileValue& entry : read_config_file(loaded_.file)) {
      const std::string origin = fmt::format("{} line {}", loaded_.file, entry.line);
      Given value = given(entry.name, entry.value, origin);
      // The environment is stronger than the file, for the variables that the file would set, too.
      if (value.setting->name == "environment" && !value.entry.empty())
        if (const std::string already = sources_.environment(value.entry.c_str()); !already.empty()) value.value = already;
      values.push_back(std::move(value));
    }
    apply_all(joined(std::move(values)));
  }

  // Several entries of [[sim]] are one value.
  static std::vector<Given> joined(std::vector<Given> values) {
    std::vector<Given> result;
    for (Given& value : values) {
      const auto same = std::find_if(result.begin(), result.end(), [&](const Given& other) {
        return value.setting->name == "sim" && other.setting == value.setting;
      });
      if (same == result.end()) {
        result.push_back(std::move(value));
      } else {
        same->value += ";" + value.value;
      }
    }
    return result;
  }

  void apply_environment_variables() {
    std::vector<Given> values;
    for (const Setting& setting : settings())
      for (const std::string& variable : setting.variables) {
        std::string value = sources_.environment(variable.c_str());
        if (value.empty()) continue;
        if (setting.set) {
          values.push_back({&setting, "", std::move(value), variable});
        } else {
          loaded_.origins[setting.name] = variable;
          if (setting.has_effect && !setting.has_effect(value))
            loaded_.warnings.push_back(
                fmt::format("{} is '{}', not {}; it counts as unset", variable, excerpt(value), setting.takes));
        }
        break;  // the first of a setting's variables is the strongest
      }
    apply_all(values);
    warn_of_misspelt_variables();
  }

  void warn_of_misspelt_variables() {
    std::vector<std::string> known{"TENON_LEASE", "TENON_WORKER", "TENON_CONFIG", "TENON_LOG_FORMAT"};  // not settings
    for (const Setting& setting : settings()) known.insert(known.end(), setting.variables.begin(), setting.variables.end());
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
      const std::string_view text = *entry;
      const std::string variable(text.substr(0, text.find('=')));
      if (!variable.starts_with("TENON_") && !variable.starts_with("COMPUTE_")) continue;
      // An injected environment may not have what this process has.
      if (sources_.environment(variable.c_str()).empty()) continue;
      if (std::find(known.begin(), known.end(), variable) != known.end()) continue;
      if (const std::string near = nearest(variable, known); !near.empty())
        loaded_.warnings.push_back(fmt::format("{} is set, and no setting has that variable; did you mean {}?", variable, near));
    }
  }

  void apply_flags() {
    std::vector<Given> values;
    for (const auto& [name, value] : sources_.flags) values.push_back(given(name, value, "--set"));
    if (!sources_.simulated.empty())
      values.push_back(given("sim", fmt::format("{}", fmt::join(sources_.simulated, ";")), "--sim"));
    apply_all(values);
  }

  void check() {
    try {
      loaded_.config.check();
    } catch (const Error& error) {
      throw Error(error.code(), error.what(), error.hint().empty() ? "tenon config --help explains settings" : error.hint());
    }
  }

  const ConfigSources& sources_;
  LoadedConfig loaded_;
};

bool is_file(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

}  // namespace

std::string process_variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::string find_config_file(const ConfigSources& sources) {
  const auto named = [](const std::string& path, const char* origin) {
    if (!is_file(path))
      throw Error(ErrorCode::not_found, fmt::format("the configuration file {}, set by {}, does not exist", path, origin));
    return path;
  };
  if (!sources.file.empty()) return named(sources.file, "--config");
  if (const std::string path = sources.environment("TENON_CONFIG"); !path.empty()) return named(path, "TENON_CONFIG");
  if (const std::string folder = sources.environment("XDG_CONFIG_HOME"); !folder.empty()) {
    if (const std::string path = folder + "/tenon/config.toml"; is_file(path)) return path;
  } else if (const std::string home = sources.environment("HOME"); !home.empty()) {
    if (const std::string path = home + "/.config/tenon/config.toml"; is_file(path)) return path;
  }
  return is_file(sources.system_file) ? sources.system_file : "";
}

std::pair<std::string, std::string> parse_assignment(std::string_view text) {
  const std::size_t mark = text.find('=');
  if (mark == std::string_view::npos || mark == 0)
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is not of the form NAME=VALUE", text),
                "for example: --set prefer=gpu");
  return {std::string(text.substr(0, mark)), std::string(text.substr(mark + 1))};
}

LoadedConfig load_config(const ConfigSources& sources) { return Loader(sources).load(); }

}  // namespace tenon

#include <nanobind/stl/string.h>

#include <string>

#include "devices.h"
#include "manager/config/settings.h"
#include "tenon/device/simulated.h"
#include "tenon/error.h"
#include "tenon/manager.h"

namespace nb = nanobind;

namespace tenon::python {
namespace {

Config changed(nb::dict values) {
  Config config = process_manager().config();
  for (const auto& [name, value] : values) {
    const Setting& setting = find_setting(nb::cast<std::string>(name));
    const std::string text = nb::cast<std::string>(value);
    if (!setting.set)
      throw Error(ErrorCode::invalid_argument, setting.name + " can only be set by an environment variable",
                  "set " + setting.variables.at(0) + " before the first use");
    try {
      setting.set(config, text);
    } catch (const Error& error) {
      throw Error(error.code(), setting.name + " is '" + text + "', but must be " + error.what(), error.hint());
    }
  }
  config.check();
  return config;
}

}  // namespace

void bind_config(nb::module_& module) {
  module.def("_config_set", [](nb::dict values) { set_process_config(changed(values)); });
  module.def("_config_get", [](const std::string& name) {
    const Setting& setting = find_setting(name);
    return setting.get ? setting.get(process_manager().config()) : setting.environment_only;
  });
  module.def("_settings", [] {
    nb::list all;
    for (const Setting& setting : settings()) all.append(nb::make_tuple(setting.name, setting.group, setting.takes, setting.doc));
    return all;
  });
  // Devices of a new manager; returns the ids of those that are simulated now.
  module.def("_simulate", [](const std::string& text) {
    Config config = process_manager().config();
    config.simulated.push_back(parse_simulated(text));
    set_process_config(std::move(config));
    nb::list ids;
    for (const DeviceInfo& device : process_manager().devices())
      if (is_simulated(device)) ids.append(device.id);
    return ids;
  });
  module.def("_simulate_nothing", [] {
    Config config = process_manager().config();
    config.simulated.clear();
    set_process_config(std::move(config));
  });
}

}  // namespace tenon::python

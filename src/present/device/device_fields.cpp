#include "present/device/device_fields.h"

#include <fmt/format.h>

#include <algorithm>

#include "ops/names.h"
#include "tenon/device/simulated.h"
#include "tenon/error.h"

namespace tenon::present {
namespace {

struct Field {
  const char* name;
  std::string (*text)(const DeviceInfo&);
};

template <class T>
std::string or_empty(const std::optional<T>& value) {
  return value ? fmt::format("{}", *value) : "";
}
std::string yes_no(bool value) { return value ? "true" : "false"; }

constexpr Field kFields[] = {{"id", [](const DeviceInfo& d) { return d.id; }},
                             {"kind", [](const DeviceInfo& d) { return std::string(name(d.kind)); }},
                             {"name", [](const DeviceInfo& d) { return d.name; }},
                             {"simulated", [](const DeviceInfo& d) { return yes_no(is_simulated(d)); }},
                             {"vendor", [](const DeviceInfo& d) { return d.vendor; }},
                             {"architecture", [](const DeviceInfo& d) { return d.architecture; }},
                             {"backends", [](const DeviceInfo& d) { return fmt::format("{}", fmt::join(d.backends, " ")); }},
                             {"aliases", [](const DeviceInfo& d) { return fmt::format("{}", fmt::join(d.aliases, " ")); }},
                             {"same_as", [](const DeviceInfo& d) { return d.same_as; }},
                             {"available", [](const DeviceInfo& d) { return yes_no(d.available); }},
                             {"reason", [](const DeviceInfo& d) { return d.reason; }},
                             {"remedy", [](const DeviceInfo& d) { return d.remedy; }},
                             {"exclusive", [](const DeviceInfo& d) { return yes_no(d.exclusive); }},
                             {"memory_total_bytes", [](const DeviceInfo& d) { return or_empty(d.memory_total_bytes); }},
                             {"memory_free_bytes", [](const DeviceInfo& d) { return or_empty(d.memory_free_bytes); }},
                             {"pci_address", [](const DeviceInfo& d) { return d.pci_address; }},
                             {"uuid", [](const DeviceInfo& d) { return d.uuid; }},
                             {"serial", [](const DeviceInfo& d) { return d.serial; }},
                             {"numa_node", [](const DeviceInfo& d) { return or_empty(d.numa_node); }},
                             {"compute_capability", [](const DeviceInfo& d) { return d.compute_capability; }},
                             {"driver_version", [](const DeviceInfo& d) { return d.driver_version; }},
                             {"runtime_version", [](const DeviceInfo& d) { return d.runtime_version; }},
                             {"firmware_version", [](const DeviceInfo& d) { return d.firmware_version; }},
                             {"power_watts", [](const DeviceInfo& d) { return or_empty(d.power_watts); }},
                             {"power_limit_watts", [](const DeviceInfo& d) { return or_empty(d.power_limit_watts); }},
                             {"temperature_celsius", [](const DeviceInfo& d) { return or_empty(d.temperature_celsius); }},
                             {"cost_per_hour", [](const DeviceInfo& d) { return or_empty(d.cost_per_hour); }},
                             {"holders", [](const DeviceInfo& d) { return fmt::format("{}", fmt::join(d.holders, " ")); }},
                             {"node", [](const DeviceInfo& d) {
                                const auto node = d.details.find("node");
                                return node == d.details.end() ? std::string() : node->second;
                              }}};

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

}  // namespace

std::vector<std::string> device_field_names() {
  std::vector<std::string> names;
  for (const Field& field : kFields) names.emplace_back(field.name);
  return names;
}

std::string device_field(const DeviceInfo& device, std::string_view field) {
  for (const Field& known : kFields)
    if (field == known.name) return known.text(device);
  // Properties that only some devices have.
  if (const auto detail = device.details.find(std::string(field)); detail != device.details.end()) return detail->second;
  const std::vector<std::string> names = device_field_names();
  const std::string near = nearest(field, names);
  throw Error(ErrorCode::invalid_argument, fmt::format("a device has no field '{}'", field),
              near.empty() ? fmt::format("fields: {}", fmt::join(names, ", ")) : fmt::format("did you mean '{}'?", near));
}

std::string device_csv(std::span<const DeviceInfo> devices, std::span<const std::string> fields) {
  std::string out = fmt::format("{}\n", fmt::join(fields, ","));
  for (const DeviceInfo& device : devices) {
    for (std::size_t i = 0; i < fields.size(); ++i) out += (i == 0 ? "" : ",") + quoted(device_field(device, fields[i]));
    out += '\n';
  }
  return out;
}

}  // namespace tenon::present

#include "present/device/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "base/text/units.h"
#include "tenon/device/simulated.h"

namespace tenon::present {
namespace {

std::string memory_text(const std::optional<std::uint64_t>& bytes) {
  return bytes ? format_bytes(static_cast<double>(*bytes)) : kNothing;
}

std::string number_text(const std::optional<double>& value, const char* unit) {
  return value ? fmt::format("{:.0f} {}", *value, unit) : kNothing;
}

Rows without_empty_columns(const Rows& rows) {
  Rows kept(rows.size());
  for (std::size_t column = 0; column < rows[0].size(); ++column) {
    if (std::all_of(rows.begin() + 1, rows.end(), [&](const auto& row) { return row[column] == kNothing; })) continue;
    for (std::size_t r = 0; r < rows.size(); ++r) kept[r].push_back(rows[r][column]);
  }
  return kept;
}

void write_identity(JsonWriter& json, const DeviceInfo& device) {
  json.member("id", device.id);
  json.member("kind", name(device.kind));
  json.member("name", device.name);
  json.member("simulated", is_simulated(device));
}

}  // namespace

void write_device_brief(JsonWriter& json, const DeviceInfo& device) {
  json.begin_object();
  write_identity(json, device);
  // Of a device that computes in tiers: which one it was, and what drove it.
  if (const auto tier = device.details.find("tier"); tier != device.details.end()) {
    json.member("tier", tier->second);
    // Which ops ran in which tier.
    json.key("tiers");
    json.begin_object();
    for (const char* const each : {"fast", "exact"})
      if (const auto ops = device.details.find(std::string("ops ") + each); ops != device.details.end()) {
        json.key(std::string_view(each));
        json.begin_array();
        std::istringstream words(ops->second);
        for (std::string word; words >> word;) json.value(word);
        json.end_array();
      }
    json.end_object();
    json.text_or_null("architecture", device.architecture);
    json.text_or_null("firmware_version", device.firmware_version);
    for (const auto& [key, name] : {std::pair("ttnn", "runtime"), {"simulator", "simulator"}, {"stand_in", "stand_in"}})
      if (const auto found = device.details.find(key); found != device.details.end())
        json.member(std::string_view(name), found->second);
  }
  json.end_object();
}

void write_searched(JsonWriter& json, std::span<const SearchResult> searched) {
  json.begin_array();
  for (const SearchResult& vendor : searched) {
    json.begin_object();
    json.member("id", vendor.id);
    json.member("vendor", vendor.vendor);
    json.member("found", vendor.is_found);
    json.member("text", vendor.text);
    json.text_or_null("remedy", vendor.remedy);
    json.end_object();
  }
  json.end_array();
}

void write_device_members(JsonWriter& json, const DeviceInfo& device) {
  write_identity(json, device);
  json.text_or_null("vendor", device.vendor);
  json.text_or_null("architecture", device.architecture);
  json.list("backends", device.backends);
  json.list("aliases", device.aliases);
  json.text_or_null("same_as", device.same_as);
  json.member("available", device.available);
  json.text_or_null("reason", device.reason);
  json.text_or_null("remedy", device.remedy);
  json.member("exclusive", device.exclusive);
  json.member("memory_total_bytes", device.memory_total_bytes);
  json.member("memory_free_bytes", device.memory_free_bytes);
  json.member("memory_is_nominal", device.memory_is_nominal);
  json.text_or_null("pci_address", device.pci_address);
  json.text_or_null("uuid", device.uuid);
  json.text_or_null("serial", device.serial);
  json.member("numa_node", device.numa_node);
  json.text_or_null("compute_capability", device.compute_capability);
  json.text_or_null("driver_version", device.driver_version);
  json.text_or_null("runtime_version", device.runtime_version);
  json.text_or_null("firmware_version", device.firmware_version);
  json.member("supports_mixed_precision", device.supports_mixed_precision);
  json.member("supports_distributed", device.supports_distributed);
  json.member("power_watts", device.power_watts);
  json.member("power_limit_watts", device.power_limit_watts);
  json.member("temperature_celsius", device.temperature_celsius);
  json.member("cost_per_hour", device.cost_per_hour);
  json.member("cost_is_estimate", device.cost_is_estimate);
  json.list("holders", device.holders);
  json.key("runtimes").begin_array();
  for (const RuntimeInfo& runtime : device.runtimes) {
    json.begin_object();
    json.member("backend", runtime.backend);
    json.member("library", runtime.library);
    json.end_object();
  }
  json.end_array();
  json.key("details").begin_object();
  for (const auto& [key, value] : device.details) json.member(key, value);
  json.end_object();
}

void write_device(JsonWriter& json, const DeviceInfo& device) {
  json.begin_object();
  write_device_members(json, device);
  json.end_object();
}

std::string device_table(std::span<const DeviceInfo> devices, const TextStyle& style, int indent) {
  if (devices.empty()) return "";
  Rows rows{{"ID", "KIND", "STATE", "MEMORY", "FREE", "TEMP", "POWER", "BACKENDS", "NAME"}};
  for (const DeviceInfo& device : devices)
    rows.push_back({device.id, std::string(name(device.kind)), device.available ? "ready" : "unusable",
                    memory_text(device.memory_total_bytes), memory_text(device.memory_free_bytes),
                    number_text(device.temperature_celsius, "C"), number_text(device.power_watts, "W"),
                    device.backends.empty() ? kNothing : fmt::format("{}", fmt::join(device.backends, ",")), device.name});
  const std::vector<std::string> lines = aligned(without_empty_columns(rows), indent);
  const std::string deeper(static_cast<std::size_t>(indent) + 2, ' ');
  std::string text = style.bold(lines[0]) + '\n';
  for (std::size_t i = 0; i < devices.size(); ++i) {
    text += lines[i + 1] + '\n';
    if (devices[i].available) continue;
    text += fmt::format("{}not available: {}\n", deeper, devices[i].reason);
    if (!devices[i].remedy.empty()) text += fmt::format("{}{}\n", deeper, devices[i].remedy);
  }
  return text;
}

std::vector<std::pair<std::string, std::string>> device_facts(const DeviceInfo& device) {
  std::vector<std::pair<std::string, std::string>> facts;
  const auto fact = [&](const char* key, const std::string& value) {
    if (!value.empty()) facts.emplace_back(key, value);
  };
  fact("aliases", fmt::format("{}", fmt::join(device.aliases, ", ")));
  fact("same hardware as", device.same_as);
  fact("vendor", device.vendor);
  fact("architecture", device.architecture);
  fact("compute capability", device.compute_capability);
  fact("PCI address", device.pci_address);
  fact("UUID", device.uuid);
  fact("serial", device.serial);
  fact("NUMA node", device.numa_node ? std::to_string(*device.numa_node) : "");
  if (device.memory_total_bytes)
    fact("memory", memory_text(device.memory_total_bytes) + (device.memory_is_nominal ? " (nominal)" : "") +
                       (device.memory_free_bytes ? ", " + memory_text(device.memory_free_bytes) + " free" : ""));
  fact("driver", device.driver_version);
  fact("runtime", device.runtime_version);
  fact("firmware", device.firmware_version);
  fact("mixed precision", device.supports_mixed_precision ? "yes" : "no");
  fact("distributed", device.supports_distributed ? "yes" : "no");
  fact("sharing", device.exclusive ? "one process at a time" : "shared");
  if (device.power_watts)
    fact("power", number_text(device.power_watts, "W") +
                      (device.power_limit_watts ? " of " + number_text(device.power_limit_watts, "W") : ""));
  if (device.temperature_celsius) fact("temperature", number_text(device.temperature_celsius, "C"));
  if (device.cost_per_hour)
    fact("cost", fmt::format("{} per hour{}", format_dollars(*device.cost_per_hour),
                             device.cost_is_estimate && *device.cost_per_hour > 0 ? " (estimate)" : ""));
  fact("in use by", device.holders.empty() ? "" : fmt::format("pid {}", fmt::join(device.holders, ", ")));
  for (const RuntimeInfo& runtime : device.runtimes) fact(runtime.backend.c_str(), runtime.library);
  for (const auto& [key, value] : device.details) {
    std::string words = key;
    std::replace(words.begin(), words.end(), '_', ' ');
    facts.emplace_back(words, value);
  }
  return facts;
}

}  // namespace tenon::present

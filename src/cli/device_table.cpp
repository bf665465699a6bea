#include "cli/device_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"

namespace tenon::cli {
namespace {

using Rows = std::vector<std::vector<std::string>>;

constexpr const char* kNothing = "-";

std::string memory_text(const std::optional<std::uint64_t>& bytes) {
  return bytes ? format_bytes(static_cast<double>(*bytes)) : kNothing;
}

std::string number_text(const std::optional<double>& value, const char* unit) {
  return value ? fmt::format("{:.0f} {}", *value, unit) : kNothing;
}

std::vector<std::string> lines_of(const Rows& rows, int indent) {
  std::vector<std::size_t> widths(rows[0].size());
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::vector<std::string> lines;
  for (const auto& row : rows) {
    std::string line(static_cast<std::size_t>(indent), ' ');
    for (std::size_t i = 0; i + 1 < row.size(); ++i) line += fmt::format("{:<{}}  ", row[i], widths[i]);
    lines.push_back(line + row.back());
  }
  return lines;
}

Rows without_empty_columns(const Rows& rows) {
  Rows kept(rows.size());
  for (std::size_t column = 0; column < rows[0].size(); ++column) {
    if (std::all_of(rows.begin() + 1, rows.end(), [&](const auto& row) { return row[column] == kNothing; })) continue;
    for (std::size_t r = 0; r < rows.size(); ++r) kept[r].push_back(rows[r][column]);
  }
  return kept;
}

}  // namespace

std::string table(const Rows& rows, const Console& console, int indent) {
  std::string text;
  const std::vector<std::string> lines = lines_of(rows, indent);
  for (std::size_t i = 0; i < lines.size(); ++i) text += (i == 0 ? console.bold(lines[i]) : lines[i]) + '\n';
  return text;
}

std::string device_table(std::span<const DeviceInfo> devices, const Console& console, int indent) {
  if (devices.empty()) return "";
  Rows rows{{"ID", "KIND", "STATE", "MEMORY", "FREE", "TEMP", "POWER", "BACKENDS", "NAME"}};
  for (const DeviceInfo& device : devices)
    rows.push_back({device.id, std::string(name(device.kind)), device.available ? "ready" : "unusable",
                    memory_text(device.memory_total_bytes), memory_text(device.memory_free_bytes),
                    number_text(device.temperature_celsius, "C"), number_text(device.power_watts, "W"),
                    device.backends.empty() ? kNothing : fmt::format("{}", fmt::join(device.backends, ",")), device.name});
  const std::vector<std::string> lines = lines_of(without_empty_columns(rows), indent);
  const std::string deeper(static_cast<std::size_t>(indent) + 2, ' ');
  std::string text = console.bold(lines[0]) + '\n';
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
    fact("cost", fmt::format("{:.2f} $ per hour{}", *device.cost_per_hour,
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

}  // namespace tenon::cli

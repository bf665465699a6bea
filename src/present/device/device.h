// A device as JSON and as text: the same for the command and the server. What is not known is null, or "-".
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/text/json_writer.h"
#include "device/advice.h"
#include "present/text.h"
#include "tenon/device.h"

namespace tenon::present {

// {"id", "kind", "name", "simulated"}: the device that computed something. A device that computes in tiers also has "tier",
// "architecture", "firmware_version" and "runtime".
void write_device_brief(JsonWriter& json, const DeviceInfo& device);
// Everything known of it.
void write_device(JsonWriter& json, const DeviceInfo& device);
// The members of that object, for one that has more.
void write_device_members(JsonWriter& json, const DeviceInfo& device);

// [{"id", "vendor", "found", "text", "remedy"}]: which accelerators were looked for, and what was found of each.
void write_searched(JsonWriter& json, std::span<const SearchResult> searched);

// One row a device; below one that cannot be used, why and what to do. Columns nobody has a value for are left out.
std::string device_table(std::span<const DeviceInfo> devices, const TextStyle& style, int indent = 0);
// {"architecture", "Hopper"}, {"PCI address", "0000:1b:00.0"}, ...: every fact that is known, in words.
std::vector<std::pair<std::string, std::string>> device_facts(const DeviceInfo& device);

}  // namespace tenon::present

#include "cli/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "tenon/expression.h"

namespace tenon::cli {
namespace {

namespace json = boost::json;

constexpr std::int64_t kMaxEmptyLists = 1000;

json::value number(double value, DType dtype) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  if (dtype == DType::f64) return value;
  // 0.1f prints as 0.1, not as 0.10000000149011612.
  const std::string shortest = fmt::format("{}", static_cast<float>(value));
  std::from_chars(shortest.data(), shortest.data() + shortest.size(), value);
  return value;
}

json::value element(const HostArray& array, std::int64_t index) {
  const auto i = static_cast<std::size_t>(index);
  switch (array.dtype()) {
    case DType::boolean: return array.value(index) != 0;
    case DType::i64: return array.view<std::int64_t>()[i];
    case DType::u64: return array.view<std::uint64_t>()[i];
    default: break;
  }
  if (is_integer(array.dtype())) return static_cast<std::int64_t>(array.value(index));
  return number(array.value(index), array.dtype());
}

json::value nested(const HostArray& array, int axis, std::int64_t offset) {
  if (axis == array.shape().rank()) return element(array, offset);
  const std::int64_t extent = array.shape()[axis];
  json::array list;
  list.reserve(static_cast<std::size_t>(extent));
  for (std::int64_t i = 0; i < extent; ++i) list.push_back(nested(array, axis + 1, offset * extent + i));
  return list;
}

bool has_object(const json::array& list) {
  return std::any_of(list.begin(), list.end(), [](const json::value& item) {
    return item.is_object() || (item.is_array() && has_object(item.get_array()));
  });
}

void write(std::string& out, const json::value& value, int indent) {
  const std::string inner(static_cast<std::size_t>(indent) + 2, ' '), outer(static_cast<std::size_t>(indent), ' ');
  switch (value.kind()) {
    case json::kind::object: {
      const char* separator = "\n";
      out += '{';
      for (const auto& member : value.get_object()) {
        out += separator + inner + json::serialize(member.key()) + ": ";
        write(out, member.value(), indent + 2);
        separator = ",\n";
      }
      out += value.get_object().empty() ? "}" : "\n" + outer + "}";
      return;
    }
    case json::kind::array: {
      const bool lines = has_object(value.get_array());
      const char* separator = lines ? "\n" : "";
      out += '[';
      for (const json::value& item : value.get_array()) {
        out += separator;
        if (lines) out += inner;
        write(out, item, indent + 2);
        separator = lines ? ",\n" : ", ";
      }
      out += lines ? "\n" + outer + "]" : "]";
      return;
    }
    case json::kind::double_: {
      const std::string digits = fmt::format("{}", value.get_double());
      out += digits;
      // Floats stay floats for readers that tell 2 from 2.0.
      if (digits.find_first_not_of("-0123456789") == std::string::npos) out += ".0";
      return;
    }
    default: out += json::serialize(value); return;
  }
}

template <class Number>
json::value optional_number(const std::optional<Number>& value) {
  if (!value) return nullptr;
  return *value;
}

}  // namespace

json::value to_json(const HostArray& array) {
  // The lists around an empty axis: [2, 0] is [[], []], but [1000000000, 0] is not a billion of them.
  if (array.elements() == 0) {
    std::int64_t lists = 1;
    for (const std::int64_t extent : array.shape())
      lists = extent > kMaxEmptyLists ? kMaxEmptyLists + 1 : lists * std::max<std::int64_t>(1, extent);
    if (lists > kMaxEmptyLists) return json::array();
  }
  return nested(is_block(array.dtype()) ? array.cast(DType::f32) : array, 0, 0);
}

json::object to_json(const DeviceInfo& device) {
  json::array backends(device.backends.begin(), device.backends.end());
  return {{"id", device.id},
          {"kind", name(device.kind)},
          {"name", device.name},
          {"vendor", device.vendor.empty() ? json::value(nullptr) : json::value(device.vendor)},
          {"backends", std::move(backends)},
          {"memory_total_bytes", optional_number(device.memory_total_bytes)},
          {"memory_free_bytes", optional_number(device.memory_free_bytes)},
          {"available", device.available},
          {"reason", device.reason},
          {"remedy", device.remedy}};
}

json::object to_full_json(const DeviceInfo& device) {
  json::object all = to_json(device);
  const auto text = [&](const char* key, const std::string& value) {
    all[key] = value.empty() ? json::value(nullptr) : json::value(value);
  };
  all["aliases"] = json::array(device.aliases.begin(), device.aliases.end());
  text("architecture", device.architecture);
  text("pci_address", device.pci_address);
  text("uuid", device.uuid);
  text("serial", device.serial);
  all["numa_node"] = optional_number(device.numa_node);
  text("compute_capability", device.compute_capability);
  text("driver_version", device.driver_version);
  text("runtime_version", device.runtime_version);
  text("firmware_version", device.firmware_version);
  all["supports_mixed_precision"] = device.supports_mixed_precision;
  all["supports_distributed"] = device.supports_distributed;
  all["exclusive"] = device.exclusive;
  all["memory_is_nominal"] = device.memory_is_nominal;
  all["power_watts"] = optional_number(device.power_watts);
  all["power_limit_watts"] = optional_number(device.power_limit_watts);
  all["temperature_celsius"] = optional_number(device.temperature_celsius);
  all["cost_per_hour"] = optional_number(device.cost_per_hour);
  all["cost_is_estimate"] = device.cost_is_estimate;
  all["holders"] = json::array(device.holders.begin(), device.holders.end());
  json::array runtimes;
  for (const RuntimeInfo& runtime : device.runtimes)
    runtimes.push_back(json::object{{"backend", runtime.backend}, {"library", runtime.library}});
  all["runtimes"] = std::move(runtimes);
  json::object details;
  for (const auto& [key, value] : device.details) details[key] = value;
  all["details"] = std::move(details);
  return all;
}

json::object error_document(const Error& error) {
  json::object details{{"code", to_string(error.code())}, {"message", error.what()}, {"hint", error.hint()}};
  if (const auto* place = dynamic_cast<const ExpressionError*>(&error)) {
    details["line"] = place->place().line;
    details["column"] = place->place().column;
    details["length"] = place->place().length;
  }
  return {{"schema", 1}, {"error", std::move(details)}};
}

std::string to_text(const json::value& document) {
  std::string text;
  write(text, document, 0);
  return text + '\n';
}

}  // namespace tenon::cli

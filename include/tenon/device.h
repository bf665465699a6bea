// DeviceInfo: what is known of a device without opening it. A value: copy, compare, print.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

enum class DeviceKind : std::uint8_t { cpu, gpu, tpu, tenstorrent, other };
std::string_view name(DeviceKind kind) noexcept;

struct DeviceInfo {
  std::string id;  // "cpu:0": stable on one machine, accepted wherever a device is asked for
  DeviceKind kind = DeviceKind::cpu;
  std::string name;  // the maker's name of the model
  std::string vendor;
  std::vector<std::string> backends;  // names of backends that can drive it, preferred first
  std::optional<std::uint64_t> memory_total_bytes;
  std::optional<std::uint64_t> memory_free_bytes;
  bool available = true;
  std::string reason;  // why not available
  std::string remedy;  // what to do about it
};

}  // namespace tenon

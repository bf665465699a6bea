#include "device/naming.h"

#include <algorithm>
#include <charconv>

#include "device/pci.h"

namespace tenon {
namespace {

constexpr std::size_t kShortestUuid = 8;

char lower(char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c); }

bool is_equal(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}

// NVIDIA's tools put "GPU-" in front; people copy it with and without.
std::string_view without_prefix(std::string_view uuid) {
  return uuid.size() > 4 && is_equal(uuid.substr(0, 4), "GPU-") ? uuid.substr(4) : uuid;
}

bool is_uuid(const DeviceInfo& device, std::string_view text) {
  const std::string_view uuid = without_prefix(device.uuid), given = without_prefix(text);
  return given.size() >= kShortestUuid && given.size() <= uuid.size() && is_equal(uuid.substr(0, given.size()), given);
}

// "opencl" stands for opencl:0; a kind stands for every device of it, which routing chooses from.
bool is_family(const DeviceInfo& device, std::string_view text) {
  constexpr std::string_view kKinds[] = {"cpu", "gpu", "tpu", "tenstorrent", "other", "cuda", "rocm"};
  if (std::ranges::any_of(kKinds, [&](std::string_view kind) { return is_equal(kind, text); })) return false;
  return is_equal(device.id, std::string(text) + ":0");
}

bool is_node(const DeviceInfo& device, std::string_view text) {
  return std::ranges::any_of(device.details, [&](const auto& detail) { return detail.first == "node" && detail.second == text; });
}

}  // namespace

bool is_named(const DeviceInfo& device, std::string_view text) {
  if (text.empty()) return false;
  if (text.starts_with('/')) return is_node(device, text);
  if (is_equal(device.id, text) || is_family(device, text)) return true;
  if (std::ranges::any_of(device.aliases, [&](const std::string& alias) { return is_equal(alias, text); })) return true;
  if (!device.uuid.empty() && is_uuid(device, text)) return true;
  if (device.pci_address.empty()) return false;
  std::string address = pci_address(text);
  if (address.empty()) address = pci_address("0000:" + std::string(text));
  return !address.empty() && address == pci_address(device.pci_address);
}

std::optional<std::size_t> device_number(std::string_view text) {
  std::size_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string_view id_of_number(std::span<const DeviceInfo> devices, std::string_view text) {
  const std::optional<std::size_t> number = device_number(text);
  return number && *number < devices.size() ? std::string_view(devices[*number].id) : text;
}

std::string device_file_number(const DeviceInfo& device) {
  const auto node = device.details.find("node");
  const std::string& from = node == device.details.end() || node->second.empty() ? device.id : node->second;
  return from.substr(from.find_last_of("/:") + 1);
}

}  // namespace tenon

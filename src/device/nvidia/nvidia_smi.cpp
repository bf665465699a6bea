#include <fmt/format.h>

#include <array>
#include <charconv>
#include <sstream>

#include "base/system/child_output.h"
#include "device/nvidia/nvidia_management.h"
#include "device/pci.h"

namespace tenon {
namespace {

using Fields = std::vector<std::string>;

Fields split(const std::string& line) {
  Fields fields;
  std::istringstream parts(line);
  for (std::string part; std::getline(parts, part, ',');) {
    const std::size_t begin = part.find_first_not_of(" \r"), end = part.find_last_not_of(" \r");
    fields.push_back(begin == std::string::npos ? "" : part.substr(begin, end - begin + 1));
    // "[N/A]", "[Not Supported]", "[Unknown Error]"
    if (fields.back().starts_with('[')) fields.back().clear();
  }
  return fields;
}

std::optional<double> number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !(value >= 0 && value < 1e12)) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> mebibytes(const std::string& text) {
  const std::optional<double> value = number(text);
  if (!value) return std::nullopt;
  return static_cast<std::uint64_t>(*value * 1048576.0);
}

}  // namespace

const char* const kNvidiaSmiQuery =
    "--query-gpu=name,uuid,pci.bus_id,serial,memory.total,memory.free,compute_cap,driver_version,power.draw,"
    "enforced.power.limit,temperature.gpu,vbios_version";

std::string_view nvidia_architecture(std::string_view compute_capability) {
  struct Row {
    std::string_view capability, name;
  };
  // The longest matching prefix comes first.
  constexpr std::array<Row, 9> rows{{{"12.", "Blackwell"},
                                     {"10.", "Blackwell"},
                                     {"9.", "Hopper"},
                                     {"8.9", "Ada Lovelace"},
                                     {"8.", "Ampere"},
                                     {"7.5", "Turing"},
                                     {"7.", "Volta"},
                                     {"6.", "Pascal"},
                                     {"5.", "Maxwell"}}};
  for (const Row& row : rows)
    if (compute_capability.starts_with(row.capability)) return row.name;
  return "";
}

std::vector<DeviceInfo> parse_nvidia_smi(std::string_view text) {
  std::vector<DeviceInfo> cards;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    const Fields fields = split(line);
    if (fields.size() != 12 || pci_address(fields[2]).empty()) continue;
    DeviceInfo card;
    card.id = fmt::format("cuda:{}", cards.size());
    card.kind = DeviceKind::gpu;
    card.vendor = "NVIDIA";
    card.name = fields[0];
    card.uuid = fields[1];
    card.pci_address = pci_address(fields[2]);
    card.serial = fields[3];
    card.memory_total_bytes = mebibytes(fields[4]);
    card.memory_free_bytes = mebibytes(fields[5]);
    card.compute_capability = fields[6];
    card.architecture = nvidia_architecture(fields[6]);
    card.driver_version = fields[7];
    card.power_watts = number(fields[8]);
    card.power_limit_watts = number(fields[9]);
    card.temperature_celsius = number(fields[10]);
    card.firmware_version = fields[11];
    card.supports_mixed_precision = true;
    cards.push_back(std::move(card));
  }
  return cards;
}

NvidiaAnswer ask_nvidia_smi() {
  NvidiaAnswer answer;
  for (const char* program : {"nvidia-smi", "/usr/lib/wsl/lib/nvidia-smi"}) {
    const auto text = child_output({program, kNvidiaSmiQuery, "--format=csv,noheader,nounits"}, std::chrono::seconds(5));
    if (!text) continue;
    answer.cards = parse_nvidia_smi(*text);
    if (!answer.cards.empty()) return answer;
  }
  answer.problem = "nvidia-smi is missing or does not respond";
  answer.remedy = "install the NVIDIA driver's utilities";
  return answer;
}

}  // namespace tenon

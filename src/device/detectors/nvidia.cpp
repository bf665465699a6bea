#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <sstream>

#include "device/card.h"
#include "device/detect.h"
#include "device/detectors.h"
#include "device/nvidia/nvidia_management.h"

namespace tenon {
namespace {

constexpr int kVendor = 0x10de;
constexpr const char* kDriverRemedy = "install the NVIDIA driver and load it: modprobe nvidia";

// "Model: \t\t NVIDIA H200"
std::map<std::string, std::string> read_information(const SystemRoot& machine, const std::string& address) {
  std::map<std::string, std::string> facts;
  std::istringstream lines(machine.read("/proc/driver/nvidia/gpus/" + address + "/information").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::size_t begin = line.find_first_not_of(" \t", colon + 1), end = line.find_last_not_of(" \t\r");
    if (begin == std::string::npos) continue;
    const std::string value = line.substr(begin, end - begin + 1);
    if (std::all_of(value.begin(), value.end(), [](char c) { return c >= 0x20 && c < 0x7f; }))
      facts[line.substr(0, colon)] = value;
  }
  return facts;
}

// Properties of a model if only its name is known.
struct Model {
  std::string_view part, capability;
};
constexpr std::array<Model, 11> kModels{{{"B200", "10.0"},
                                         {"GB200", "10.0"},
                                         {"H200", "9.0"},
                                         {"H100", "9.0"},
                                         {"H800", "9.0"},
                                         {"L40", "8.9"},
                                         {"L4", "8.9"},
                                         {"A100", "8.0"},
                                         {"A30", "8.0"},
                                         {"T4", "7.5"},
                                         {"V100", "7.0"}}};

// "NVIDIA H100 80GB HBM3": the vendor's nominal figure.
std::optional<std::uint64_t> memory_in_name(const std::string& name) {
  const std::size_t unit = name.find("GB ") == std::string::npos ? name.rfind("GB") : name.find("GB ");
  if (unit == std::string::npos || unit == 0) return std::nullopt;
  const std::size_t before = name.find_last_not_of("0123456789", unit - 1);
  unsigned gigabytes = 0;
  const char* begin = name.data() + (before == std::string::npos ? 0 : before + 1);
  if (std::from_chars(begin, name.data() + unit, gigabytes).ec != std::errc{} || gigabytes == 0 || gigabytes > 4096)
    return std::nullopt;
  return std::uint64_t{gigabytes} << 30;
}

void recognise(DeviceInfo& card) {
  for (const Model& model : kModels) {
    if (card.name.find(model.part) == std::string::npos) continue;
    card.compute_capability = model.capability;
    card.architecture = nvidia_architecture(model.capability);
    break;
  }
  card.memory_total_bytes = memory_in_name(card.name);
  card.memory_is_nominal = card.memory_total_bytes.has_value();
}

std::string driver_version(const SystemRoot& machine) {
  if (const auto version = machine.line("/sys/module/nvidia/version")) return *version;
  // "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Thu Mar ..."
  std::istringstream words(machine.line("/proc/driver/nvidia/version").value_or(""));
  for (std::string word; words >> word;)
    if (word.find('.') != std::string::npos && word.find_first_not_of("0123456789.") == std::string::npos) return word;
  return "";
}

DeviceInfo read_card(const SystemRoot& machine, const PciDevice& pci, std::size_t index) {
  DeviceInfo card = card_in(pci, DeviceKind::gpu, fmt::format("cuda:{}", index), "NVIDIA");
  const auto facts = read_information(machine, pci.address);
  const auto fact = [&](const char* key) {
    const auto found = facts.find(key);
    return found == facts.end() ? std::string() : found->second;
  };
  card.name = fact("Model");
  if (card.name.empty()) card.name = pci_name(machine, pci.vendor, pci.device);
  if (card.name.empty()) card.name = fmt::format("NVIDIA GPU {:04x}", pci.device);
  card.uuid = fact("GPU UUID");
  card.firmware_version = fact("Video BIOS");
  card.supports_mixed_precision = true;
  recognise(card);
  require_driver(pci, {"nvidia"}, kDriverRemedy, card);
  if (!card.available) return card;
  card.driver_version = driver_version(machine);
  if (fact("GPU Excluded") == "Yes")
    mark_unavailable(card, "the driver is configured to exclude it", "remove it from the module parameter NVreg_ExcludedGpus");
  require_node(machine, "/dev/nvidiactl", "", card);
  const std::string minor = fact("Device Minor");
  const std::string node = "/dev/nvidia" + (minor.empty() ? std::to_string(index) : minor);
  card.details["node"] = node;
  require_node(machine, node, "", card);
  return card;
}

class NvidiaDetector final : public Detector {
 public:
  std::string_view name() const noexcept override { return "nvidia"; }

  Detection detect(const SystemRoot& machine) const override {
    Detection found;
    for (const PciDevice& pci : pci_devices(machine, kVendor))
      if (pci.is_display() || pci.is_accelerator()) found.devices.push_back(read_card(machine, pci, found.devices.size()));
    // In WSL and in some containers the kernel does not list the card.
    const bool hidden = machine.exists("/dev/nvidiactl") || machine.exists("/dev/dxg");
    if (machine.is_this_machine() && (hidden || has_driver(found.devices))) ask_the_maker(found);
    for (DeviceInfo& card : found.devices) require_unheld(machine, card);
    return found;
  }

 private:
  static bool has_driver(const std::vector<DeviceInfo>& cards) {
    return std::any_of(cards.begin(), cards.end(), [](const DeviceInfo& card) { return !card.driver_version.empty(); });
  }

  static void ask_the_maker(Detection& found) {
    NvidiaAnswer answer = ask_nvml();
    if (answer.cards.empty()) {
      if (NvidiaAnswer second = ask_nvidia_smi(); !second.cards.empty()) answer.cards = std::move(second.cards);
    }
    if (answer.cards.empty() && !answer.problem.empty()) {
      found.notes.push_back(fmt::format("NVIDIA: {}; {}", answer.problem, answer.remedy));
      for (DeviceInfo& card : found.devices) mark_unavailable(card, answer.problem, answer.remedy);
    }
    if (!answer.cards.empty()) found.devices = combine_nvidia(std::move(found.devices), std::move(answer.cards));
  }
};

}  // namespace

std::vector<DeviceInfo> combine_nvidia(std::vector<DeviceInfo> read, std::vector<DeviceInfo> answered) {
  for (DeviceInfo& card : read) {
    const auto same =
        std::find_if(answered.begin(), answered.end(), [&](const DeviceInfo& known) { return is_same_device(card, known); });
    if (same == answered.end()) {
      answered.push_back(std::move(card));
      continue;
    }
    // The driver reported the card, so whatever seemed to be missing is not needed.
    card.available = true;
    card.reason.clear();
    card.remedy.clear();
    merge_device(*same, card);
    same->aliases.clear();
  }
  for (std::size_t i = 0; i < answered.size(); ++i) answered[i].id = fmt::format("cuda:{}", i);
  return answered;
}

std::unique_ptr<Detector> make_nvidia_detector() { return std::make_unique<NvidiaDetector>(); }

}  // namespace tenon

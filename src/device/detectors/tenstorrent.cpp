#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "device/card.h"
#include "device/detectors.h"

namespace tenon {
namespace {

constexpr int kVendor = 0x1e52;
constexpr int kGrayskull = 0xfaca, kWormhole = 0x401e, kBlackhole = 0xb140;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

std::string_view architecture_of(int device) {
  switch (device) {
    case kGrayskull: return "grayskull";
    case kWormhole: return "wormhole";
    case kBlackhole: return "blackhole";
    default: return "";
  }
}

// The card does not report its memory. An n300 counts both chips, because the second is reached through the first.
std::optional<std::uint64_t> nominal_memory(int device, int chips) {
  switch (device) {
    case kGrayskull: return 8 * kGiB;
    case kWormhole: return 12 * kGiB * static_cast<std::uint64_t>(chips);
    case kBlackhole: return 32 * kGiB * static_cast<std::uint64_t>(chips);
    default: return std::nullopt;
  }
}

// "tenstorrent!3" in the class folder, where '!' stands for '/'. "" if the driver has no entry for this card.
std::string class_entry(const SystemRoot& machine, const PciDevice& pci) {
  const std::string classes = "/sys/class/tenstorrent";
  for (const std::string& name : machine.list(classes))
    if (name.starts_with("tenstorrent!") && machine.link_name(classes + "/" + name + "/device") == pci.address)
      return classes + "/" + name;
  for (const std::string& name : machine.list(pci.path + "/tenstorrent"))
    if (name.starts_with("tenstorrent!")) return pci.path + "/tenstorrent/" + name;
  return "";
}

std::vector<int> holders_by_driver(const SystemRoot& machine, const std::string& number) {
  std::vector<int> holders;
  std::istringstream pids(machine.read("/proc/driver/tenstorrent/" + number + "/pids").value_or(""));
  for (int pid = 0; pids >> pid;)
    if (pid > 0 && std::find(holders.begin(), holders.end(), pid) == holders.end()) holders.push_back(pid);
  return holders;
}

void read_attributes(const SystemRoot& machine, const std::string& entry, const PciDevice& pci, DeviceInfo& card) {
  const auto attribute = [&](const char* name) {
    if (const auto value = machine.line(entry + "/" + name)) return *value;
    return machine.line(pci.path + "/" + name).value_or("");
  };
  const std::string type = attribute("tt_card_type");
  if (!type.empty()) {
    card.name = "Tenstorrent " + type;
    card.details["card_type"] = type;
  }
  const int chips = type.starts_with("n300") || type.starts_with("p300") ? 2 : 1;
  if (chips > 1) card.details["chips"] = std::to_string(chips);
  card.memory_total_bytes = nominal_memory(pci.device, chips);
  card.serial = attribute("tt_serial");
  card.uuid = attribute("tt_asic_id");
  card.firmware_version = attribute("tt_fw_bundle_ver");
  for (const auto& [file, name] : {std::pair("tt_aiclk", "ai_clock"), {"tt_axiclk", "axi_clock"}, {"tt_arcclk", "arc_clock"}})
    if (const std::string clock = attribute(file); !clock.empty()) card.details[name] = clock + " MHz";
  if (const std::string trips = attribute("tt_therm_trip_count"); !trips.empty()) card.details["thermal_trips"] = trips;
}

class TenstorrentDetector final : public Detector {
 public:
  std::string_view name() const noexcept override { return "tenstorrent"; }

  Detection detect(const SystemRoot& machine) const override {
    Detection found;
    for (const PciDevice& pci : pci_devices(machine, kVendor))
      if (!architecture_of(pci.device).empty()) found.devices.push_back(read_card(machine, pci, found.devices.size()));
    return found;
  }

 private:
  static DeviceInfo read_card(const SystemRoot& machine, const PciDevice& pci, std::size_t index) {
    DeviceInfo card = card_in(pci, DeviceKind::tenstorrent, fmt::format("tenstorrent:{}", index), "Tenstorrent");
    card.architecture = architecture_of(pci.device);
    card.name = fmt::format("Tenstorrent {}", card.architecture);
    card.memory_total_bytes = nominal_memory(pci.device, 1);
    card.memory_is_nominal = true;
    card.supports_mixed_precision = true;
    card.exclusive = true;  // its runtime takes every chip it sees
    if (pci.device == kGrayskull)
      mark_unavailable(card, "the driver no longer supports Grayskull", "use a Wormhole or Blackhole card");
    require_driver(pci, {"tenstorrent"}, "install the driver tt-kmd and load it: modprobe tenstorrent", card);
    if (pci.driver != "tenstorrent") return card;
    card.driver_version = machine.line("/sys/module/tenstorrent/version").value_or("");
    read_driven(machine, pci, index, card);
    return card;
  }

  static void read_driven(const SystemRoot& machine, const PciDevice& pci, std::size_t index, DeviceInfo& card) {
    const std::string entry = class_entry(machine, pci);
    const std::string number = entry.empty() ? std::to_string(index) : entry.substr(entry.find('!') + 1);
    const std::string node = "/dev/tenstorrent/" + number;
    card.details["node"] = node;
    read_attributes(machine, entry, pci, card);
    read_sensors(machine, pci, card);
    require_node(machine, node, "", card);
    // Drivers before 2.5 do not list their users.
    const bool driver_tells = machine.exists("/proc/driver/tenstorrent/" + number + "/pids");
    card.holders = driver_tells ? holders_by_driver(machine, number) : holders_of(machine, {node});
    require_unheld(machine, card);
  }
};

}  // namespace

std::unique_ptr<Detector> make_tenstorrent_detector() { return std::make_unique<TenstorrentDetector>(); }

}  // namespace tenon

// DeviceInfo: what is known about a device without opening it; a value. And Detector, which finds devices.
//
// A field that could not be read is empty and never guessed, unless its comment says nominal or estimate. A detector reads files
// and queries management libraries; it opens no device, takes no lock, prints nothing and does not change the environment. A
// program can add its own with DeviceManager::add_detector.
//
//   struct Toaster final : tenon::Detector {
//     std::string_view name() const noexcept override { return "toaster"; }
//     tenon::Detection detect(const tenon::SystemRoot& machine) const override {
//       if (!machine.exists("/sys/class/toaster/toaster0")) return {};
//       return {.devices = {{.id = "toaster:0", .kind = tenon::DeviceKind::other, .name = "Two slots"}}};
//     }
//   };
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/system_root.h"

namespace tenon {

enum class DeviceKind : std::uint8_t { cpu, gpu, tpu, tenstorrent, other };
std::string_view name(DeviceKind kind) noexcept;

// Software on this machine that can drive devices of one vendor.
struct RuntimeInfo {
  std::string backend;  // the backend that would load it: "opencl", "pjrt"
  std::string library;  // the file, or the name that the loader looks for
  std::string vendor;   // the vendor of the devices it drives; "" for a CPU
  friend bool operator==(const RuntimeInfo&, const RuntimeInfo&) = default;
};

struct DeviceInfo {
  std::string id;  // "cpu:0": stable on one machine; a valid device request
  DeviceKind kind = DeviceKind::cpu;
  std::string name;  // the vendor's name of the model
  std::string vendor;
  std::vector<std::string> backends;  // names of the backends that can drive it, preferred first
  std::optional<std::uint64_t> memory_total_bytes;
  std::optional<std::uint64_t> memory_free_bytes;
  bool available = true;
  std::string reason;  // why it is not available
  std::string remedy;  // what to do about it

  std::vector<std::string> aliases;  // other ids: "gpu:0" is the first GPU of any vendor
  std::string same_as;       // the id of the device whose hardware it is: the CPU through OpenCL; "" for a device of its own
  std::string architecture;  // "x86-64-v4", "Hopper", "gfx942", "wormhole", "v5e"
  std::string pci_address;   // "0000:1b:00.0"
  std::string uuid;          // the vendor's unique id of this card
  std::string serial;
  std::optional<int> numa_node;
  std::string compute_capability;  // NVIDIA: "9.0"
  std::string driver_version;
  std::string runtime_version;  // the newest version that the driver supports: "CUDA 13.0"
  std::string firmware_version;
  bool supports_mixed_precision = false;  // computes in 16-bit floats natively
  bool supports_distributed = false;      // this machine has more devices of its kind and vendor
  bool exclusive = false;                 // one process at a time
  bool memory_is_nominal = false;         // taken from the model name, because the card does not report it
  std::optional<double> power_watts;
  std::optional<double> power_limit_watts;
  std::optional<double> temperature_celsius;
  std::optional<double> cost_per_hour;  // US dollars
  bool cost_is_estimate = false;
  std::vector<int> holders;                    // processes that have it open, as far as visible to this process
  std::vector<RuntimeInfo> runtimes;           // installed software that can drive it
  std::map<std::string, std::string> details;  // further properties by name

  friend bool operator==(const DeviceInfo&, const DeviceInfo&) = default;
};

struct Detection {
  std::vector<DeviceInfo> devices;
  std::vector<RuntimeInfo> runtimes;
  std::vector<std::string> notes;  // remarks that concern no device: "TPU_NAME is 'x', but this machine has no TPU"
};

class Detector {
 public:
  virtual ~Detector() = default;
  virtual std::string_view name() const noexcept = 0;
  // May be called from several threads. An exception becomes a note and does not affect other detectors.
  virtual Detection detect(const SystemRoot& machine) const = 0;
};

}  // namespace tenon

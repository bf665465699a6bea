// DeviceInfo: what is known of a device without opening it. A value: copy, compare, print. And Detector, which finds them.
//
// A field that could not be read is empty, never guessed, except where its comment says nominal or estimate.
// A detector reads files and asks management libraries; it opens no device, takes no lock, prints nothing and changes no
// environment. A program adds one of its own with DeviceManager::add_detector.
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

// Software of this machine that could drive devices of one maker.
struct RuntimeInfo {
  std::string backend;  // "opencl", "pjrt": what would load it
  std::string library;  // the file, or the name the loader looks for
  std::string vendor;   // the maker of the devices it drives; "" for a CPU
  friend bool operator==(const RuntimeInfo&, const RuntimeInfo&) = default;
};

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

  std::vector<std::string> aliases;  // other ids it is found by: "gpu:0" is the first GPU whatever its maker
  std::string architecture;          // "x86-64-v4", "Hopper", "gfx942", "wormhole", "v5e"
  std::string pci_address;           // "0000:1b:00.0"
  std::string uuid;                  // the maker's identity of this one card
  std::string serial;
  std::optional<int> numa_node;
  std::string compute_capability;  // NVIDIA: "9.0"
  std::string driver_version;
  std::string runtime_version;  // the newest the driver supports: "CUDA 13.0"
  std::string firmware_version;
  bool supports_mixed_precision = false;  // computes in 16-bit floats natively
  bool supports_distributed = false;      // this machine has more of its kind and maker
  bool exclusive = false;                 // one process at a time
  bool memory_is_nominal = false;         // the model's memory, as the card does not tell
  std::optional<double> power_watts;
  std::optional<double> power_limit_watts;
  std::optional<double> temperature_celsius;
  std::optional<double> cost_per_hour;  // US dollars
  bool cost_is_estimate = false;
  std::vector<int> holders;                    // processes that have it open, as far as this one may see
  std::vector<RuntimeInfo> runtimes;           // software found that could drive it
  std::map<std::string, std::string> details;  // whatever else is known, by name

  friend bool operator==(const DeviceInfo&, const DeviceInfo&) = default;
};

struct Detection {
  std::vector<DeviceInfo> devices;
  std::vector<RuntimeInfo> runtimes;
  std::vector<std::string> notes;  // sentences worth telling that make no device: "TPU_NAME is set, but there is no TPU"
};

class Detector {
 public:
  virtual ~Detector() = default;
  virtual std::string_view name() const noexcept = 0;
  // May be called from several threads. What it throws becomes a note and hides no other detector's devices.
  virtual Detection detect(const SystemRoot& machine) const = 0;
};

}  // namespace tenon

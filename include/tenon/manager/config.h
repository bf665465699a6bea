// Config: the settings of a DeviceManager.
//
// A value with defaults. Every field is a setting of one table (src/manager/config/settings.h), so it can also come from a flag,
// an environment variable or a configuration file, in the order of precedence flag > environment > file > default.
//
//   Config config;                        // the defaults
//   config.memory_strategy = MemoryStrategy::conservative;
//   DeviceManager manager(config);
//   Config here = Config::load();         // from file and environment; throws invalid_argument naming the setting
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/device.h"
#include "tenon/device/simulated.h"

namespace tenon {

enum class MemoryStrategy : std::uint8_t { conservative, balanced, aggressive, custom };  // 60 %, 75 %, 90 %, memory_fraction
enum class RoutingMode : std::uint8_t { prefer, fastest, cheapest, pinned };
enum class KeepOpenPolicy : std::uint8_t { on_demand, linger, adaptive, always };
// Which backends run in worker processes.
enum class Isolate : std::uint8_t {
  automatic,  // those that keep their device until their process ends (cuda does once a library product has run)
  always,     // all
  never,      // none but pjrt and ttnn, which know no other way
  drivers,    // those that call a vendor's driver (cuda, opencl): one that hangs or crashes costs its worker, not this process
};
std::string_view name(MemoryStrategy strategy) noexcept;
std::string_view name(RoutingMode mode) noexcept;
std::string_view name(KeepOpenPolicy policy) noexcept;
std::string_view name(Isolate isolate) noexcept;

struct Config {
  // --- Which device ---
  std::string prefer = "auto";  // auto, cpu, gpu, tpu, tenstorrent or an id; falls back with a warning. COMPUTE_PREFER
  RoutingMode routing = RoutingMode::prefer;
  std::vector<DeviceKind> platform_priority = {DeviceKind::tpu, DeviceKind::tenstorrent, DeviceKind::gpu, DeviceKind::cpu};
  bool allow_tpu = true;  // COMPUTE_ALLOW_TPU
  std::vector<SimulatedDevice> simulated;
  bool allow_simulated = false;  // whether auto may choose a simulated device

  // --- Memory ---
  MemoryStrategy memory_strategy = MemoryStrategy::balanced;
  // 0.1 to 1.0; takes precedence over the strategy. nullopt: that of the strategy, for the custom strategy 0.75.
  std::optional<double> memory_fraction;

  // --- Programs ---
  bool enable_x64 = true;  // off: f64 and i64 results are refused
  bool enable_jit = true;  // fuse nodes into one loop (the name is that of other layers); off: one step each
  Isolate isolate = Isolate::automatic;
  std::map<std::string, std::string> environment;  // set before the first backend loads

  // --- Batches ---
  std::int64_t batch_min = 1, batch_max = 4096;
  std::int64_t prefetch = 2;
  std::int64_t tpu_batch_factor = 128;  // COMPUTE_TPU_BATCH_FACTOR

  // --- Leases ---
  KeepOpenPolicy keep_open = KeepOpenPolicy::adaptive;
  std::optional<double> linger_seconds;         // for linger; nullopt: the break-even time
  double worth = 10;                            // seconds of idle holding that cost as much as one second of opening
  std::optional<double> quantum_seconds;        // while another process waits; nullopt: 10 x (open + close), at least 1 s
  std::optional<double> min_hold_seconds;       // nullopt: open + close, at least 50 ms
  std::optional<double> lease_timeout_seconds;  // nullopt: no limit

  // --- Money ---
  std::map<std::string, double> prices;  // US dollars per hour, by id, kind or name
  bool ledger = true;                    // record the use of devices

  // --- Profiles ---
  bool profile = true;  // keep measured times between processes; routing predicts from them

  // memory_fraction, else the fraction of the memory strategy. Throws invalid_argument outside 0.1 to 1.0.
  double budget_fraction() const;
  // Throws invalid_argument naming the setting if a value is out of bounds or two settings contradict each other.
  void check() const;
  // The defaults, overridden by the configuration file and the environment of this process; see docs/configuration.md.
  static Config load();

  friend bool operator==(const Config&, const Config&) = default;
};

// |base| with a memory strategy for a model of this size, instead of its memory_fraction: conservative below a million
// parameters, balanced below a hundred million, else aggressive.
Config optimize_for_model_size(Config base, double parameters);

// |base| for generative models: the given memory strategy, fused programs, no 64-bit results if |mixed_precision|, and runtimes
// that do not preallocate all memory (unless |base| says otherwise).
Config configure_for_generative_models(Config base = {}, MemoryStrategy strategy = MemoryStrategy::balanced,
                                       bool mixed_precision = true);

// The kind named by |text|: "gpu", "cuda", "rocm", "tpu", "tenstorrent", "cpu", in upper or lower case; nullopt otherwise.
std::optional<DeviceKind> parse_device_kind(std::string_view text);

}  // namespace tenon

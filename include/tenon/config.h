// Config: everything about a DeviceManager that can be set.
//
// A value with defaults; every field is a setting of one table (settings.h in src/manager), so that it can also come from a
// flag, an environment variable or a configuration file: flag > environment > file > default.
//
//   Config config;                        // the defaults
//   config.memory_strategy = MemoryStrategy::conservative;
//   DeviceManager manager(config);
//   Config here = Config::load();         // what file and environment say; throws invalid_argument naming the setting
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/device.h"
#include "tenon/simulated.h"

namespace tenon {

enum class MemoryStrategy : std::uint8_t { conservative, balanced, aggressive, custom };  // 60 %, 75 %, 90 %, memory_fraction
enum class RoutingMode : std::uint8_t { prefer, fastest, cheapest, pinned };
enum class KeepOpenPolicy : std::uint8_t { on_demand, linger, adaptive, always };
std::string_view name(MemoryStrategy strategy) noexcept;
std::string_view name(RoutingMode mode) noexcept;
std::string_view name(KeepOpenPolicy policy) noexcept;

struct Config {
  // --- Which device ---
  std::string prefer = "auto";  // auto, cpu, gpu, tpu, tenstorrent or an id; falls back with a warning. COMPUTE_PREFER
  RoutingMode routing = RoutingMode::prefer;
  std::vector<DeviceKind> platform_priority = {DeviceKind::tpu, DeviceKind::tenstorrent, DeviceKind::gpu, DeviceKind::cpu};
  bool allow_tpu = true;  // COMPUTE_ALLOW_TPU
  std::vector<SimulatedDevice> simulated;
  bool allow_simulated = false;  // whether auto may choose one of them

  // --- Memory ---
  MemoryStrategy memory_strategy = MemoryStrategy::balanced;
  double memory_fraction = 0.75;  // for custom: 0.1 to 1.0

  // --- Programs ---
  bool enable_x64 = true;  // off: f64 and i64 results are refused
  bool enable_jit = true;  // fuse nodes into one loop (the name is that of other layers); off: one step each
  bool isolate = false;    // every backend in a worker process
  std::map<std::string, std::string> environment;  // set before the first backend loads

  // --- Batches ---
  std::int64_t batch_min = 1, batch_max = 4096;
  std::int64_t prefetch = 2;
  std::int64_t tpu_batch_factor = 128;  // COMPUTE_TPU_BATCH_FACTOR

  // --- Leases ---
  KeepOpenPolicy keep_open = KeepOpenPolicy::adaptive;
  std::optional<double> linger_seconds;         // for linger; none: the break-even
  double worth = 10;                            // seconds of idle holding that one second of opening is worth
  std::optional<double> quantum_seconds;        // while somebody waits; none: 10 x (open + close), at least 1 s
  std::optional<double> min_hold_seconds;       // none: open + close, at least 50 ms
  std::optional<double> lease_timeout_seconds;  // none: wait for ever

  // --- Money ---
  std::map<std::string, double> prices;  // US dollars an hour, by id, kind or name
  bool ledger = true;                    // keep a record of leases

  // --- Profiles ---
  bool profile = true;  // keep measured times across runs: what routing predicts from

  // The fraction the strategy stands for. Throws invalid_argument outside 0.1 to 1.0.
  double budget_fraction() const;
  // Throws invalid_argument naming the setting for a value out of its bounds, or two that contradict each other.
  void check() const;
  // What the file and the environment of this process say, over the defaults: see docs/configuration.md.
  static Config load();

  friend bool operator==(const Config&, const Config&) = default;
};

// |base| with the memory strategy that suits a model: below a million parameters conservative, below a hundred million
// balanced, else aggressive.
Config optimize_for_model_size(Config base, double parameters);

// |base| for models that generate: the given share of memory, fused programs, no 64-bit results where |mixed_precision|, and
// runtimes told not to take all memory at once (unless |base| says otherwise).
Config configure_for_generative_models(Config base = {}, MemoryStrategy strategy = MemoryStrategy::balanced,
                                       bool mixed_precision = true);

// The kind people mean by |text|: "gpu", "cuda", "rocm", "tpu", "tenstorrent", "cpu", in any case. Nothing for anything else.
std::optional<DeviceKind> parse_device_kind(std::string_view text);

}  // namespace tenon

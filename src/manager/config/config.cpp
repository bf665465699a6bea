#include "tenon/manager/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/log.h"
#include "manager/config/settings.h"
#include "tenon/error.h"
#include "tenon/graph.h"

namespace tenon {

std::string_view name(MemoryStrategy strategy) noexcept {
  switch (strategy) {
    case MemoryStrategy::conservative: return "conservative";
    case MemoryStrategy::balanced: return "balanced";
    case MemoryStrategy::aggressive: return "aggressive";
    case MemoryStrategy::custom: return "custom";
  }
  return "?";
}

std::string_view name(RoutingMode mode) noexcept {
  switch (mode) {
    case RoutingMode::prefer: return "prefer";
    case RoutingMode::fastest: return "fastest";
    case RoutingMode::cheapest: return "cheapest";
    case RoutingMode::pinned: return "pinned";
  }
  return "?";
}

std::string_view name(Isolate isolate) noexcept {
  switch (isolate) {
    case Isolate::automatic: return "auto";
    case Isolate::drivers: return "drivers";
    case Isolate::always: return "true";
    case Isolate::never: return "false";
  }
  return "";
}

std::string_view name(KeepOpenPolicy policy) noexcept {
  switch (policy) {
    case KeepOpenPolicy::on_demand: return "on_demand";
    case KeepOpenPolicy::linger: return "linger";
    case KeepOpenPolicy::adaptive: return "adaptive";
    case KeepOpenPolicy::always: return "always";
  }
  return "?";
}

std::optional<DeviceKind> parse_device_kind(std::string_view text) {
  std::string word(text);
  for (char& c : word) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  if (word == "cuda" || word == "rocm") return DeviceKind::gpu;
  for (const DeviceKind kind : {DeviceKind::cpu, DeviceKind::gpu, DeviceKind::tpu, DeviceKind::tenstorrent, DeviceKind::other})
    if (word == name(kind)) return kind;
  return std::nullopt;
}

double Config::budget_fraction() const {
  if (!memory_fraction) {
    switch (memory_strategy) {
      case MemoryStrategy::conservative: return 0.6;
      case MemoryStrategy::aggressive: return 0.9;
      case MemoryStrategy::balanced:
      case MemoryStrategy::custom: return 0.75;
    }
  }
  if (!(*memory_fraction >= 0.1 && *memory_fraction <= 1.0))
    throw Error(ErrorCode::invalid_argument, fmt::format("memory_fraction is {}, not a number from 0.1 to 1", *memory_fraction),
                "for example, 0.75 uses three quarters of a device's memory");
  return *memory_fraction;
}

void Config::check() const {
  budget_fraction();
  // Every value is read back through its own parser, so that the bounds stand in one place.
  for (const Setting& setting : settings()) {
    if (!setting.set || setting.name == "sim" || setting.name == "environment") continue;
    const std::string value = setting.get(*this);
    Config scratch;
    try {
      setting.set(scratch, value);
    } catch (const Error& error) {
      throw Error(ErrorCode::invalid_argument, fmt::format("{} is '{}', not {}", setting.name, value, error.what()));
    }
  }
  if (batch_min > batch_max)
    throw Error(ErrorCode::invalid_argument, fmt::format("batch_min ({}) is greater than batch_max ({})", batch_min, batch_max));
  if (routing == RoutingMode::pinned && prefer == "auto")
    throw Error(ErrorCode::invalid_argument, "routing is pinned, but prefer names no device",
                "set prefer to a kind or an id, or set routing to prefer");
}

Config Config::load() {
  LoadedConfig loaded = load_config();
  for (const std::string& warning : loaded.warnings) logging::warn("{}", warning);
  return std::move(loaded.config);
}

Config optimize_for_model_size(Config base, double parameters) {
  if (!(parameters >= 0))
    throw Error(ErrorCode::invalid_argument, fmt::format("the number of parameters must be positive, not {}", parameters));
  base.memory_strategy = parameters < 1e6   ? MemoryStrategy::conservative
                         : parameters < 1e8 ? MemoryStrategy::balanced
                                            : MemoryStrategy::aggressive;
  base.memory_fraction.reset();
  return base;
}

Config configure_for_generative_models(Config base, MemoryStrategy strategy, bool mixed_precision) {
  base.memory_strategy = strategy;
  if (strategy != MemoryStrategy::custom) base.memory_fraction.reset();
  base.enable_jit = true;
  if (mixed_precision) base.enable_x64 = false;
  // Runtimes under PJRT take three quarters of a card's memory when they start; the budget is enforced here instead.
  base.environment.try_emplace("XLA_PYTHON_CLIENT_PREALLOCATE", "false");
  base.environment.try_emplace("XLA_PYTHON_CLIENT_MEM_FRACTION", fmt::format("{:.2f}", base.budget_fraction()));
  return base;
}

void apply_environment(const Config& config) {
  for (const auto& [name, value] : config.environment)
    if (setenv(name.c_str(), value.c_str(), 1) != 0)
      throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is not a valid name of an environment variable", name));
}

void check_results(const Config& config, const Graph& graph) {
  if (config.enable_x64) return;
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
    const DType dtype = graph[graph.outputs()[i]].dtype;
    if (dtype != DType::f64 && dtype != DType::i64 && dtype != DType::u64) continue;
    throw Error(ErrorCode::invalid_argument, fmt::format("result {} is {}, but enable_x64 is off", i, name(dtype)),
                fmt::format("cast it to {}, or set enable_x64 to true", dtype == DType::f64 ? "float32" : "int32"));
  }
}

}  // namespace tenon

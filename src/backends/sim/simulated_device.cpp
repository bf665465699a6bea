#include "tenon/device/simulated.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "ops/names.h"
#include "tenon/error.h"

namespace tenon {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

struct Architecture {
  std::string_view name;
  double open_seconds, close_seconds;
  std::uint64_t memory_bytes;
  bool exclusive;
};

// Memory of one chip of a common card; times as measured or reported for real ones.
constexpr std::array kArchitectures{
    Architecture{"grayskull", 0.10, 0.10, 8 * kGiB, true},  Architecture{"wormhole", 0.10, 0.10, 12 * kGiB, true},
    Architecture{"blackhole", 0.12, 0.10, 32 * kGiB, true}, Architecture{"tpu", 2.0, 0.5, 16 * kGiB, true},
    Architecture{"gpu", 0.18, 0.07, 24 * kGiB, false},
};

constexpr std::array<std::string_view, 21> kKeys{
    "compute",    "unplug",     "id",          "open",          "close",         "hang",         "memory",
    "exclusive",  "shared",     "virtual",     "factor",        "seed",          "script",       "faults",
    "open_fails", "open_hangs", "close_fails", "out_of_memory", "dirty_refuses", "lost_mid_run", "run_hangs"};

[[noreturn]] void bad_value(std::string_view key, std::string_view value, std::string_view wanted) {
  throw Error(ErrorCode::invalid_argument, fmt::format("simulated device: {}={} is not {}", key, value, wanted));
}

// Parses a number at the start of |text| and removes it.
double number(std::string_view key, std::string_view& text, std::string_view wanted) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || !std::isfinite(value) || value < 0) bad_value(key, text, wanted);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

double seconds(std::string_view key, std::string_view value) {
  constexpr std::string_view kWanted = "a time such as 0.1, 2s or 100ms";
  std::string_view rest = value;
  const double amount = number(key, rest, kWanted);
  if (rest.empty() || rest == "s") return amount;
  if (rest == "ms") return amount * 1e-3;
  if (rest == "us") return amount * 1e-6;
  bad_value(key, value, kWanted);
}

std::uint64_t bytes(std::string_view key, std::string_view value) {
  constexpr std::string_view kWanted = "a size such as 8GiB, 512MiB or a number of bytes";
  constexpr std::array<std::pair<std::string_view, double>, 9> kUnits{{{"", 1.0},
                                                                       {"B", 1.0},
                                                                       {"KiB", 0x1p10},
                                                                       {"MiB", 0x1p20},
                                                                       {"GiB", 0x1p30},
                                                                       {"TiB", 0x1p40},
                                                                       {"KB", 1e3},
                                                                       {"MB", 1e6},
                                                                       {"GB", 1e9}}};
  std::string_view rest = value;
  const double amount = number(key, rest, kWanted);
  for (const auto& [unit, factor] : kUnits) {
    if (rest != unit) continue;
    const double total = amount * factor;
    if (total < 1 || total > 0x1p60) bad_value(key, value, kWanted);
    return static_cast<std::uint64_t>(total);
  }
  bad_value(key, value, kWanted);
}

double rate(std::string_view key, std::string_view value) {
  constexpr std::string_view kWanted = "a probability from 0 to 1";
  std::string_view rest = value;
  const double probability = number(key, rest, kWanted);
  if (!rest.empty() || probability > 1) bad_value(key, value, kWanted);
  return probability;
}

bool flag(std::string_view key, std::string_view value) {
  if (value.empty() || value == "true") return true;
  if (value == "false") return false;
  bad_value(key, value, "true or false");
}

double factor(std::string_view key, std::string_view value) {
  std::string_view rest = value;
  const double times = number(key, rest, "a number of at least 1");
  if (!rest.empty() || times < 1) bad_value(key, value, "a number of at least 1");
  return times;
}

std::uint64_t seed(std::string_view key, std::string_view value) {
  std::uint64_t result = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
  if (error != std::errc{} || end != value.data() + value.size()) bad_value(key, value, "a whole number");
  return result;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

double* rate_of(FaultRates& faults, std::string_view key) {
  if (key == "open_fails") return &faults.open_fails;
  if (key == "open_hangs") return &faults.open_hangs;
  if (key == "close_fails") return &faults.close_fails;
  if (key == "out_of_memory") return &faults.out_of_memory;
  if (key == "dirty_refuses") return &faults.dirty_refuses;
  if (key == "lost_mid_run") return &faults.lost_mid_run;
  if (key == "run_hangs") return &faults.run_hangs;
  return nullptr;
}

[[noreturn]] void unknown_key(std::string_view key) {
  const std::string meant = nearest(key, kKeys);
  throw Error(ErrorCode::invalid_argument,
              meant.empty() ? fmt::format("simulated device: unknown setting {}", key)
                            : fmt::format("simulated device: unknown setting {}; did you mean {}?", key, meant),
              fmt::format("known: {}", fmt::join(kKeys, ", ")));
}

}  // namespace

SimulatedDevice SimulatedDevice::of_architecture(std::string_view architecture) {
  std::vector<std::string_view> names;
  for (const Architecture& known : kArchitectures) {
    if (known.name == architecture)
      return {.architecture = std::string(known.name),
              .open_seconds = known.open_seconds,
              .close_seconds = known.close_seconds,
              .memory_bytes = known.memory_bytes,
              .exclusive = known.exclusive};
    names.push_back(known.name);
  }
  throw Error(ErrorCode::not_found, fmt::format("unknown simulated architecture '{}'", architecture),
              fmt::format("known: {}", fmt::join(names, ", ")));
}

void SimulatedDevice::set(std::string_view key, std::string_view value) {
  if (key == "id")
    id = value;
  else if (key == "open")
    open_seconds = seconds(key, value);
  else if (key == "close")
    close_seconds = seconds(key, value);
  else if (key == "compute")
    compute_seconds = seconds(key, value);
  else if (key == "hang")
    hang_seconds = seconds(key, value);
  else if (key == "memory")
    memory_bytes = bytes(key, value);
  else if (key == "exclusive")
    exclusive = flag(key, value);
  else if (key == "shared")
    exclusive = !flag(key, value);
  else if (key == "virtual")
    virtual_time = flag(key, value);
  else if (key == "factor")
    compute_factor = factor(key, value);
  else if (key == "unplug")
    unplug = value;
  else if (key == "seed")
    seed = tenon::seed(key, value);
  else if (key == "script")
    script = split(value, '+');
  else if (key == "faults")
    faults.open_fails = faults.open_hangs = faults.close_fails = faults.out_of_memory = faults.dirty_refuses =
        faults.lost_mid_run = rate(key, value);
  else if (double* probability = rate_of(faults, key))
    *probability = rate(key, value);
  else
    unknown_key(key);
}

SimulatedDevice parse_simulated(std::string_view text) {
  const std::vector<std::string> parts = split(text, ',');
  SimulatedDevice device = SimulatedDevice::of_architecture(parts.empty() ? std::string_view{} : parts.front());
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::string_view part = parts[i];
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos && part != "shared" && part != "exclusive" && part != "virtual") {
      for (const std::string_view known : kKeys)
        if (known == part) bad_value(part, "", "complete: it needs a value");
    }
    device.set(part.substr(0, equals), equals == std::string_view::npos ? std::string_view{} : part.substr(equals + 1));
  }
  return device;
}

bool is_simulated(const DeviceInfo& device) {
  const auto entry = device.details.find("simulated");
  return entry != device.details.end() && entry->second == "true";
}

}  // namespace tenon

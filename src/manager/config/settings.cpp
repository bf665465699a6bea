#include "manager/config/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <type_traits>

#include "base/threads/thread_pool.h"
#include "ops/names.h"
#include "tenon/error.h"

namespace tenon {
namespace {

constexpr double kForEver = 1e9;  // seconds, 30 years: no setting needs more

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return result;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t at = text.find(separator);
    const std::string_view part = trimmed(text.substr(0, at));
    if (!part.empty()) parts.emplace_back(part);
    if (at == std::string_view::npos) break;
    text.remove_prefix(at + 1);
  }
  return parts;
}

[[noreturn]] void refuse(const std::string& takes) { throw Error(ErrorCode::invalid_argument, takes); }

std::optional<double> parse_number(std::string_view text) {
  text = trimmed(text);
  double value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::string show(double value) { return fmt::format("{}", value); }

// How a setting's value is written and read. One function for each type of field.
struct Described {
  std::string name, group, doc;
  std::vector<std::string> variables;
};

template <class Value>
Setting number(Described d, Value Config::* field, double low, double high) {
  const char* const what = std::is_integral_v<Value> ? "an integer" : "a number";
  const std::string takes = fmt::format("{} from {} to {}", what, low, high);
  return {d.name,
          d.group,
          takes,
          d.variables,
          d.doc,
          "",
          [field](const Config& config) { return fmt::format("{}", config.*field); },
          [field, low, high, takes](Config& config, const std::string& text) {
            const std::optional<double> value = parse_number(text);
            if (!value || *value < low || *value > high) refuse(takes);
            if (std::is_integral_v<Value> && *value != std::floor(*value)) refuse(takes);
            config.*field = static_cast<Value>(*value);
          }};
}

// |absent| is the word for no value.
Setting optional_seconds(Described d, std::optional<double> Config::* field, const char* absent, double low) {
  const std::string takes = fmt::format("seconds from {} to {:g}, or {}", low, kForEver, absent);
  return {d.name,
          d.group,
          takes,
          d.variables,
          d.doc,
          "",
          [field, absent](const Config& config) { return config.*field ? show(*(config.*field)) : std::string(absent); },
          [field, absent, takes, low](Config& config, const std::string& text) {
            if (lower(trimmed(text)) == absent) {
              config.*field = std::nullopt;
              return;
            }
            const std::optional<double> value = parse_number(text);
            if (!value || *value < low || *value > kForEver) refuse(takes);
            config.*field = value;
          }};
}

std::optional<bool> parse_flag(std::string_view word) {
  if (word == "true" || word == "1" || word == "yes" || word == "on") return true;
  if (word == "false" || word == "0" || word == "no" || word == "off") return false;
  return std::nullopt;
}

Setting flag(Described d, bool Config::* field) {
  return {d.name,
          d.group,
          "true or false",
          d.variables,
          d.doc,
          "",
          [field](const Config& config) { return std::string(config.*field ? "true" : "false"); },
          [field](Config& config, const std::string& text) {
            const std::optional<bool> answer = parse_flag(lower(trimmed(text)));
            if (!answer) refuse("true or false");
            config.*field = *answer;
          }};
}

Setting isolate(Described d) {
  constexpr const char* kTakes = "auto, drivers, true or false";
  return {d.name,
          d.group,
          kTakes,
          d.variables,
          d.doc,
          "",
          [](const Config& config) { return std::string(name(config.isolate)); },
          [](Config& config, const std::string& text) {
            const std::string word = lower(trimmed(text));
            if (word == "auto") {
              config.isolate = Isolate::automatic;
            } else if (word == name(Isolate::drivers)) {
              config.isolate = Isolate::drivers;
            } else if (const std::optional<bool> answer = parse_flag(word)) {
              config.isolate = *answer ? Isolate::always : Isolate::never;
            } else {
              refuse(kTakes);
            }
          }};
}

template <class Choice>
Setting choice(Described d, Choice Config::* field, std::vector<Choice> choices) {
  std::vector<std::string_view> names;
  for (const Choice value : choices) names.push_back(name(value));
  const std::string takes = fmt::format("one of {}", fmt::join(names, ", "));
  return {d.name,
          d.group,
          takes,
          d.variables,
          d.doc,
          "",
          [field](const Config& config) { return std::string(name(config.*field)); },
          [field, choices, takes](Config& config, const std::string& text) {
            std::string word = lower(trimmed(text));
            std::replace(word.begin(), word.end(), '-', '_');
            for (const Choice value : choices)
              if (word == name(value)) {
                config.*field = value;
                return;
              }
            refuse(takes);
          }};
}

Setting prefer(Described d) {
  const std::string takes = "auto, a kind (cpu, gpu, tpu, tenstorrent) or the id of a device";
  return {d.name,
          d.group,
          takes,
          d.variables,
          d.doc,
          "",
          [](const Config& config) { return config.prefer; },
          [takes](Config& config, const std::string& text) {
            const std::string_view word = trimmed(text);
            const auto is_bad = [](char c) { return c <= ' ' || c == 127; };
            if (word.empty() || word.size() > 200 || std::any_of(word.begin(), word.end(), is_bad)) refuse(takes);
            const std::optional<DeviceKind> kind = parse_device_kind(word);
            config.prefer = kind ? std::string(name(*kind)) : lower(word) == "auto" ? "auto" : std::string(word);
          }};
}

Setting platform_priority(Described d) {
  const std::string takes = "comma-separated kinds in order: cpu, gpu, tpu, tenstorrent, other; each at most once";
  return {d.name,
          d.group,
          takes,
          d.variables,
          d.doc,
          "",
          [](const Config& config) {
            std::vector<std::string_view> names;
            for (const DeviceKind kind : config.platform_priority) names.push_back(name(kind));
            return fmt::format("{}", fmt::join(names, ","));
          },
          [takes](Config& config, const std::string& text) {
            std::vector<DeviceKind> kinds;
            for (const std::string& word : split(text, ',')) {
              const std::optional<DeviceKind> kind = parse_device_kind(word);
              if (!kind || std::find(kinds.begin(), kinds.end(), *kind) != kinds.end()) refuse(takes);
              kinds.push_back(*kind);
            }
            if (kinds.empty()) refuse(takes);
            config.platform_priority = kinds;
          }};
}

// Each of the two settings of memory replaces the other: the one from the stronger place decides, and of two from one place the
// fraction, which is the more precise.
Setting memory_strategy(Described d, std::vector<MemoryStrategy> strategies) {
  Setting setting = choice(std::move(d), &Config::memory_strategy, std::move(strategies));
  setting.set = [plain = setting.set](Config& config, const std::string& text) {
    plain(config, text);
    config.memory_fraction.reset();
  };
  return setting;
}

Setting memory_fraction(Described d) {
  const std::string takes = "a number from 0.1 to 1, or auto";
  return {d.name,
          d.group,
          takes,
          d.variables,
          d.doc,
          "",
          [](const Config& config) {
            return config.memory_fraction ? fmt::format("{}", *config.memory_fraction) : std::string("auto");
          },
          [takes](Config& config, const std::string& text) {
            if (lower(trimmed(text)) == "auto") {
              config.memory_fraction.reset();
              return;
            }
            const std::optional<double> value = parse_number(text);
            if (!value || !(*value >= 0.1 && *value <= 1.0)) refuse(takes);
            config.memory_fraction = value;
            config.memory_strategy = MemoryStrategy::custom;
          }};
}

Setting simulated(Described d) {
  const std::string takes = "simulated devices, separated by semicolons: ARCHITECTURE[,key=value...]";
  return {d.name,
          d.group,
          takes,
          d.variables,
          d.doc,
          "",
          [](const Config& config) {
            std::vector<std::string> texts;
            for (const SimulatedDevice& device : config.simulated)
              texts.push_back(device.architecture + (device.id.empty() ? "" : ",id=" + device.id));
            return fmt::format("{}", fmt::join(texts, "; "));
          },
          [](Config& config, const std::string& text) {
            config.simulated.clear();
            for (const std::string& part : split(text, ';')) config.simulated.push_back(parse_simulated(part));
          }};
}

Setting prices(Described d) {
  const std::string takes = "US dollars per hour from 0 to 1e+06 by id, kind or name: cuda:0=3.5,tpu=1.2";
  return {d.name,
          d.group,
          takes,
          d.variables,
          d.doc,
          "",
          [](const Config& config) {
            std::string text;
            for (const auto& [key, price] : config.prices) text += fmt::format("{}{}={}", text.empty() ? "" : ",", key, price);
            return text;
          },
          [takes](Config& config, const std::string& text) {
            for (const std::string& entry : split(text, ',')) {
              const std::size_t mark = entry.rfind('=');
              if (mark == std::string::npos || mark == 0) refuse(takes);
              const std::optional<double> price = parse_number(std::string_view(entry).substr(mark + 1));
              if (!price || *price < 0 || *price > 1e6) refuse(takes);
              config.prices[std::string(trimmed(std::string_view(entry).substr(0, mark)))] = *price;
            }
          }};
}

Setting environment(Described d) {
  const std::string takes = "NAME=value, one at a time";
  return {d.name,
          d.group,
          takes,
          d.variables,
          d.doc,
          "",
          [](const Config& config) {
            std::string text;
            for (const auto& [key, value] : config.environment)
              text += fmt::format("{}{}={}", text.empty() ? "" : " ", key, value);
            return text;
          },
          [takes](Config& config, const std::string& text) {
            const std::size_t mark = text.find('=');
            if (mark == std::string::npos || mark == 0 || text.find('\0') != std::string::npos) refuse(takes);
            config.environment[text.substr(0, mark)] = text.substr(mark + 1);
          }};
}

// Kept as a variable of the environment, where the backend ttnn reads it.
Setting tenstorrent_math(Described d) {
  constexpr const char* kVariable = "TENON_TENSTORRENT_MATH";
  const std::string takes = "exact, fast or auto";
  return {d.name,
          d.group,
          takes,
          d.variables,
          d.doc,
          {},
          [](const Config& config) {
            const auto found = config.environment.find(kVariable);
            return found == config.environment.end() ? std::string("auto") : found->second;
          },
          [takes](Config& config, const std::string& text) {
            if (text != "exact" && text != "fast" && text != "auto") refuse(takes);
            // The default needs no variable, unless this process has another value in its own environment.
            const std::string own = process_variable(kVariable);
            if (text == "auto" && (own.empty() || own == "auto"))
              config.environment.erase(kVariable);
            else
              config.environment[kVariable] = text;
          }};
}

Setting variable(Described d, std::string takes, std::string unset, std::function<bool(const std::string&)> has_effect = {}) {
  return {d.name, d.group, std::move(takes), d.variables, d.doc, std::move(unset), {}, {}, std::move(has_effect)};
}

std::function<bool(const std::string&)> one_of(std::vector<std::string> words) {
  return
      [words = std::move(words)](const std::string& text) { return std::find(words.begin(), words.end(), text) != words.end(); };
}

std::function<bool(const std::string&)> whole_number_from(std::int64_t least) {
  return [least](const std::string& text) {
    std::int64_t value = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    return failure == std::errc() && end == text.data() + text.size() && value >= least;
  };
}

std::vector<Setting> make_settings() {
  const char* const device = "Which device";
  const char* const memory = "Memory";
  const char* const programs = "Programs";
  const char* const batches = "Batches";
  const char* const leases = "Leases";
  const char* const money = "Money";
  const char* const process = "This process (environment only)";
  using M = MemoryStrategy;
  using R = RoutingMode;
  using K = KeepOpenPolicy;
  const double most = 1e9;
  return {
      prefer({"prefer",
              device,
              "The device to use; if it is missing, another one with a warning",
              {"TENON_PREFER", "COMPUTE_PREFER"}}),
      choice({"routing",
              device,
              "How auto chooses a device: by kind, by predicted time or cost, or only the preferred one",
              {"TENON_ROUTING"}},
             &Config::routing, {R::prefer, R::fastest, R::cheapest, R::pinned}),
      platform_priority({"platform_priority",
                         device,
                         "The kinds that auto considers, best first; other kinds are not used",
                         {"TENON_PLATFORM_PRIORITY"}}),
      flag({"allow_tpu", device, "Whether auto may choose a TPU", {"TENON_ALLOW_TPU", "COMPUTE_ALLOW_TPU"}}, &Config::allow_tpu),
      flag({"allow_simulated", device, "Whether auto may choose a simulated device", {"TENON_ALLOW_SIMULATED"}},
           &Config::allow_simulated),
      flag({"profile",
            device,
            "Whether measured times are kept between processes; fastest and cheapest predict from them",
            {"TENON_PROFILE"}},
           &Config::profile),
      tenstorrent_math({"tenstorrent_math",
                        device,
                        "How Tenstorrent chips compute: exact to the bit, fast with TTNN's functions, or fast within the limits",
                        {"TENON_TENSTORRENT_MATH"}}),
      simulated({"sim", device, "Simulated devices, for trying things without hardware", {"TENON_SIM"}}),

      memory_strategy({"memory_strategy",
                       memory,
                       "How much of a device's memory to use: 60 %, 75 %, 90 %, or memory_fraction",
                       {"TENON_MEMORY_STRATEGY"}},
                      {M::conservative, M::balanced, M::aggressive, M::custom}),
      // After memory_strategy: of two values from one place the later is applied last.
      memory_fraction({"memory_fraction",
                       memory,
                       "The fraction of a device's memory to use instead of that of memory_strategy",
                       {"TENON_MEMORY_FRACTION"}}),

      flag({"enable_x64", programs, "Whether results may be 64-bit floats and integers", {"TENON_ENABLE_X64"}},
           &Config::enable_x64),
      flag({"enable_jit", programs, "Whether nodes are fused into one loop; turn it off for debugging", {"TENON_ENABLE_JIT"}},
           &Config::enable_jit),
      isolate({"isolate",
               programs,
               "Which backends run in a separate process: all, none, those of a vendor's driver (cuda, opencl), or (a"
               "uto) these in the server and cuda in a library, unless another library uses the card here",
               {"TENON_ISOLATE"}}),
      environment({"environment", programs, "Environment variables that are set before backends load", {}}),

      number({"batch_min", batches, "The smallest batch", {"TENON_BATCH_MIN"}}, &Config::batch_min, 1, most),
      number({"batch_max", batches, "The largest batch", {"TENON_BATCH_MAX"}}, &Config::batch_max, 1, most),
      number({"prefetch", batches, "How many batches are prepared ahead of the device", {"TENON_PREFETCH"}}, &Config::prefetch, 0,
             1024),
      number({"tpu_batch_factor",
              batches,
              "The factor by which batches on a TPU are larger",
              {"TENON_TPU_BATCH_FACTOR", "COMPUTE_TPU_BATCH_FACTOR"}},
             &Config::tpu_batch_factor, 1, 1 << 20),

      choice({"keep_open", leases, "How long a device stays open without work", {"TENON_KEEP_OPEN"}}, &Config::keep_open,
             {K::on_demand, K::linger, K::adaptive, K::always}),
      optional_seconds(
          {"linger_seconds", leases, "The hold time of keep_open = linger; auto: the break-even time", {"TENON_LINGER_SECONDS"}},
          &Config::linger_seconds, "auto", 0),
      number({"worth", leases, "How many seconds of idle holding cost as much as one second of opening", {"TENON_WORTH"}},
             &Config::worth, 0, 1e6),
      optional_seconds({"quantum_seconds",
                        leases,
                        "How long a process may continue while another waits; auto: 10 times the open and close time",
                        {"TENON_QUANTUM_SECONDS"}},
                       &Config::quantum_seconds, "auto", 0),
      optional_seconds({"min_hold_seconds",
                        leases,
                        "The minimum time a process keeps a device it opened; auto: the open and close time",
                        {"TENON_MIN_HOLD_SECONDS"}},
                       &Config::min_hold_seconds, "auto", 0),
      optional_seconds(
          {"lease_timeout_seconds", leases, "How long to wait for a device; none: no limit", {"TENON_LEASE_TIMEOUT_SECONDS"}},
          &Config::lease_timeout_seconds, "none", 0),

      prices({"prices", money, "The price of a device per hour; built-in prices are estimates", {"TENON_PRICES"}}),
      flag({"ledger", money, "Whether the use of devices is recorded", {"TENON_LEDGER"}}, &Config::ledger),

      variable({"threads", process, "The number of threads of the CPU backend", {"TENON_THREADS"}}, "an integer of at least 1",
               std::to_string(usable_cores())),
      variable({"isa", process, "The highest instruction set level of CPU kernels", {"TENON_ISA"}}, "v2, v3 or v4", "best",
               one_of({"v2", "v3", "v4"})),
      variable({"run_dir", process, "The folder through which the processes of this machine share devices", {"TENON_RUN_DIR"}},
               "a folder", "/run/tenon or $XDG_RUNTIME_DIR/tenon"),
      variable({"state_dir", process, "The folder of profiles and the ledger", {"TENON_STATE_DIR"}}, "a folder",
               "$XDG_STATE_HOME/tenon or ~/.local/state/tenon"),
      variable({"ledger_rows",
                process,
                "The number of single uses the ledger keeps; older ones are merged into daily sums",
                {"TENON_LEDGER_ROWS"}},
               "an integer of at least 16", "100000", whole_number_from(16)),
      variable({"ledger_mib", process, "The maximum size of the ledger in MiB", {"TENON_LEDGER_MIB"}}, "an integer of at least 1",
               "64", whole_number_from(1)),
      variable({"log_format", process, "The format of log lines", {"TENON_LOG_FORMAT"}}, "text or json", "text",
               one_of({"text", "json"})),
      variable({"log", process, "The lowest level that is logged to stderr", {"TENON_LOG"}}, "debug, info, warn, error or off",
               "warn", one_of({"debug", "info", "warn", "error", "off"})),
  };
}

}  // namespace

std::span<const Setting> settings() {
  static const std::vector<Setting> table = make_settings();
  return table;
}

const Setting& find_setting(std::string_view wanted) {
  const std::string_view base = wanted.substr(0, wanted.find('.'));
  const bool is_entry = base.size() != wanted.size();
  std::vector<std::string> known;
  for (const Setting& setting : settings()) {
    if (setting.name == base && (!is_entry || setting.name == "prices" || setting.name == "environment")) return setting;
    known.push_back(setting.name);
  }
  const std::vector<std::string_view> names(known.begin(), known.end());
  throw Error(ErrorCode::not_found, fmt::format("unknown setting '{}'", wanted),
              name_hint(wanted, names, "check its name in the list of settings"));
}

}  // namespace tenon

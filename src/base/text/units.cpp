#include "base/text/units.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string_view>

namespace tenon {
namespace {

std::string three_digits(double value) {
  if (!std::isfinite(value)) return "-";
  const double size = std::fabs(value);
  if (size >= 99.95) return fmt::format("{:.0f}", value);
  return size >= 9.995 ? fmt::format("{:.1f}", value) : fmt::format("{:.2f}", value);
}

}  // namespace

std::string format_seconds(double seconds) {
  if (seconds < 0.9995e-6) return fmt::format("{:.0f} ns", seconds * 1e9);
  if (seconds < 0.9995e-3) return three_digits(seconds * 1e6) + " us";
  if (seconds < 0.9995) return three_digits(seconds * 1e3) + " ms";
  return three_digits(seconds) + " s";
}

std::string format_bytes(double bytes) {
  if (bytes < 1024) return fmt::format("{:.0f} B", bytes);
  constexpr std::array<std::string_view, 5> units{"KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  for (bytes /= 1024; bytes >= 1023.5 && unit + 1 < units.size(); ++unit) bytes /= 1024;
  return fmt::format("{} {}", three_digits(bytes), units[unit]);
}

std::string format_dollars(double dollars) {
  constexpr double kSmallest = 1e-9;
  if (dollars == 0) return "$0";
  const char* const sign = dollars < 0 ? "-" : "";
  const double size = std::fabs(dollars);
  if (size < kSmallest) return fmt::format("{}$0.000000001 at most", sign);
  if (size >= 0.095) return fmt::format("{}${:.2f}", sign, size);
  const int decimals = 1 - static_cast<int>(std::floor(std::log10(size)));
  return fmt::format("{}${:.{}f}", sign, size, decimals);
}

std::string format_rate(double per_second, const char* unit) {
  constexpr std::array<std::string_view, 5> prefixes{"", "k", "M", "G", "T"};
  std::size_t prefix = 0;
  for (; per_second >= 999.5 && prefix + 1 < prefixes.size(); ++prefix) per_second /= 1000;
  return fmt::format("{} {}{}", three_digits(per_second), prefixes[prefix], unit);
}

}  // namespace tenon

#include "cli/money.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstring>
#include <ctime>

#include "base/units.h"
#include "tenon/error.h"

namespace tenon::cli {

std::string money_text(double dollars, bool is_estimate) {
  const char* mark = is_estimate && dollars != 0 ? "~" : "";
  if (dollars != 0 && std::fabs(dollars) < 0.095) return fmt::format("{}{:.2g} $", mark, dollars);
  return fmt::format("{}{:.2f} $", mark, dollars);
}

std::string duration_text(double seconds) {
  constexpr double kMinute = 60, kHour = 3600, kDay = 86400;
  if (seconds == 0) return "0 s";
  if (seconds < kMinute) return format_seconds(seconds);
  if (seconds < kHour) return fmt::format("{:.3g} min", seconds / kMinute);
  if (seconds < kDay) return fmt::format("{:.3g} h", seconds / kHour);
  return fmt::format("{:.{}f} d", seconds / kDay, seconds < 100 * kDay ? 1 : 0);
}

std::chrono::system_clock::time_point parse_since(std::string_view text, std::chrono::system_clock::time_point now) {
  constexpr std::pair<char, double> units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}, {'w', 7 * 86400}};
  double amount = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, amount);
  if (read.ec == std::errc() && read.ptr + 1 == end && amount >= 0 && amount < 1e6)
    for (const auto& [letter, seconds] : units)
      if (*read.ptr == letter)
        return now -
               std::chrono::duration_cast<std::chrono::system_clock::duration>(std::chrono::duration<double>(amount * seconds));
  const std::string date(text);
  for (const char* format : {"%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"}) {
    std::tm parts{};
    const char* rest = strptime(date.c_str(), format, &parts);
    if (rest == nullptr || *rest != '\0') continue;
    parts.tm_isdst = -1;
    const int day = parts.tm_mday;
    const std::time_t time = std::mktime(&parts);
    // The 31st of February becomes a day of March.
    if (time != -1 && parts.tm_mday == day) return std::chrono::system_clock::from_time_t(time);
  }
  throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is no time in the past", text),
              "write 30m, 12h, 7d or 4w, or a date such as 2026-11-01");
}

}  // namespace tenon::cli

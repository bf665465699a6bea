#include "present/text.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "base/text/units.h"

namespace tenon::present {

std::string TextStyle::bold(std::string_view text) const {
  return has_colour ? fmt::format("\033[1m{}\033[0m", text) : std::string(text);
}

std::string TextStyle::dim(std::string_view text) const {
  return has_colour ? fmt::format("\033[2m{}\033[0m", text) : std::string(text);
}

std::size_t columns(std::string_view text) {
  const auto begins_character = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; };
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

std::string padded(std::string text, std::size_t width) {
  const std::size_t has = columns(text);
  if (has < width) text.append(width - has, ' ');
  return text;
}

std::vector<std::string> aligned(const Rows& rows, int indent) {
  std::vector<std::size_t> widths(rows[0].size());
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns(row[i]));
  std::vector<std::string> lines;
  for (const auto& row : rows) {
    std::string line(static_cast<std::size_t>(indent), ' ');
    for (std::size_t i = 0; i + 1 < row.size(); ++i) line += padded(row[i], widths[i]) + "  ";
    lines.push_back(line + row.back());
  }
  return lines;
}

std::string table(const Rows& rows, const TextStyle& style, int indent) {
  std::string text;
  const std::vector<std::string> lines = aligned(rows, indent);
  for (std::size_t i = 0; i < lines.size(); ++i) text += (i == 0 ? style.bold(lines[i]) : lines[i]) + '\n';
  return text;
}

std::string wrap(std::string_view text, int width, int indent) {
  std::string out;
  std::size_t column = static_cast<std::size_t>(indent);
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (word.empty()) continue;
    if (!out.empty() && column + 1 + word.size() > static_cast<std::size_t>(width)) {
      out += '\n' + std::string(static_cast<std::size_t>(indent), ' ');
      column = static_cast<std::size_t>(indent);
    } else if (!out.empty()) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out;
}

std::string money_text(double dollars, bool is_estimate) {
  return (is_estimate && dollars != 0 ? "~" : "") + format_dollars(dollars);
}

std::string duration_text(double seconds) {
  constexpr double kMinute = 60, kHour = 3600, kDay = 86400;
  if (seconds == 0) return "0 s";
  if (seconds < kMinute) return format_seconds(seconds);
  if (seconds < kHour) return fmt::format("{:.3g} min", seconds / kMinute);
  if (seconds < kDay) return fmt::format("{:.3g} h", seconds / kHour);
  return fmt::format("{:.{}f} d", seconds / kDay, seconds < 100 * kDay ? 1 : 0);
}

std::string utc_text(std::chrono::system_clock::time_point when) {
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(when.time_since_epoch()).count();
  const std::time_t seconds = static_cast<std::time_t>(milliseconds / 1000);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", parts, milliseconds % 1000);
}

}  // namespace tenon::present

#include "lease/policy/arrival_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

#include "tenon/error.h"

namespace tenon {
namespace {

constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;
constexpr std::size_t kMaxShownText = 40;

[[noreturn]] void bad_line(std::size_t line, const std::string& what, const std::string& hint = {}) {
  throw Error(ErrorCode::invalid_argument, fmt::format("line {}: {}", line, what), hint);
}

std::string shown(std::string_view text) {
  std::string cut(text.substr(0, kMaxShownText));
  for (char& c : cut)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return cut + (text.size() > kMaxShownText ? "..." : "");
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Takes the next line off |rest|, without its end.
std::string_view take_line(std::string_view& rest) {
  const std::size_t end = rest.find('\n');
  std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::vector<std::string> split(std::string_view line, std::size_t number) {
  std::vector<std::string> fields(1);
  bool is_quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') {
      if (is_quoted && i + 1 < line.size() && line[i + 1] == '"')
        fields.back() += line[i++];
      else
        is_quoted = !is_quoted;
    } else if (line[i] == ',' && !is_quoted) {
      fields.emplace_back();
    } else {
      fields.back() += line[i];
    }
  }
  if (is_quoted) bad_line(number, "a quoted field has no closing quote");
  return fields;
}

std::optional<double> number_in(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

class TimestampReader {
 public:
  explicit TimestampReader(std::string_view text) : rest_(trimmed(text)) {}

  // Nanoseconds since 1970; nothing when the text is no date and time.
  std::optional<std::int64_t> read() {
    const auto year = digits(4);
    if (!year || !skip('-')) return std::nullopt;
    const auto month = digits(2);
    if (!month || !skip('-')) return std::nullopt;
    const auto day = digits(2);
    if (!day || !(skip(' ') || skip('T'))) return std::nullopt;
    const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(*year)),
                                           std::chrono::month(static_cast<unsigned>(*month)),
                                           std::chrono::day(static_cast<unsigned>(*day))};
    const auto hour = digits(2);
    if (!date.ok() || !hour || !skip(':')) return std::nullopt;
    const auto minute = digits(2);
    if (!minute || !skip(':')) return std::nullopt;
    const auto second = digits(2);
    if (!second || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
    const auto nanoseconds = fraction();
    const auto offset = offset_seconds();
    if (!nanoseconds || !offset || !rest_.empty()) return std::nullopt;
    const std::int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
    return (days * 86'400 + *hour * 3'600 + *minute * 60 + *second - *offset) * kNanosecondsPerSecond + *nanoseconds;
  }

 private:
  std::optional<std::int64_t> digits(std::size_t count) {
    std::int64_t value = 0;
    if (rest_.size() < count) return std::nullopt;
    for (const char c : rest_.substr(0, count)) {
      if (c < '0' || c > '9') return std::nullopt;
      value = value * 10 + (c - '0');
    }
    rest_.remove_prefix(count);
    return value;
  }
  bool skip(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  // Digits past the ninth are dropped.
  std::optional<std::int64_t> fraction() {
    if (!skip('.')) return 0;
    std::int64_t value = 0, unit = kNanosecondsPerSecond;
    std::size_t count = 0;
    for (; count < rest_.size() && rest_[count] >= '0' && rest_[count] <= '9'; ++count, unit /= 10)
      value += (rest_[count] - '0') * (unit / 10);
    if (count == 0) return std::nullopt;
    rest_.remove_prefix(count);
    return value;
  }
  std::optional<std::int64_t> offset_seconds() {
    if (rest_.empty() || skip('Z')) return 0;
    const std::int64_t sign = skip('+') ? 1 : skip('-') ? -1 : 0;
    const auto hours = digits(2);
    skip(':');
    const auto minutes = digits(2);
    if (sign == 0 || !hours || !minutes) return std::nullopt;
    return sign * (*hours * 3'600 + *minutes * 60);
  }

  std::string_view rest_;
};

struct Columns {
  std::size_t arrival = 0, count = 0;
  std::optional<std::size_t> service;
  bool is_timestamp = false;
};

Columns read_columns(const std::vector<std::string>& names) {
  const auto find = [&](std::string_view wanted) -> std::optional<std::size_t> {
    for (std::size_t i = 0; i < names.size(); ++i)
      if (trimmed(names[i]) == wanted) return i;
    return std::nullopt;
  };
  Columns columns{.count = names.size(), .service = find("service_seconds")};
  if (const auto seconds = find("arrival_seconds")) {
    columns.arrival = *seconds;
  } else if (const auto timestamp = find("TIMESTAMP")) {
    columns.arrival = *timestamp;
    columns.is_timestamp = true;
  } else {
    bad_line(1, "no column TIMESTAMP or arrival_seconds", "the first line must name the columns");
  }
  return columns;
}

// In nanoseconds, so that times of the present keep their digits.
std::int64_t read_arrival(const std::string& text, bool is_timestamp, std::size_t line) {
  if (is_timestamp)
    if (const auto time = TimestampReader(text).read()) return *time;
  const auto seconds = number_in(text);
  if (!seconds || std::fabs(*seconds) > 9e9)
    bad_line(line, fmt::format("'{}' is not a {}", shown(text),
                               is_timestamp ? "time such as 2023-11-16 18:17:03.9799600" : "number of seconds"));
  return static_cast<std::int64_t>(std::llround(*seconds * static_cast<double>(kNanosecondsPerSecond)));
}

}  // namespace

std::vector<Arrival> parse_arrivals(std::string_view csv, double default_service_seconds) {
  if (csv.starts_with("\xef\xbb\xbf")) csv.remove_prefix(3);
  if (csv.empty()) bad_line(1, "the trace is empty");
  const Columns columns = read_columns(split(take_line(csv), 1));
  std::vector<std::pair<std::int64_t, double>> rows;
  for (std::size_t line = 2; !csv.empty(); ++line) {
    const std::string_view text = take_line(csv);
    if (text.empty() && csv.find_first_not_of("\r\n") == std::string_view::npos) break;
    const std::vector<std::string> fields = split(text, line);
    if (fields.size() != columns.count)
      bad_line(line, fmt::format("{} field{}, but the first line names {}", fields.size(), fields.size() == 1 ? "" : "s",
                                 columns.count));
    const std::int64_t arrival = read_arrival(fields[columns.arrival], columns.is_timestamp, line);
    double service = default_service_seconds;
    if (columns.service) {
      const auto given = number_in(fields[*columns.service]);
      if (!given || *given < 0)
        bad_line(line, fmt::format("'{}' is not a service time in seconds", shown(fields[*columns.service])));
      service = *given;
    }
    rows.emplace_back(arrival, service);
  }
  if (rows.empty()) bad_line(2, "the trace has no rows");
  std::sort(rows.begin(), rows.end());
  std::vector<Arrival> arrivals;
  arrivals.reserve(rows.size());
  for (const auto& [time, service] : rows)
    arrivals.push_back({static_cast<double>(time - rows.front().first) / static_cast<double>(kNanosecondsPerSecond), service});
  return arrivals;
}

std::vector<Arrival> load_arrivals(const std::filesystem::path& file, double default_service_seconds) {
  std::ifstream stream(file, std::ios::binary);
  std::string text;
  if (stream) text.assign(std::istreambuf_iterator<char>(stream), {});
  if (!stream || stream.bad()) {
    const ErrorCode code = errno == ENOENT   ? ErrorCode::not_found
                           : errno == EACCES ? ErrorCode::permission_denied
                                             : ErrorCode::unknown;
    throw Error(code, fmt::format("cannot read {}: {}", file.string(), std::strerror(errno)));
  }
  try {
    return parse_arrivals(text, default_service_seconds);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}, {}", file.string(), error.what()), error.hint());
  }
}

}  // namespace tenon

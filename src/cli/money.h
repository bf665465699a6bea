// Money and longer times, as people write them.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace tenon::cli {

// "12.50 $", "~0.0042 $": two decimals, more for small sums; with ~ where the price is an estimate.
std::string money_text(double dollars, bool is_estimate);
// "812 ms", "45.0 s", "12.3 min", "3.25 h", "2.4 d"
std::string duration_text(double seconds);

// "7d", "12h", "30m", "90s", "4w" before |now|, or the beginning of a day here, "2026-11-01", or "2026-11-01T14:30". Throws
// invalid_argument.
std::chrono::system_clock::time_point parse_since(std::string_view text, std::chrono::system_clock::time_point now);

}  // namespace tenon::cli

// Text for people that several descriptions share: columns, wrapped lines, money, durations and times.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::present {

// What the place that shows a text can do.
struct TextStyle {
  bool has_colour = false;
  int width = 80;  // columns

  // |text| as it is, or wrapped in the code for the style where there is colour.
  std::string bold(std::string_view text) const;
  std::string dim(std::string_view text) const;
};

using Rows = std::vector<std::vector<std::string>>;

// What stands in a table for a value that is not known.
inline constexpr const char* kNothing = "-";

std::size_t columns(std::string_view text);  // that UTF-8 text takes, one for each character
std::string padded(std::string text, std::size_t width);

// The rows with their columns aligned, |indent| spaces in front of each. There is at least one row.
std::vector<std::string> aligned(const Rows& rows, int indent = 0);
// The same as one text, the first row in bold; each line ends with a newline.
std::string table(const Rows& rows, const TextStyle& style, int indent = 0);

// |text| broken at spaces into lines of at most |width|; lines after the first begin with |indent| spaces. A word longer than a
// line stays whole.
std::string wrap(std::string_view text, int width, int indent);

// "$12.50", "~$0.0042": with ~ where the price is an estimate.
std::string money_text(double dollars, bool is_estimate);
// "812 ms", "45.0 s", "12.3 min", "3.25 h", "2.4 d"
std::string duration_text(double seconds);
// "2026-01-31T12:00:00.000Z"
std::string utc_text(std::chrono::system_clock::time_point when);

}  // namespace tenon::present

// Checks of what options are given.
//
//   command->add_option("--timeout", seconds, "...")->check(in_range(0.0, 1e9));
//   command->add_option("--memory", bytes, "...")->transform(size_in_bytes());
//   command->add_option("--color", when, "...")->check(one_of({"auto", "always", "never"}));
//
// What does not fit, nan and infinities included, is refused with a sentence: "--timeout: must be a number from 0 to 1e+09, not
// -1".
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <concepts>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/command_line.h"

namespace tenon::cli {

// Numbers that begin with a dash come with a space in front (parse_and_run).
inline std::string without_spaces(const std::string& text) {
  const auto is_space = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  const auto first = std::ranges::find_if_not(text, is_space);
  const auto last = std::find_if_not(text.rbegin(), std::make_reverse_iterator(first), is_space).base();
  return {first, last};
}

template <class Number>
OptionCheck in_range(Number low, Number high) {
  return [low, high](std::string& text) -> std::string {
    char* end = nullptr;
    Number value;
    if constexpr (std::integral<Number>)
      value = static_cast<Number>(std::clamp<long long>(std::strtoll(text.c_str(), &end, 0), std::numeric_limits<Number>::min(),
                                                        std::numeric_limits<Number>::max()));
    else
      value = std::strtod(text.c_str(), &end);
    // Written so that nan, which is on neither side of anything, is outside.
    if (!text.empty() && end == text.c_str() + text.size() && value >= low && value <= high) return "";
    return fmt::format("must be a {} from {} to {}, not {}", std::integral<Number> ? "whole number" : "number", low, high,
                       without_spaces(text));
  };
}

// 4096, 64K, 512MiB, 1.5 GB: all in powers of 1024. Nothing fits into 0 bytes, so 0 is refused.
OptionCheck size_in_bytes();

// One of |words|, which are two or more.
inline OptionCheck one_of(std::vector<std::string> words) {
  return [words = std::move(words)](std::string& text) -> std::string {
    if (std::find(words.begin(), words.end(), text) != words.end()) return "";
    const std::span<const std::string> all_but_last(words.begin(), words.end() - 1);
    return fmt::format("must be {} or {}, not {}", fmt::join(all_but_last, ", "), words.back(), without_spaces(text));
  };
}

}  // namespace tenon::cli

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

#include <CLI/CLI.hpp>
#include <algorithm>
#include <concepts>
#include <span>
#include <string>
#include <vector>

namespace tenon::cli {

// Numbers that begin with a dash come with a space in front (parse_and_run).
inline std::string without_spaces(const std::string& text) { return CLI::detail::trim_copy(text); }

template <class Number>
CLI::Validator in_range(Number low, Number high) {
  const auto check = [low, high](std::string& text) -> std::string {
    Number value{};
    // Written so that nan, which is on neither side of anything, is outside.
    if (CLI::detail::lexical_cast(text, value) && value >= low && value <= high) return "";
    return fmt::format("must be a {} from {} to {}, not {}", std::integral<Number> ? "whole number" : "number", low, high,
                       without_spaces(text));
  };
  return CLI::Validator(check, "");
}

// 4096, 64K, 512MiB, 1.5 GB: all in powers of 1024. Nothing fits into 0 bytes, so 0 is refused.
inline CLI::Validator size_in_bytes() {
  const auto read = [](std::string& text) -> std::string {
    const std::string given = without_spaces(text);
    const std::string refusal = fmt::format("must be a size such as 4096 or 512MiB, not {}", given);
    if (given.starts_with('-')) return refusal;
    try {
      if (!CLI::AsSizeValue(false)(text).empty()) return refusal;
      return text == "0" ? fmt::format("must be a size of at least 1 byte, not {}", given) : "";
    } catch (const CLI::ValidationError&) {
      return refusal;
    }
  };
  return CLI::Validator(read, "");
}

// One of |words|, which are two or more.
inline CLI::Validator one_of(std::vector<std::string> words) {
  const auto check = [words = std::move(words)](std::string& text) -> std::string {
    if (std::find(words.begin(), words.end(), text) != words.end()) return "";
    const std::span<const std::string> all_but_last(words.begin(), words.end() - 1);
    return fmt::format("must be {} or {}, not {}", fmt::join(all_but_last, ", "), words.back(), without_spaces(text));
  };
  return CLI::Validator(check, "");
}

}  // namespace tenon::cli

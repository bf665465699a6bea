#include "ops/names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "tenon/error.h"

namespace tenon {
namespace {

// Names are short; what is longer than this is no misspelt name, and must not cost quadratic time.
constexpr std::size_t kLongestName = 64;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

template <class Text>
std::string nearest_of(std::string_view wanted, std::span<const Text> candidates) {
  if (wanted.empty() || wanted.size() > kLongestName) return {};
  const std::size_t limit = std::clamp<std::size_t>(wanted.size() / 3, 1, 3);
  std::size_t best_distance = limit + 1;
  std::string_view best;
  for (const Text& text : candidates) {
    const std::string_view candidate = text;
    const std::size_t longer = std::max(candidate.size(), wanted.size());
    const std::size_t shorter = std::min(candidate.size(), wanted.size());
    if (longer - shorter >= best_distance) continue;
    const std::size_t distance = edit_distance(wanted, candidate);
    // Changing every letter makes a different word, however short it is.
    if (distance >= best_distance || distance >= longer) continue;
    best_distance = distance;
    best = candidate;
  }
  return std::string(best);
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  const std::size_t columns = b.size() + 1;
  std::vector<std::size_t> before_last(columns), last(columns), row(columns);
  for (std::size_t j = 0; j < columns; ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(before_last, last);
    std::swap(last, row);
    row[0] = i;
    for (std::size_t j = 1; j < columns; ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0U : 1U)});
      const bool swapped = i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]);
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row.back();
}

std::string nearest(std::string_view wanted, std::span<const std::string_view> candidates) {
  return nearest_of(wanted, candidates);
}
std::string nearest(std::string_view wanted, std::span<const std::string> candidates) { return nearest_of(wanted, candidates); }

std::string input_name(const OpInfo& op, std::size_t index) {
  return index < op.input_names.size() ? op.input_names[index] : fmt::format("input{}", index);
}

DType dtype_named(std::string_view text) {
  if (const auto dtype = parse_dtype(text)) return *dtype;
  std::vector<std::string> names;
  for (const DType dtype : all_dtypes()) names.emplace_back(name(dtype));
  const std::string near = nearest(text, names);
  throw Error(ErrorCode::invalid_argument, fmt::format("unknown dtype '{}'", text),
              near.empty() ? fmt::format("dtypes: {}", fmt::join(names, ", ")) : fmt::format("did you mean '{}'?", near));
}

std::string name_hint(std::string_view wanted, std::span<const std::string_view> candidates, std::string otherwise) {
  constexpr std::size_t kMost = 6;
  if (const std::string near = nearest(wanted, candidates); !near.empty()) return fmt::format("did you mean '{}'?", near);
  std::vector<std::string_view> longer;
  if (wanted.size() >= 2)
    for (const std::string_view candidate : candidates)
      if (candidate.find(wanted) != std::string_view::npos) longer.push_back(candidate);
  std::string_view relation = "contain it";
  // "convolution": conv2d does not contain it, but begins with the same letters.
  constexpr std::size_t kAlike = 4;
  if (longer.empty() && wanted.size() > kAlike) {
    relation = "begin alike";
    for (const std::string_view candidate : candidates)
      if (candidate.starts_with(wanted.substr(0, kAlike))) longer.push_back(candidate);
  }
  if (longer.empty()) return otherwise;
  const bool are_more = longer.size() > kMost;
  if (are_more) longer.resize(kMost);
  return fmt::format("names that {}: {}{}", relation, fmt::join(longer, ", "), are_more ? ", ..." : "");
}

}  // namespace tenon

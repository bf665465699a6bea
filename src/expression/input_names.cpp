#include "expression/input_names.h"

#include <fmt/format.h>

#include <algorithm>

#include "ops/names.h"
#include "tenon/array/dtype.h"
#include "tenon/error.h"

namespace tenon {

bool is_identifier(std::string_view text) noexcept {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !text.empty() && text.size() <= 64 && is_letter(text[0]) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

void require_used(const std::string& input, std::span<const std::string> read) {
  if (std::find(read.begin(), read.end(), input) != read.end()) return;
  // A constant's or dtype's name is not among the free names, though an input may take its place.
  if (input == "e" || input == "pi" || parse_dtype(input)) return;
  const std::string near = nearest(input, read);
  throw Error(ErrorCode::invalid_argument, fmt::format("the expression does not use input '{}'", input),
              near.empty() ? "" : fmt::format("did you mean '{}'?", near));
}

}  // namespace tenon

#include "server/routes/parameters.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string>

#include "tenon/error.h"

namespace tenon::server {

std::uint64_t natural_parameter(const Call& call, std::string_view name, std::uint64_t fallback) {
  constexpr std::uint64_t kLargest = (std::uint64_t{1} << 53) - 1;
  const std::optional<std::string> text = call.request.parameter(name);
  if (!text) return fallback;
  std::uint64_t value = 0;
  const auto [end, failure] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (failure != std::errc() || end != text->data() + text->size() || value > kLargest)
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' must be an integer", name));
  return value;
}

}  // namespace tenon::server

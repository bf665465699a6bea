#include "server/http/message.h"

#include <algorithm>
#include <cstring>

namespace tenon::server {
namespace {

char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }

int hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  const char l = lower(c);
  return l >= 'a' && l <= 'f' ? l - 'a' + 10 : -1;
}

}  // namespace

std::string_view name(Method method) noexcept {
  constexpr std::string_view names[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", ""};
  return names[static_cast<std::size_t>(method)];
}

bool equal_ignoring_case(std::string_view a, std::string_view b) noexcept {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) { return lower(x) == lower(y); });
}

void Body::reserve(std::size_t filled, std::size_t wanted) {
  HostArray larger = HostArray::empty(DType::u8, {static_cast<std::int64_t>(std::min(wanted, size) + offset)});
  if (filled > 0) std::memcpy(larger.mutable_data() + offset, block.data() + offset, filled);
  block = std::move(larger);
}

std::string_view Request::field(std::string_view name) const noexcept {
  for (const Field& field : fields)
    if (equal_ignoring_case(field.name, name)) return field.value;
  return {};
}

std::size_t Request::count(std::string_view name) const noexcept {
  return static_cast<std::size_t>(
      std::count_if(fields.begin(), fields.end(), [&](const Field& field) { return equal_ignoring_case(field.name, name); }));
}

std::optional<std::string> Request::parameter(std::string_view name) const {
  std::string_view rest = query;
  while (!rest.empty()) {
    const std::size_t end = rest.find('&');
    const std::string_view pair = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    const std::size_t equals = pair.find('=');
    if (percent_decode(pair.substr(0, equals), true) != name) continue;
    return percent_decode(equals == std::string_view::npos ? std::string_view() : pair.substr(equals + 1), true);
  }
  return std::nullopt;
}

std::size_t Response::bytes() const noexcept {
  if (!fixed.empty()) return fixed.size();
  std::size_t total = body.size();
  for (const HostArray& array : tail) total += array.bytes();
  return total;
}

std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '+' && plus_is_space) c = ' ';
    if (c == '%') {
      const int high = text.size() - i > 2 ? hex_digit(text[i + 1]) : -1;
      const int low = text.size() - i > 2 ? hex_digit(text[i + 2]) : -1;
      if (high < 0 || low < 0) return std::nullopt;
      c = static_cast<char>(high * 16 + low);
      i += 2;
    }
    if (c == '\0') return std::nullopt;
    decoded += c;
  }
  return decoded;
}

}  // namespace tenon::server

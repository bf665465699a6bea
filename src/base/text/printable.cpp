#include "base/text/printable.h"

#include <cstdint>

namespace tenon {
namespace {

struct Character {
  std::size_t bytes = 0;  // 0: not well-formed
  std::uint32_t code = 0;
};

// The shortest form only, no surrogates, nothing beyond U+10FFFF (RFC 3629).
Character character_at(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i])); };
  const std::uint32_t lead = byte(0);
  if (lead < 0x80) return {1, lead};
  const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < bytes) return {};
  std::uint32_t code = lead & (0xFFu >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3F);
  }
  constexpr std::uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < smallest[bytes] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return {};
  return {bytes, code};
}

}  // namespace

std::string printable(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const Character c = character_at(text);
    const bool is_control = c.code < 0x20 || (c.code >= 0x7F && c.code < 0xA0);
    if (c.bytes == 0 || is_control)
      shown += '?';
    else
      shown += text.substr(0, c.bytes);
    text.remove_prefix(c.bytes == 0 ? 1 : c.bytes);
  }
  return shown;
}

}  // namespace tenon

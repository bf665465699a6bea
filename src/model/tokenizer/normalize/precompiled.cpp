#include "model/tokenizer/normalize/precompiled.h"

#include <cstring>

#include "model/tokenizer/normalize/unicode.h"
#include "tenon/error.h"

namespace tenon::tokenizer {
namespace {

std::string from_base64(std::string_view text) {
  std::string out;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    int value = -1;
    if (c >= 'A' && c <= 'Z')
      value = c - 'A';
    else if (c >= 'a' && c <= 'z')
      value = c - 'a' + 26;
    else if (c >= '0' && c <= '9')
      value = c - '0' + 52;
    else if (c == '+')
      value = 62;
    else if (c == '/')
      value = 63;
    else if (c == '=' || c == '\n')
      continue;
    else
      throw Error(ErrorCode::invalid_argument, "tokenizer: precompiled_charsmap is not base64");
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    if ((count += 6) >= 8) {
      count -= 8;
      out += static_cast<char>(bits >> count & 0xff);
    }
  }
  return out;
}

}  // namespace

CharacterMap::CharacterMap(std::string_view data) {
  const std::string bytes = from_base64(data);
  std::uint32_t size = 0;
  if (bytes.size() < 4) throw Error(ErrorCode::invalid_argument, "tokenizer: precompiled_charsmap is cut off");
  std::memcpy(&size, bytes.data(), 4);
  if (size % 4 != 0 || size > bytes.size() - 4)
    throw Error(ErrorCode::invalid_argument, "tokenizer: precompiled_charsmap is cut off");
  units_.resize(size / 4);
  if (size > 0) std::memcpy(units_.data(), bytes.data() + 4, size);
  replacements_ = bytes.substr(4 + size);
}

bool CharacterMap::find(std::string_view text, std::string& out) const {
  // The layout of darts-clone: offset, label and leaf flag in each unit.
  const auto offset_of = [](std::uint32_t unit) { return (unit >> 10) << ((unit & (1u << 9)) >> 6); };
  if (units_.empty()) return false;
  std::size_t at = offset_of(units_[0]);
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte == 0) return false;
    at ^= byte;
    if (at >= units_.size()) return false;
    const std::uint32_t unit = units_[at];
    if ((unit & (1u << 31 | 0xff)) != byte) return false;
    at ^= offset_of(unit);
    if ((unit >> 8 & 1) == 0) continue;
    if (at >= units_.size()) return false;
    const std::size_t begin = units_[at] & 0x7fffffff;
    if (begin >= replacements_.size()) return false;
    out = replacements_.substr(begin, replacements_.find('\0', begin) - begin);
    return true;
  }
  return false;
}

std::u32string CharacterMap::apply(std::u32string_view text) const {
  std::u32string out;
  std::string replacement;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = grapheme_end(text, at);
    const std::string whole = encode_utf8(text.substr(at, end - at));
    // Short clusters are looked up as a whole first, then letter by letter.
    if (whole.size() < 6 && find(whole, replacement)) {
      out += decode_utf8(replacement);
    } else {
      for (std::size_t i = at; i < end; ++i) {
        if (find(encode_utf8(text.substr(i, 1)), replacement))
          out += decode_utf8(replacement);
        else
          out += text[i];
      }
    }
    at = end;
  }
  return out;
}

}  // namespace tenon::tokenizer

#include "model/tokenizer/normalize/unicode.h"

#include <utf8proc.h>

#include <vector>

#include "model/tokenizer/normalize/older_unicode.h"
#include "tenon/error.h"

namespace tenon::tokenizer {
namespace {

utf8proc_category_t category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

}  // namespace

std::u32string decode_utf8(std::string_view text) {
  std::u32string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    utf8proc_int32_t c = -1;
    const utf8proc_ssize_t used = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data() + i),
                                                   static_cast<utf8proc_ssize_t>(text.size() - i), &c);
    if (used > 0) {
      out += static_cast<char32_t>(c);
      i += static_cast<std::size_t>(used);
      continue;
    }
    out += U'\ufffd';
    for (++i; i < text.size() && is_continuation(text[i]);) ++i;
  }
  return out;
}

void append_utf8(std::string& out, char32_t c) {
  utf8proc_uint8_t bytes[4];
  const utf8proc_ssize_t size = utf8proc_encode_char(static_cast<utf8proc_int32_t>(c), bytes);
  out.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
}

std::string encode_utf8(std::u32string_view text) {
  std::string out;
  for (const char32_t c : text) append_utf8(out, c);
  return out;
}

std::u32string normalized(std::u32string_view text, Form form) {
  int options = UTF8PROC_STABLE;
  options |= form == Form::nfc || form == Form::nfkc ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (form == Form::nfkc || form == Form::nfkd) options |= UTF8PROC_COMPAT;
  const std::string bytes = encode_utf8(text);
  const auto flags = static_cast<utf8proc_option_t>(options);
  const auto* data = reinterpret_cast<const utf8proc_uint8_t*>(bytes.data());
  utf8proc_ssize_t size = utf8proc_decompose(data, static_cast<utf8proc_ssize_t>(bytes.size()), nullptr, 0, flags);
  if (size < 0) throw Error(ErrorCode::invalid_argument, "a text cannot be normalized");
  std::vector<utf8proc_int32_t> buffer(static_cast<std::size_t>(size) + 1);
  size = utf8proc_decompose(data, static_cast<utf8proc_ssize_t>(bytes.size()), buffer.data(), size, flags);
  if (size >= 0) size = utf8proc_normalize_utf32(buffer.data(), size, flags);
  if (size < 0) throw Error(ErrorCode::invalid_argument, "a text cannot be normalized");
  return std::u32string(buffer.begin(), buffer.begin() + size);
}

std::u32string lower_case(std::u32string_view text) {
  std::u32string out;
  for (const char32_t c : text) {
    // The one letter whose lower case is two code points.
    if (c == U'\u0130')
      out += U"i\u0307";
    else
      out += static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
  }
  return out;
}

std::size_t grapheme_end(std::u32string_view text, std::size_t begin) {
  utf8proc_int32_t state = 0;
  std::size_t end = begin + 1;
  while (end < text.size() && !utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(text[end - 1]),
                                                                static_cast<utf8proc_int32_t>(text[end]), &state))
    ++end;
  return end;
}

bool is_letter(char32_t c) { return category(c) >= UTF8PROC_CATEGORY_LU && category(c) <= UTF8PROC_CATEGORY_LO; }
bool is_number(char32_t c) { return category(c) >= UTF8PROC_CATEGORY_ND && category(c) <= UTF8PROC_CATEGORY_NO; }
bool is_mark(char32_t c) {
  const bool is_newer = category(c) >= UTF8PROC_CATEGORY_MN && category(c) <= UTF8PROC_CATEGORY_ME;
  return is_newer ? !is_in(kFewerMark, c) : is_in(kMoreMark, c);
}
bool is_nonspacing_mark(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_MN ? !is_in(kFewerNonspacing, c) : is_in(kMoreNonspacing, c);
}
bool is_punctuation(char32_t c) {
  const bool is_newer = category(c) >= UTF8PROC_CATEGORY_PC && category(c) <= UTF8PROC_CATEGORY_PO;
  return is_newer ? !is_in(kFewerPunctuation, c) : is_in(kMorePunctuation, c);
}
bool is_space(char32_t c) {
  return (c >= 0x9 && c <= 0xd) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) ||
         c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}
bool is_control(char32_t c) {
  const utf8proc_category_t k = category(c);
  return (k == UTF8PROC_CATEGORY_CC || k == UTF8PROC_CATEGORY_CF || k == UTF8PROC_CATEGORY_CO) && !is_in(kFewerControl, c);
}

}  // namespace tenon::tokenizer

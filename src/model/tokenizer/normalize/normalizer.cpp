#include "model/tokenizer/normalize/normalizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "model/tokenizer/normalize/precompiled.h"
#include "model/tokenizer/normalize/unicode.h"

namespace tenon::tokenizer {
namespace {

template <class Keep>
void keep_if(std::u32string& text, const Keep& keep) {
  text.erase(std::remove_if(text.begin(), text.end(), [&](char32_t c) { return !keep(c); }), text.end());
}

bool is_chinese(char32_t c) {
  return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) || (c >= 0x20000 && c <= 0x2a6df) ||
         (c >= 0x2a700 && c <= 0x2b73f) || (c >= 0x2b740 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) ||
         (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

void clean(std::u32string& text) {
  keep_if(text, [](char32_t c) { return c != 0 && c != 0xfffd && (c == '\t' || c == '\n' || c == '\r' || !is_control(c)); });
  for (char32_t& c : text)
    if (is_space(c)) c = U' ';
}

void space_chinese(std::u32string& text) {
  std::u32string out;
  for (const char32_t c : text) {
    if (is_chinese(c))
      out += {U' ', c, U' '};
    else
      out += c;
  }
  text = std::move(out);
}

void strip_accents(std::u32string& text) {
  text = normalized(text, Form::nfd);
  keep_if(text, [](char32_t c) { return !is_nonspacing_mark(c); });
}

Normalizer bert(const Fields& fields) {
  const bool cleans = fields.boolean("clean_text", true), spaces = fields.boolean("handle_chinese_chars", true),
             lowers = fields.boolean("lowercase", true);
  const bool strips = fields.boolean("strip_accents", lowers);
  return [=](std::u32string& text) {
    if (cleans) clean(text);
    if (spaces) space_chinese(text);
    if (strips) strip_accents(text);
    if (lowers) text = lower_case(text);
  };
}

Normalizer sequence(const Fields& fields) {
  std::vector<Normalizer> all;
  std::size_t i = 0;
  for (const boost::json::value& each : fields.array("normalizers"))
    all.push_back(make_normalizer(each, fmt::format("{}.normalizers[{}]", fields.where(), i++)));
  return [all](std::u32string& text) {
    for (const Normalizer& each : all) each(text);
  };
}

Normalizer replace(const Fields& fields) {
  const Pattern pattern = make_pattern(fields, "pattern");
  const std::u32string content = decode_utf8(fields.text("content"));
  return [=](std::u32string& text) {
    std::u32string out;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t length = pattern.match(text, at);
      if (length > 0)
        out += content;
      else
        out += text[at];
      at += std::max<std::size_t>(length, 1);
    }
    text = std::move(out);
  };
}

Normalizer strip(bool left, bool right) {
  return [=](std::u32string& text) {
    const auto keeps = [](char32_t c) { return !is_space(c); };
    if (right) text.erase(std::find_if(text.rbegin(), text.rend(), keeps).base(), text.end());
    if (left) text.erase(text.begin(), std::find_if(text.begin(), text.end(), keeps));
  };
}

}  // namespace

std::size_t Pattern::match(std::u32string_view text, std::size_t at) const {
  if (!is_spaces) return !literal.empty() && text.substr(at, literal.size()) == literal ? literal.size() : 0;
  std::size_t end = at;
  while (end < text.size() && (only_blank ? text[end] == U' ' : is_space(text[end]))) ++end;
  return end - at >= least ? end - at : 0;
}

Pattern make_pattern(const Fields& fields, std::string_view name) {
  const boost::json::value& value = fields.value(name);
  if (value.is_string()) return {.literal = decode_utf8(string_of(value, fields.where()))};
  const Fields pattern(value, fmt::format("{}.{}", fields.where(), name));
  if (pattern.has("String")) return {.literal = decode_utf8(pattern.text("String"))};
  const std::string regex = pattern.text("Regex");
  if (regex == " {2,}") return {.is_spaces = true, .least = 2, .only_blank = true};
  if (regex == "\\s+") return {.is_spaces = true};
  if (regex == " ") return {.literal = U" "};
  pattern.refuse(fmt::format("the regular expression '{}'", regex));
}

Normalizer make_normalizer(const boost::json::value& value, const std::string& where) {
  if (value.is_null()) return [](std::u32string&) {};
  const Fields fields(value, where);
  const std::string type = fields.text("type");
  if (type == "BertNormalizer") return bert(fields);
  if (type == "Sequence") return sequence(fields);
  if (type == "Lowercase") return [](std::u32string& text) { text = lower_case(text); };
  if (type == "NFC") return [](std::u32string& text) { text = normalized(text, Form::nfc); };
  if (type == "NFD") return [](std::u32string& text) { text = normalized(text, Form::nfd); };
  if (type == "NFKC") return [](std::u32string& text) { text = normalized(text, Form::nfkc); };
  if (type == "NFKD") return [](std::u32string& text) { text = normalized(text, Form::nfkd); };
  if (type == "StripAccents") return [](std::u32string& text) { keep_if(text, [](char32_t c) { return !is_mark(c); }); };
  if (type == "Strip") return strip(fields.boolean("strip_left", true), fields.boolean("strip_right", true));
  if (type == "Replace") return replace(fields);
  if (type == "Prepend") {
    const std::u32string prefix = decode_utf8(fields.text("prepend"));
    return [prefix](std::u32string& text) {
      if (!text.empty()) text.insert(0, prefix);
    };
  }
  if (type == "Precompiled") {
    const auto map = std::make_shared<CharacterMap>(fields.text("precompiled_charsmap"));
    return [map](std::u32string& text) { text = map->apply(text); };
  }
  fields.refuse(fmt::format("the normalizer '{}'", type));
}

}  // namespace tenon::tokenizer

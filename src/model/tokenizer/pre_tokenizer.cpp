#include "model/tokenizer/pre_tokenizer.h"

#include <fmt/format.h>

#include <array>
#include <unordered_map>

#include "model/tokenizer/normalize/normalizer.h"
#include "model/tokenizer/normalize/unicode.h"
#include "model/tokenizer/words.h"

namespace tenon::tokenizer {
namespace {

bool is_ascii_punctuation(char32_t c) {
  return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || (c >= 123 && c <= 126);
}
bool is_any_punctuation(char32_t c) { return is_ascii_punctuation(c) || is_punctuation(c); }

// A stretch of a text, and whether the splitter found it or it lies between two finds.
struct Stretch {
  std::size_t begin, end;
  bool is_match;
};
using Split = std::function<std::vector<Stretch>(std::u32string_view)>;

enum class Behaviour { removed, isolated, merged_with_previous, merged_with_next, contiguous };

Behaviour behaviour_of(const Fields& fields, std::string_view name, std::string_view fallback) {
  const std::string text = fields.text(name, fallback);
  if (text == "Removed") return Behaviour::removed;
  if (text == "Isolated") return Behaviour::isolated;
  if (text == "MergedWithPrevious") return Behaviour::merged_with_previous;
  if (text == "MergedWithNext") return Behaviour::merged_with_next;
  if (text == "Contiguous") return Behaviour::contiguous;
  fields.refuse(fmt::format("the behaviour '{}'", text));
}

std::vector<Stretch> arranged(const std::vector<Stretch>& all, Behaviour behaviour) {
  std::vector<Stretch> out;
  for (const Stretch& each : all) {
    if (behaviour == Behaviour::removed && each.is_match) continue;
    const bool joins_previous =
        (behaviour == Behaviour::merged_with_previous && each.is_match && !out.empty() && !out.back().is_match) ||
        (behaviour == Behaviour::contiguous && !out.empty() && out.back().is_match == each.is_match) ||
        (behaviour == Behaviour::merged_with_next && !each.is_match && !out.empty() && out.back().is_match);
    if (joins_previous)
      out.back() = {out.back().begin, each.end,
                    behaviour == Behaviour::contiguous ? each.is_match : behaviour == Behaviour::merged_with_previous};
    else
      out.push_back(each);
  }
  return out;
}

PreTokenizer splitter(Split split, Behaviour behaviour) {
  return [=](std::vector<Piece> pieces) {
    std::vector<Piece> out;
    for (const Piece& piece : pieces)
      for (const Stretch& each : arranged(split(piece.text), behaviour))
        if (each.end > each.begin)
          out.push_back({piece.text.substr(each.begin, each.end - each.begin), piece.is_first && each.begin == 0});
    return out;
  };
}

// Single characters that pass |test| are finds.
template <class Test>
Split by_character(Test test) {
  return [test](std::u32string_view text) {
    std::vector<Stretch> out;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (test(text[i]))
        out.push_back({i, i + 1, true});
      else if (!out.empty() && !out.back().is_match)
        out.back().end = i + 1;
      else
        out.push_back({i, i + 1, false});
    }
    return out;
  };
}

// Each word is a stretch of its own, and nothing lies between.
Split by_words(WordScanner scanner) {
  return [scanner](std::u32string_view text) {
    std::vector<Stretch> out;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = scanner(text, at);
      out.push_back({at, end, true});
      at = end;
    }
    return out;
  };
}

Split by_pattern(Pattern pattern) {
  return [pattern](std::u32string_view text) {
    std::vector<Stretch> out;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t length = pattern.match(text, at);
      if (length > 0)
        out.push_back({at, at + length, true});
      else if (!out.empty() && !out.back().is_match)
        out.back().end = at + 1;
      else
        out.push_back({at, at + 1, false});
      at += std::max<std::size_t>(length, 1);
    }
    return out;
  };
}

// \w+|[^\w\s]+
Split words_and_others() {
  const auto kind = [](char32_t c) { return is_space(c) ? 0 : is_letter(c) || is_number(c) || is_mark(c) || c == U'_' ? 1 : 2; };
  return [kind](std::u32string_view text) {
    std::vector<Stretch> out;
    for (std::size_t at = 0; at < text.size();) {
      std::size_t end = at;
      while (end < text.size() && kind(text[end]) == kind(text[at])) ++end;
      out.push_back({at, end, kind(text[at]) == 0});
      at = end;
    }
    return out;
  };
}

PreTokenizer byte_level(const Fields& fields) {
  const bool prefix = fields.boolean("add_prefix_space", true), by_word = fields.boolean("use_regex", true);
  const PreTokenizer words = splitter(by_words(gpt2_word), Behaviour::isolated);
  return [=](std::vector<Piece> pieces) {
    for (Piece& piece : pieces)
      if (prefix && !piece.text.empty() && piece.text[0] != U' ') piece.text.insert(piece.text.begin(), U' ');
    if (by_word) pieces = words(std::move(pieces));
    for (Piece& piece : pieces) piece.text = bytes_as_characters(encode_utf8(piece.text));
    return pieces;
  };
}

PreTokenizer metaspace(const Fields& fields) {
  const std::u32string mark = decode_utf8(fields.text("replacement", "\u2581"));
  if (mark.size() != 1) fields.fail("'replacement' must be one character");
  std::string scheme = fields.text("prepend_scheme", fields.boolean("add_prefix_space", true) ? "always" : "never");
  const bool splits = fields.boolean("split", true);
  const char32_t c = mark[0];
  return [=](std::vector<Piece> pieces) {
    std::vector<Piece> out;
    for (Piece& piece : pieces) {
      for (char32_t& each : piece.text)
        if (each == U' ') each = c;
      const bool prepends = scheme == "always" || (scheme == "first" && piece.is_first);
      if (prepends && !piece.text.empty() && piece.text[0] != c) piece.text.insert(piece.text.begin(), c);
      if (!splits) {
        out.push_back(std::move(piece));
        continue;
      }
      std::size_t begin = 0;
      for (std::size_t i = 1; i <= piece.text.size(); ++i)
        if (i == piece.text.size() || piece.text[i] == c) {
          if (i > begin) out.push_back({piece.text.substr(begin, i - begin), piece.is_first && begin == 0});
          begin = i;
        }
    }
    return out;
  };
}

PreTokenizer split(const Fields& fields) {
  if (fields.boolean("invert", false)) fields.refuse("'invert'");
  const Behaviour behaviour = behaviour_of(fields, "behavior", "Removed");
  if (const boost::json::value& pattern = fields.value("pattern");
      pattern.is_object() && pattern.get_object().contains("Regex")) {
    const std::string regex = Fields(pattern, fields.where() + ".pattern").text("Regex");
    if (const WordScanner scanner = scanner_of(regex)) return splitter(by_words(scanner), behaviour);
    if (regex == "\\p{N}{1,3}" || regex == "\\p{N}") {
      const std::size_t most = regex == "\\p{N}" ? 1 : 3;
      return splitter(
          [most](std::u32string_view text) {
            std::vector<Stretch> out;
            for (std::size_t at = 0; at < text.size();) {
              std::size_t end = at;
              while (end < text.size() && end - at < most && is_number(text[end])) ++end;
              if (end > at)
                out.push_back({at, end, true});
              else if (!out.empty() && !out.back().is_match)
                out.back().end = at + 1;
              else
                out.push_back({at, at + 1, false});
              at = std::max(end, at + 1);
            }
            return out;
          },
          behaviour);
    }
  }
  return splitter(by_pattern(make_pattern(fields, "pattern")), behaviour);
}

const std::array<char32_t, 256>& byte_characters() {
  static const std::array<char32_t, 256> table = [] {
    std::array<char32_t, 256> out{};
    char32_t next = 256;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
      out[byte] = printable ? static_cast<char32_t>(byte) : next++;
    }
    return out;
  }();
  return table;
}

}  // namespace

std::u32string bytes_as_characters(std::string_view bytes) {
  std::u32string out;
  for (const char byte : bytes) out += byte_characters()[static_cast<unsigned char>(byte)];
  return out;
}

bool characters_as_bytes(std::u32string_view text, std::string& out) {
  static const std::unordered_map<char32_t, char> bytes = [] {
    std::unordered_map<char32_t, char> map;
    for (unsigned byte = 0; byte < 256; ++byte) map.emplace(byte_characters()[byte], static_cast<char>(byte));
    return map;
  }();
  for (const char32_t c : text) {
    const auto found = bytes.find(c);
    if (found == bytes.end()) return false;
    out += found->second;
  }
  return true;
}

PreTokenizer make_pre_tokenizer(const boost::json::value& value, const std::string& where) {
  if (value.is_null()) return [](std::vector<Piece> pieces) { return pieces; };
  const Fields fields(value, where);
  const std::string type = fields.text("type");
  if (type == "Sequence") {
    std::vector<PreTokenizer> all;
    std::size_t i = 0;
    for (const boost::json::value& each : fields.array("pretokenizers"))
      all.push_back(make_pre_tokenizer(each, fmt::format("{}.pretokenizers[{}]", where, i++)));
    return [all](std::vector<Piece> pieces) {
      for (const PreTokenizer& each : all) pieces = each(std::move(pieces));
      return pieces;
    };
  }
  if (type == "BertPreTokenizer") {
    const PreTokenizer spaces = splitter(by_character(is_space), Behaviour::removed),
                       marks = splitter(by_character(is_any_punctuation), Behaviour::isolated);
    return [=](std::vector<Piece> pieces) { return marks(spaces(std::move(pieces))); };
  }
  if (type == "WhitespaceSplit") return splitter(by_character(is_space), Behaviour::removed);
  if (type == "Whitespace") return splitter(words_and_others(), Behaviour::removed);
  if (type == "Punctuation") return splitter(by_character(is_any_punctuation), behaviour_of(fields, "behavior", "Isolated"));
  if (type == "Digits")
    return splitter(by_character(is_number),
                    fields.boolean("individual_digits", false) ? Behaviour::isolated : Behaviour::contiguous);
  if (type == "ByteLevel") return byte_level(fields);
  if (type == "Metaspace") return metaspace(fields);
  if (type == "Split") return split(fields);
  fields.refuse(fmt::format("the pre-tokenizer '{}'", type));
}

}  // namespace tenon::tokenizer

// Normalizers: what a tokenizer does to a text before it looks for words.
#pragma once

#include <functional>
#include <string>

#include "model/tokenizer/fields.h"

namespace tenon::tokenizer {

using Normalizer = std::function<void(std::u32string& text)>;

// |value| may be null: no change. Throws unimplemented naming what is not supported.
Normalizer make_normalizer(const boost::json::value& value, const std::string& where);

// A string or simple pattern in a text, as Replace and Split take it. Only literal strings, and the regular expressions that
// published tokenizers use, are supported; any other is refused by its text.
struct Pattern {
  std::u32string literal;
  bool is_spaces = false;   // " {2,}", "\\s+"
  std::size_t least = 1;    // how many characters in a row
  bool only_blank = false;  // ' ' alone counts as space
  // The length of a match at |at|; 0 if there is none.
  std::size_t match(std::u32string_view text, std::size_t at) const;
};
Pattern make_pattern(const Fields& fields, std::string_view name);

}  // namespace tenon::tokenizer

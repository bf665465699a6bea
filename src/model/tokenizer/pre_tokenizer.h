// Pre-tokenizers: split a normalized text into the pieces in which a model looks for tokens.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "model/tokenizer/fields.h"

namespace tenon::tokenizer {

struct Piece {
  std::u32string text;
  bool is_first = false;  // it begins the text, not a part after an added token
};
using PreTokenizer = std::function<std::vector<Piece>(std::vector<Piece> pieces)>;

// |value| may be null: the whole text is one piece.
PreTokenizer make_pre_tokenizer(const boost::json::value& value, const std::string& where);

// Bytes as the printable characters that byte-level tokenizers store them as, and back.
std::u32string bytes_as_characters(std::string_view bytes);
// False if a character stands for no byte.
bool characters_as_bytes(std::u32string_view text, std::string& out);

}  // namespace tenon::tokenizer

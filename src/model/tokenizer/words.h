// The word patterns of byte-level tokenizers, written as scanners: regular expressions with Unicode classes and lookahead that
// the standard library cannot match.
#pragma once

#include <optional>
#include <string_view>

namespace tenon::tokenizer {

// The end of the word that begins at |begin|.
using WordScanner = std::size_t (*)(std::u32string_view text, std::size_t begin);

std::size_t gpt2_word(std::u32string_view text, std::size_t begin);
// The scanner of a published regular expression; nullptr for one that is not known.
WordScanner scanner_of(std::string_view regex);

}  // namespace tenon::tokenizer

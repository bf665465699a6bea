// The character map of SentencePiece models: replacements of characters and sequences, as a double-array trie.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::tokenizer {

class CharacterMap {
 public:
  // |data|: base64 of the size of the trie, the trie, and the replacements, each ending with a zero. Throws invalid_argument.
  explicit CharacterMap(std::string_view data);

  std::u32string apply(std::u32string_view text) const;

 private:
  // The replacement of the shortest prefix of |text| in the map; false if there is none.
  bool find(std::string_view text, std::string& out) const;
  std::vector<std::uint32_t> units_;
  std::string replacements_;
};

}  // namespace tenon::tokenizer

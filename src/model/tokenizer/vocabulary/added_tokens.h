// AddedTokens: texts that are one token wherever they stand, like [MASK], found before anything else is done to a text.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "model/tokenizer/fields.h"
#include "model/tokenizer/normalize/normalizer.h"
#include "model/tokenizer/vocabulary/vocabulary.h"

namespace tenon::tokenizer {

struct AddedToken {
  Id id = 0;
  std::u32string text;
  std::string content;
  bool is_special = false, is_normalized = false, strips_left = false, strips_right = false, is_word = false;
};

// A part of a text: a token, or text between tokens.
struct Part {
  Id id = -1;
  std::u32string text;
  bool is_first = false;
};

class AddedTokens {
 public:
  AddedTokens() = default;
  AddedTokens(const boost::json::array& list, const Normalizer& normalizer);

  // |normalized|: look for the tokens that are sought in normalized text, else for the others.
  std::vector<Part> split(std::u32string_view text, bool is_first, bool normalized) const;
  const std::vector<AddedToken>& all() const noexcept { return all_; }

 private:
  const AddedToken* longest_at(std::u32string_view text, std::size_t at, bool normalized) const;
  std::vector<AddedToken> all_;
  std::unordered_set<char32_t> first_[2];  // letters with which a token begins; few, so most places are passed by at once
};

}  // namespace tenon::tokenizer

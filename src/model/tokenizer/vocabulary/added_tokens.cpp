#include "model/tokenizer/vocabulary/added_tokens.h"

#include <fmt/format.h>

#include "model/tokenizer/normalize/unicode.h"

namespace tenon::tokenizer {
namespace {

bool is_word_letter(char32_t c) { return is_letter(c) || is_number(c) || is_mark(c) || c == U'_'; }

}  // namespace

AddedTokens::AddedTokens(const boost::json::array& list, const Normalizer& normalizer) {
  std::size_t i = 0;
  for (const boost::json::value& value : list) {
    const Fields fields(value, fmt::format("added_tokens[{}]", i++));
    AddedToken token{.id = static_cast<Id>(fields.integer("id", -1)),
                     .content = fields.text("content"),
                     .is_special = fields.boolean("special", false)};
    token.is_normalized = fields.boolean("normalized", !token.is_special);
    token.strips_left = fields.boolean("lstrip", false);
    token.strips_right = fields.boolean("rstrip", false);
    token.is_word = fields.boolean("single_word", false);
    if (token.id < 0) fields.fail("'id' is missing");
    token.text = decode_utf8(token.content);
    if (token.is_normalized) normalizer(token.text);
    if (token.text.empty()) continue;
    first_[token.is_normalized].insert(token.text[0]);
    all_.push_back(std::move(token));
  }
}

const AddedToken* AddedTokens::longest_at(std::u32string_view text, std::size_t at, bool normalized) const {
  const AddedToken* best = nullptr;
  for (const AddedToken& token : all_) {
    if (token.is_normalized != normalized || text.substr(at, token.text.size()) != token.text) continue;
    const std::size_t end = at + token.text.size();
    if (token.is_word && ((at > 0 && is_word_letter(text[at - 1])) || (end < text.size() && is_word_letter(text[end])))) continue;
    if (!best || token.text.size() > best->text.size()) best = &token;
  }
  return best;
}

std::vector<Part> AddedTokens::split(std::u32string_view text, bool is_first, bool normalized) const {
  std::vector<Part> out;
  std::size_t begin = 0;
  const auto put_text = [&](std::size_t end) {
    if (end > begin) out.push_back({.text = std::u32string(text.substr(begin, end - begin)), .is_first = is_first && begin == 0});
  };
  for (std::size_t at = 0; at < text.size();) {
    const AddedToken* token = first_[normalized].contains(text[at]) ? longest_at(text, at, normalized) : nullptr;
    if (!token) {
      ++at;
      continue;
    }
    std::size_t left = at, right = at + token->text.size();
    if (token->strips_left)
      while (left > begin && is_space(text[left - 1])) --left;
    if (token->strips_right)
      while (right < text.size() && is_space(text[right])) ++right;
    put_text(left);
    out.push_back({.id = token->id});
    begin = at = right;
  }
  put_text(text.size());
  return out;
}

}  // namespace tenon::tokenizer

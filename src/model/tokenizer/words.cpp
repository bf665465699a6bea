#include "model/tokenizer/words.h"

#include "model/tokenizer/normalize/unicode.h"

namespace tenon::tokenizer {
namespace {

char32_t lower(char32_t c) { return c >= U'A' && c <= U'Z' ? c + 32 : c == U'\u017f' ? U's' : c; }

// 's 't 're 've 'm 'll 'd: how many characters, 0 for none of them.
std::size_t contraction(std::u32string_view text, std::size_t at, bool any_case) {
  if (at + 1 >= text.size() || text[at] != U'\'') return 0;
  const char32_t a = any_case ? lower(text[at + 1]) : text[at + 1];
  if (a == U's' || a == U't' || a == U'm' || a == U'd') return 2;
  if (at + 2 >= text.size()) return 0;
  const char32_t b = any_case ? lower(text[at + 2]) : text[at + 2];
  return (a == U'r' && b == U'e') || (a == U'v' && b == U'e') || (a == U'l' && b == U'l') ? 3 : 0;
}

template <class Test>
std::size_t run(std::u32string_view text, std::size_t at, const Test& test) {
  while (at < text.size() && test(text[at])) ++at;
  return at;
}

bool is_other(char32_t c) { return !is_space(c) && !is_letter(c) && !is_number(c); }
bool is_line_end(char32_t c) { return c == U'\r' || c == U'\n'; }

// \s+(?!\S)|\s+: all spaces but the last, which belongs to the word after them.
std::size_t spaces(std::u32string_view text, std::size_t begin) {
  const std::size_t end = run(text, begin, is_space);
  return end < text.size() && end - begin > 1 ? end - 1 : end;
}

// (?i:contractions)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,digits}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
std::size_t modern_word(std::u32string_view text, std::size_t begin, std::size_t digits) {
  const char32_t c = text[begin];
  if (const std::size_t size = contraction(text, begin, true)) return begin + size;
  if (is_letter(c)) return run(text, begin, is_letter);
  if (!is_line_end(c) && !is_number(c) && begin + 1 < text.size() && is_letter(text[begin + 1]))
    return run(text, begin + 1, is_letter);
  if (is_number(c)) {
    std::size_t end = begin;
    while (end < text.size() && end - begin < digits && is_number(text[end])) ++end;
    return end;
  }
  const std::size_t other = c == U' ' ? begin + 1 : begin;
  if (const std::size_t end = run(text, other, is_other); end > other) return run(text, end, is_line_end);
  const std::size_t blank = run(text, begin, is_space);
  std::size_t last = blank;
  while (last > begin && !is_line_end(text[last - 1])) --last;
  if (last > begin) return last;
  return spaces(text, begin);
}

std::size_t cl100k_word(std::u32string_view text, std::size_t begin) { return modern_word(text, begin, 3); }
std::size_t qwen_word(std::u32string_view text, std::size_t begin) { return modern_word(text, begin, 1); }

}  // namespace

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
std::size_t gpt2_word(std::u32string_view text, std::size_t begin) {
  if (const std::size_t size = contraction(text, begin, false)) return begin + size;
  const std::size_t word = text[begin] == U' ' ? begin + 1 : begin;
  if (word < text.size()) {
    if (is_letter(text[word])) return run(text, word, is_letter);
    if (is_number(text[word])) return run(text, word, is_number);
    if (is_other(text[word])) return run(text, word, is_other);
  }
  return spaces(text, begin);
}

WordScanner scanner_of(std::string_view regex) {
  if (regex == R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)") return gpt2_word;
  if (regex ==
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)")
    return cl100k_word;
  if (regex ==
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)")
    return qwen_word;
  return nullptr;
}

}  // namespace tenon::tokenizer

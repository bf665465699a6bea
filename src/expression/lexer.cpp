#include "expression/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace tenon::expression {
namespace {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
constexpr bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
constexpr bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

int characters(std::string_view bytes) {
  return static_cast<int>(std::count_if(bytes.begin(), bytes.end(), [](char c) { return !is_continuation(c); }));
}

// Longest first, so that the first match is the right one.
constexpr std::array<std::string_view, 31> kSymbols{"...", "**", "//", "==", "!=", "<=", ">=", "<<", ">>", "+", "-",
                                                    "*",   "/",  "%",  "@",  "<",  ">",  "=",  "&",  "|",  "^", "~",
                                                    "(",   ")",  "[",  "]",  ",",  ":",  ".",  "{",  "}"};

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) next();
    push(TokenKind::end, source_.size());
    return std::move(tokens_);
  }

 private:
  char peek(std::size_t ahead = 0) const { return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0'; }

  Token& push(TokenKind kind, std::size_t begin) {
    const Extent extent{static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(at_)};
    if (tokens_.size() >= static_cast<std::size_t>(ExpressionOptions::kMaxTokens))
      fail(source_, extent, fmt::format("the expression has more than {} parts", ExpressionOptions::kMaxTokens),
           "pass large data as an input instead", ErrorCode::resource_exhausted);
    tokens_.push_back({kind, extent, source_.substr(begin, at_ - begin)});
    return tokens_.back();
  }

  void next() {
    const char c = peek();
    const std::size_t begin = at_;
    if (c == ' ' || c == '\t' || c == '\r') {
      ++at_;
    } else if (c == '#') {
      while (at_ < source_.size() && peek() != '\n') ++at_;
    } else if (c == '\n' || c == ';') {
      ++at_;
      if (c == ';' || open_ == 0) push(TokenKind::separator, begin);
    } else if (is_digit(c) || (c == '.' && is_digit(peek(1)))) {
      number();
    } else if (is_letter(c)) {
      while (is_letter(peek()) || is_digit(peek())) ++at_;
      push(TokenKind::name, begin);
    } else if (c == '"' || c == '\'') {
      text(c);
    } else {
      symbol();
    }
  }

  void number() {
    const std::size_t begin = at_;
    const char* const first = source_.data() + begin;
    if (peek() == '0' && (peek(1) == 'x' || peek(1) == 'X') && is_hex(peek(2))) {
      at_ += 2;
      while (is_hex(peek())) ++at_;
      std::int64_t value = 0;
      if (std::from_chars(first + 2, source_.data() + at_, value, 16).ec != std::errc{})
        fail(source_, extent_from(begin), "the number does not fit in 64 bits");
      push(TokenKind::integer, begin).integer = value;
      return;
    }
    while (is_digit(peek())) ++at_;
    bool whole = true;
    if (peek() == '.' && !is_letter(peek(1)) && peek(1) != '.') {
      whole = false;
      ++at_;
      while (is_digit(peek())) ++at_;
    }
    const std::size_t sign = peek(1) == '+' || peek(1) == '-' ? 1 : 0;
    if ((peek() == 'e' || peek() == 'E') && is_digit(peek(1 + sign))) {
      whole = false;
      at_ += 1 + sign;
      while (is_digit(peek())) ++at_;
    }
    if (is_letter(peek())) {
      std::size_t end = at_;
      while (end < source_.size() && (is_letter(source_[end]) || is_digit(source_[end]))) ++end;
      const std::string_view digits = source_.substr(begin, at_ - begin), letters = source_.substr(at_, end - at_);
      fail(source_, {static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)},
           fmt::format("expected an operator between {} and {}", digits, letters), fmt::format("write {} * {}", digits, letters));
    }

    const char* const last = source_.data() + at_;
    std::int64_t integer = 0;
    if (whole && std::from_chars(first, last, integer).ec == std::errc{}) {
      push(TokenKind::integer, begin).integer = integer;
      return;
    }
    double value = 0;
    const std::string_view digits(first, static_cast<std::size_t>(last - first));
    if (std::from_chars(first, last, value).ec == std::errc::result_out_of_range) {
      const std::size_t exponent = digits.find_first_of("eE");
      if (exponent == std::string_view::npos || digits[exponent + 1] != '-')
        fail(source_, extent_from(begin), "the number is too large for float64", "write inf for infinity");
      value = 0;
    }
    push(TokenKind::number, begin).number = value;
  }

  void text(char quote) {
    const std::size_t begin = at_++;
    while (at_ < source_.size() && peek() != quote && peek() != '\n') ++at_;
    if (peek() != quote) fail(source_, extent_from(begin), fmt::format("the string has no closing {}", quote));
    ++at_;
    Token& token = push(TokenKind::text, begin);
    token.text = token.text.substr(1, token.text.size() - 2);
  }

  void symbol() {
    const std::size_t begin = at_;
    for (const std::string_view symbol : kSymbols) {
      if (source_.substr(at_, symbol.size()) != symbol) continue;
      at_ += symbol.size();
      if (symbol == "(" || symbol == "[") ++open_;
      if ((symbol == ")" || symbol == "]") && open_ > 0) --open_;
      push(TokenKind::symbol, begin);
      return;
    }
    ++at_;
    while (at_ < source_.size() && is_continuation(peek())) ++at_;
    const unsigned char byte = static_cast<unsigned char>(source_[begin]);
    if (byte < 0x20 || byte == 0x7F || is_continuation(source_[begin]))
      fail(source_, extent_from(begin), fmt::format("unexpected byte 0x{:02x}", byte));
    const std::string_view character = source_.substr(begin, at_ - begin);
    const std::string hint = character == "!" ? "write 'not x'" : "";
    fail(source_, extent_from(begin), fmt::format("unexpected character '{}'", character), hint);
  }

  Extent extent_from(std::size_t begin) const { return {static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(at_)}; }

  std::string_view source_;
  std::size_t at_ = 0;
  int open_ = 0;
  std::vector<Token> tokens_;
};

}  // namespace

ExpressionError::Place locate(std::string_view source, Extent extent) {
  const std::size_t begin = std::min<std::size_t>(extent.begin, source.size());
  const std::string_view before = source.substr(0, begin);
  const std::size_t line_begin = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  const std::size_t line_end = std::min(source.find('\n', begin), source.size());
  const std::size_t end = std::clamp<std::size_t>(extent.end, begin, line_end);

  ExpressionError::Place place;
  place.line = 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n'));
  place.column = 1 + characters(source.substr(line_begin, begin - line_begin));
  place.length = std::max(1, characters(source.substr(begin, end - begin)));
  place.one_line = source.find('\n') == std::string_view::npos;
  place.source_line = std::string(source.substr(line_begin, line_end - line_begin));
  return place;
}

void fail(std::string_view source, Extent extent, const std::string& message, const std::string& hint, ErrorCode code) {
  throw ExpressionError(code, message, hint, locate(source, extent));
}

std::vector<Token> tokenize(std::string_view source) {
  if (source.size() > ExpressionOptions::kMaxSourceBytes)
    fail(source.substr(0, 80), {},
         fmt::format("the expression is {} bytes long, more than {}", source.size(), ExpressionOptions::kMaxSourceBytes),
         "pass large data as an input instead", ErrorCode::resource_exhausted);
  return Lexer(source).run();
}

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::integer:
    case TokenKind::number: return fmt::format("the number {}", token.text);
    case TokenKind::text: return fmt::format("the string \"{}\"", token.text);
    case TokenKind::separator: return token.text == ";" ? "';'" : "the end of the line";
    case TokenKind::end: return "the end of the expression";
    default: return fmt::format("'{}'", token.text);
  }
}

}  // namespace tenon::expression

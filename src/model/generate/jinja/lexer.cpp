#include <fmt/format.h>

#include <algorithm>

#include "base/text/printable.h"
#include "model/generate/jinja/syntax.h"
#include "tenon/error.h"

namespace tenon::jinja {
namespace {

using Kind = Token::Kind;

constexpr std::size_t kLongestName = 200;

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f' || c == '\v'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (static_cast<unsigned char>(c) & 0x80) != 0;
}

void append_utf8(std::string& out, std::uint32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xc0 | c >> 6);
    out += static_cast<char>(0x80 | (c & 63));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xe0 | c >> 12);
    out += static_cast<char>(0x80 | (c >> 6 & 63));
    out += static_cast<char>(0x80 | (c & 63));
  } else {
    out += static_cast<char>(0xf0 | c >> 18);
    out += static_cast<char>(0x80 | (c >> 12 & 63));
    out += static_cast<char>(0x80 | (c >> 6 & 63));
    out += static_cast<char>(0x80 | (c & 63));
  }
}

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) {
      const std::size_t tag = next_tag();
      add_text(tag);
      if (tag == std::string::npos) break;
      const char kind = source_[tag + 1];
      at_ = tag + 2;
      if (at_ < source_.size() && (source_[at_] == '-' || source_[at_] == '+')) ++at_;
      if (kind == '#') {
        const std::size_t end = source_.find("#}", at_);
        if (end == std::string::npos) fail_at(line(), "a comment does not end");
        const char sign = end > at_ ? source_[end - 1] : ' ';
        at_ = end + 2;
        after_tag(sign, true);
      } else if (kind == '%' && is_raw()) {
        raw();
      } else {
        inside(kind == '%');
      }
    }
    push(Kind::end, {});
    return std::move(out_);
  }

 private:
  std::uint32_t line() {
    while (counted_ < std::min(at_, source_.size())) line_ += source_[counted_++] == '\n';
    return line_;
  }
  void push(Kind kind, std::string text) { out_.push_back({kind, line(), std::move(text)}); }

  std::size_t next_tag() const {
    for (std::size_t i = source_.find('{', at_); i != std::string::npos && i + 1 < source_.size(); i = source_.find('{', i + 1))
      if (source_[i + 1] == '{' || source_[i + 1] == '%' || source_[i + 1] == '#') return i;
    return std::string::npos;
  }

  // The text up to a tag, less what the tag takes from it.
  void add_text(std::size_t tag) {
    std::string text = source_.substr(at_, tag == std::string::npos ? tag : tag - at_);
    if (tag != std::string::npos) {
      const char sign = tag + 2 < source_.size() ? source_[tag + 2] : ' ';
      if (sign == '-') {
        while (!text.empty() && is_space(text.back())) text.pop_back();
      } else if (sign != '+' && source_[tag + 1] != '{') {
        const std::size_t begin = text.rfind('\n') + 1;  // 0 if there is none
        if ((begin > 0 || is_line_start_) && std::all_of(text.begin() + static_cast<std::ptrdiff_t>(begin), text.end(), is_space))
          text.resize(begin);
      }
    }
    if (!text.empty()) push(Kind::text, std::move(text));
  }

  // What follows a tag: all spaces after a minus, a line end after a statement or a comment.
  void after_tag(char sign, bool drops_line_end) {
    const std::size_t begin = at_;
    if (sign == '-')
      while (at_ < source_.size() && is_space(source_[at_])) ++at_;
    else if (sign != '+' && drops_line_end && at_ < source_.size() && source_[at_] == '\n')
      ++at_;
    is_line_start_ = at_ > begin && source_[at_ - 1] == '\n';
  }

  bool is_raw() const {
    std::size_t i = at_;
    while (i < source_.size() && is_space(source_[i])) ++i;
    return source_.compare(i, 3, "raw") == 0 && i + 3 < source_.size() && !is_letter(source_[i + 3]) && !is_digit(source_[i + 3]);
  }
  void raw() {
    std::size_t end = source_.find("%}", at_);
    if (end == std::string::npos) fail_at(line(), "a statement does not end");
    const char sign = source_[end - 1];
    at_ = end + 2;
    after_tag(sign, true);
    for (std::size_t tag = source_.find("{%", at_); tag != std::string::npos; tag = source_.find("{%", tag + 1)) {
      std::size_t i = tag + 2;
      if (i < source_.size() && (source_[i] == '-' || source_[i] == '+')) ++i;
      while (i < source_.size() && is_space(source_[i])) ++i;
      if (source_.compare(i, 6, "endraw") != 0) continue;
      add_text(tag);
      end = source_.find("%}", i);
      if (end == std::string::npos) break;
      at_ = end + 2;
      return after_tag(source_[end - 1], true);
    }
    fail_at(line(), "'raw' without 'endraw'");
  }

  void inside(bool is_statement) {
    push(is_statement ? Kind::statement_begin : Kind::output_begin, {});
    const char closing = is_statement ? '%' : '}';
    int depth = 0;  // of brackets: }} may end a map
    for (;;) {
      while (at_ < source_.size() && is_space(source_[at_])) ++at_;
      if (at_ >= source_.size()) fail_at(line(), is_statement ? "a statement does not end" : "an output does not end");
      const char c = source_[at_];
      const std::size_t after_sign = at_ + ((c == '-' || c == '+') ? 1 : 0);
      if (depth == 0 && source_.compare(after_sign, 2, std::string{closing, '}'}) == 0) {
        push(is_statement ? Kind::statement_end : Kind::output_end, {});
        at_ = after_sign + 2;
        return after_tag(c, is_statement);
      }
      if (c == '(' || c == '[' || c == '{') ++depth;
      if (c == ')' || c == ']' || c == '}') --depth;
      one();
    }
  }

  void one() {
    const char c = source_[at_];
    if (c == '\'' || c == '"') return string(c);
    const std::size_t begin = at_;
    if (is_letter(c)) {
      while (at_ < source_.size() && (is_letter(source_[at_]) || is_digit(source_[at_]))) ++at_;
      // Names are copied and compared at every step.
      if (at_ - begin > kLongestName) fail_at(line(), "a name is too long");
      return push(Kind::name, source_.substr(begin, at_ - begin));
    }
    if (is_digit(c)) return number();
    for (const std::string_view sign : {"==", "!=", "<=", ">=", "//", "**"})
      if (source_.compare(at_, 2, sign) == 0) {
        at_ += 2;
        return push(Kind::sign, std::string(sign));
      }
    if (std::string_view("()[]{},.:|~+-*/%<>=").find(c) == std::string_view::npos)
      fail_at(line(), fmt::format("unexpected '{}'", printable(std::string_view(&c, 1))));
    ++at_;
    push(Kind::sign, std::string(1, c));
  }

  void number() {
    std::string digits;
    bool is_real = false;
    for (; at_ < source_.size(); ++at_) {
      const char c = source_[at_];
      const bool is_exponent = (c == 'e' || c == 'E') && at_ + 1 < source_.size() &&
                               (is_digit(source_[at_ + 1]) || source_[at_ + 1] == '-' || source_[at_ + 1] == '+');
      if (c == '.' && !is_real && at_ + 1 < source_.size() && is_digit(source_[at_ + 1])) {
        is_real = true;
      } else if (is_exponent && digits.find('e') == std::string::npos) {
        is_real = true;
        digits += 'e';
        if (!is_digit(source_[at_ + 1])) digits += source_[++at_];
        continue;
      } else if (c == '_') {
        continue;
      } else if (!is_digit(c)) {
        break;
      }
      digits += c;
    }
    push(is_real ? Kind::real : Kind::integer, std::move(digits));
  }

  void string(char quote) {
    std::string text;
    for (++at_; at_ < source_.size() && source_[at_] != quote; ++at_) {
      if (source_[at_] != '\\' || at_ + 1 >= source_.size()) {
        text += source_[at_];
        continue;
      }
      escape(source_[++at_], text);
    }
    if (at_ >= source_.size()) fail_at(line(), "a text in quotes does not end");
    ++at_;
    push(Kind::string, std::move(text));
  }
  void escape(char c, std::string& text) {
    constexpr std::string_view from = "ntrbfva\\'\"", to = "\n\t\r\b\f\v\a\\'\"";
    if (const std::size_t known = from.find(c); known != std::string_view::npos) {
      text += to[known];
    } else if (c == '\n') {
      return;  // continues on the next line
    } else if (c == 'x' || c == 'u' || c == 'U') {
      const std::size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : 8;
      std::uint32_t value = 0;
      for (std::size_t i = 0; i < digits; ++i) {
        const char digit = at_ + 1 < source_.size() ? source_[++at_] : ' ';
        const std::size_t place = std::string_view("0123456789abcdef").find(static_cast<char>(digit | 0x20));
        if (place == std::string_view::npos) fail_at(line(), "an escape in a text is not complete");
        value = value * 16 + static_cast<std::uint32_t>(place);
      }
      if (value > 0x10ffff) fail_at(line(), "an escape in a text is no character");
      append_utf8(text, value);
    } else if (c >= '0' && c <= '7') {
      std::uint32_t value = static_cast<std::uint32_t>(c - '0');
      for (int i = 0; i < 2 && at_ + 1 < source_.size() && source_[at_ + 1] >= '0' && source_[at_ + 1] <= '7'; ++i)
        value = value * 8 + static_cast<std::uint32_t>(source_[++at_] - '0');
      append_utf8(text, value);
    } else {
      text += '\\';
      text += c;
    }
  }

  const std::string source_;
  std::size_t at_ = 0, counted_ = 0;
  std::uint32_t line_ = 1;
  bool is_line_start_ = true;
  std::vector<Token> out_;
};

}  // namespace

void fail_at(std::uint32_t line, const std::string& what) {
  throw Error(ErrorCode::invalid_argument, fmt::format("the chat template, line {}: {}", line, what));
}

std::vector<Token> tokens_of(std::string_view source) {
  std::string text;
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r' && i + 1 < source.size() && source[i + 1] == '\n') continue;
    text += source[i] == '\r' ? '\n' : source[i];
  }
  if (text.ends_with('\n')) text.pop_back();
  return Lexer(std::move(text)).run();
}

}  // namespace tenon::jinja

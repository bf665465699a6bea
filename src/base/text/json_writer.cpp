#include "base/text/json_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <iterator>

namespace tenon {
namespace {

// The length of the well-formed UTF-8 sequence at the start of |text|; 0 for none.
std::size_t sequence_length(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto continues = [&](std::size_t i) { return (byte(i) & 0xC0u) == 0x80u; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return continues(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    if (!continues(1) || !continues(2)) return 0;
    if (first == 0xE0 && byte(1) < 0xA0) return 0;
    if (first == 0xED && byte(1) > 0x9F) return 0;
    return 3;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    if (!continues(1) || !continues(2) || !continues(3)) return 0;
    if (first == 0xF0 && byte(1) < 0x90) return 0;
    if (first == 0xF4 && byte(1) > 0x8F) return 0;
    return 4;
  }
  return 0;
}

// Whether each byte stands for itself within quotes.
constexpr std::array<bool, 256> kPlain = [] {
  std::array<bool, 256> plain{};
  for (int c = 0x20; c < 0x7F; ++c) plain[static_cast<std::size_t>(c)] = c != '"' && c != '\\';
  return plain;
}();

// Eight bytes at a time: most texts are plain, and looking at them cost more than copying them.
bool is_plain(std::string_view text) noexcept {
  constexpr std::uint64_t kOnes = 0x0101010101010101u, kHighs = 0x8080808080808080u;
  // Not 0 if a byte is zero. Which one is certain only for the first: a borrow may mark those behind it.
  const auto zeros = [](std::uint64_t bytes) { return (bytes - kOnes) & ~bytes & kHighs; };
  std::size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) {
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, text.data() + at, 8);
    const std::uint64_t below_space = (bytes - kOnes * 0x20) & ~bytes & kHighs;
    if ((bytes & kHighs) | below_space | zeros(bytes ^ kOnes * '"') | zeros(bytes ^ kOnes * '\\') | zeros(bytes ^ kOnes * 0x7F))
      return false;
  }
  for (; at < text.size(); ++at)
    if (!kPlain[static_cast<unsigned char>(text[at])]) return false;
  return true;
}

void escape(std::string& out, std::string_view text) {
  while (!text.empty()) {
    const char c = text.front();
    const std::size_t length = sequence_length(text);
    if (length == 0) {
      out += "\xEF\xBF\xBD";
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
}

template <class Float>
void write_float(std::string& out, Float number) {
  if (!std::isfinite(number)) {
    out += std::isnan(number) ? "\"NaN\"" : number > 0 ? "\"Infinity\"" : "\"-Infinity\"";
    return;
  }
  // Most numbers people look at are small and whole, and as integers they are written ten times faster. From 100,000 on an
  // exponent may be shorter; minus zero is not an integer.
  if (number > -100'000 && number < 100'000) {
    const int whole = static_cast<int>(number);
    if (static_cast<Float>(whole) == number && (whole != 0 || !std::signbit(number))) {
      const fmt::format_int text(whole);
      out.append(text.data(), text.size());
      out += ".0";
      return;
    }
  }
  char digits[32];
  const char* const end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  const std::string_view text(digits, static_cast<std::size_t>(end - digits));
  out += text;
  if (text.find_first_of(".e") == std::string_view::npos) out += ".0";
}

// Copies JSON text from the front of |rest_| to |out_|, value by value.
class Indenter {
 public:
  explicit Indenter(std::string_view json) : rest_(json) {}

  std::string run() {
    value(0);
    return std::move(out_);
  }

 private:
  void value(std::size_t indent) {
    const char first = rest_.front();
    if (first == '{' || (first == '[' && holds_object())) return lines(indent, first == '{');
    if (first == '[') return line();
    take(first == '"' ? text_length() : std::min(rest_.find_first_of(",]}"), rest_.size()));
  }

  void lines(std::size_t indent, bool is_object) {
    take(1);
    const char closing = is_object ? '}' : ']';
    if (rest_.front() == closing) return take(1);
    for (;;) {
      out_ += '\n';
      out_.append(indent + 2, ' ');
      if (is_object) {
        take(text_length() + 1);
        out_ += ' ';
      }
      value(indent + 2);
      if (rest_.front() == closing) break;
      take(1);
    }
    out_ += '\n';
    out_.append(indent, ' ');
    take(1);
  }

  // A list without objects.
  void line() {
    int depth = 0;
    do {
      const char c = rest_.front();
      depth += c == '[' ? 1 : c == ']' ? -1 : 0;
      take(c == '"' ? text_length() : 1);
      if (c == ',') out_ += ' ';
    } while (depth > 0);
  }

  // Whether the list at the front has an object inside.
  bool holds_object() const {
    int depth = 0;
    for (std::size_t at = 0; at < rest_.size();) {
      const char c = rest_[at];
      if (c == '{') return true;
      depth += c == '[' ? 1 : c == ']' ? -1 : 0;
      if (depth == 0) return false;
      at += c == '"' ? text_length(at) : 1;
    }
    return false;
  }

  std::size_t text_length(std::size_t from = 0) const {
    std::size_t at = from + 1;
    while (rest_[at] != '"') at += rest_[at] == '\\' ? 2 : 1;
    return at + 1 - from;
  }

  void take(std::size_t count) {
    out_ += rest_.substr(0, count);
    rest_.remove_prefix(count);
  }

  std::string_view rest_;
  std::string out_;
};

}  // namespace

void JsonWriter::value(std::string_view text) {
  comma();
  out_ += '"';
  if (is_plain(text))
    out_ += text;
  else
    escape(out_, text);
  out_ += '"';
}

void JsonWriter::value(double number) {
  comma();
  write_float(out_, number);
}

void JsonWriter::value(float number) {
  comma();
  write_float(out_, number);
}

void JsonWriter::text_or_null(const JsonKey& name, std::string_view text) {
  key(name);
  if (text.empty())
    null();
  else
    value(text);
}

void JsonWriter::seconds(const JsonKey& name, double duration) {
  if (!(duration >= 0 && duration < 1e9)) return member(name, duration);
  constexpr std::uint64_t kSecond = 1'000'000'000;
  const auto nanoseconds = static_cast<std::uint64_t>(duration * 1e9 + 0.5);
  key(name);
  if (nanoseconds == 0) {
    out_ += "0.0";
    return;
  }
  // A one in front keeps the zeros after the point; then it becomes the point.
  const fmt::format_int fraction(kSecond + nanoseconds % kSecond);
  char text[32];
  std::size_t size = 0;
  if (nanoseconds < kSecond) {
    text[size++] = '0';
  } else {
    const fmt::format_int whole(nanoseconds / kSecond);
    std::memcpy(text, whole.data(), whole.size());
    size = whole.size();
  }
  std::memcpy(text + size, fraction.data(), fraction.size());
  text[size] = '.';
  const std::size_t first = size + 2;
  size += fraction.size();
  while (size > first && text[size - 1] == '0') --size;
  out_.append(text, size);
}

void JsonWriter::integer(std::int64_t number) {
  comma();
  const fmt::format_int text(number);
  out_.append(text.data(), text.size());
}

void JsonWriter::natural(std::uint64_t number) {
  comma();
  const fmt::format_int text(number);
  out_.append(text.data(), text.size());
}

std::string indented(std::string_view json) { return Indenter(json).run(); }

}  // namespace tenon

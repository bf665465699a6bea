// JsonWriter: JSON text appended to a string as it is made, without a tree in between. Commas come by themselves.
//
// Floating-point numbers are the shortest text that reads back the same and always look like one (2.0, 1e+20); NaN and infinities
// are the strings "NaN", "Infinity", "-Infinity". Text that is not UTF-8 has its wrong bytes replaced by U+FFFD. The caller nests
// begin and end correctly. Lifetime: refers to the string it was given. Thread safety: one thread at a time.
//
//   JsonWriter json(text);
//   json.begin_object(); json.member("value", 1.5); json.list("names", names); json.end_object();
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace tenon {

// A member's name as it will stand in the text, `,"name":`, checked and put together when the program is compiled: writing it is
// one copy. Names are a third of a small answer.
class JsonKey {
 public:
  template <std::size_t N>
  consteval JsonKey(const char (&literal)[N]) : size_(N + 3) {
    if (N + 3 > sizeof text_) throw "the name is too long";
    char* at = text_;
    *at++ = ',';
    *at++ = '"';
    for (std::size_t i = 0; i + 1 < N; ++i) {
      const char c = literal[i];
      if (c < 0x20 || c == 0x7F || c == '"' || c == '\\') throw "the name has to be escaped";
      *at++ = c;
    }
    *at++ = '"';
    *at++ = ':';
  }
  std::string_view with_comma() const noexcept { return {text_, size_}; }
  std::string_view without_comma() const noexcept { return {text_ + 1, size_ - 1u}; }

 private:
  char text_[47] = {};
  unsigned char size_;
};

// A name that is known only when the program runs.
template <class Text>
concept JsonName = std::convertible_to<const Text&, std::string_view> && !std::is_array_v<Text>;

class JsonWriter {
 public:
  explicit JsonWriter(std::string& out) : out_(out) {}

  void begin_object() { open('{'); }
  void end_object() { out_ += '}'; }
  void begin_array() { open('['); }
  void end_array() { out_ += ']'; }

  JsonWriter& key(const JsonKey& name) {
    out_ += needs_comma() ? name.with_comma() : name.without_comma();
    return *this;
  }
  template <JsonName Name>
  JsonWriter& key(const Name& name) {
    value(std::string_view(name));
    out_ += ':';
    return *this;
  }
  void value(std::string_view text);
  void value(const char* text) { value(std::string_view(text)); }
  void value(const std::string& text) { value(std::string_view(text)); }
  void value(bool truth) { raw(truth ? "true" : "false"); }
  void value(double number);
  void value(float number);
  template <std::integral Integer>
    requires(!std::same_as<Integer, bool>)
  void value(Integer number) {
    if constexpr (std::is_signed_v<Integer>)
      integer(static_cast<std::int64_t>(number));
    else
      natural(static_cast<std::uint64_t>(number));
  }
  template <class T>
  void value(const std::optional<T>& maybe) {
    if (maybe)
      value(*maybe);
    else
      null();
  }
  void null() { raw("null"); }
  // JSON text as it is.
  void raw(std::string_view json) {
    comma();
    out_ += json;
  }

  template <class T>
  void member(const JsonKey& name, const T& content) {
    key(name);
    value(content);
  }
  template <JsonName Name, class T>
  void member(const Name& name, const T& content) {
    key(name);
    value(content);
  }
  // A text, or null where it is empty: not known, or does not apply.
  void text_or_null(const JsonKey& name, std::string_view text);
  // A duration to the nanosecond, which is all that was measured, in plain decimals.
  void seconds(const JsonKey& name, double duration);
  template <class Range>
  void list(const JsonKey& name, const Range& values) {
    list(key(name), values);
  }
  template <JsonName Name, class Range>
  void list(const Name& name, const Range& values) {
    list(key(name), values);
  }

 private:
  void open(char bracket) {
    comma();
    out_ += bracket;
  }
  template <class Range>
  static void list(JsonWriter& json, const Range& values) {
    json.begin_array();
    for (const auto& each : values) json.value(each);
    json.end_array();
  }
  // A value ends in a quote, a letter, a digit or a closing bracket; only structure ends in one of these.
  bool needs_comma() const noexcept {
    if (out_.empty()) return false;
    const char last = out_.back();
    return last != '{' && last != '[' && last != ':';
  }
  void comma() {
    if (needs_comma()) out_ += ',';
  }
  void integer(std::int64_t number);
  void natural(std::uint64_t number);

  std::string& out_;
};

// What JsonWriter wrote, with line breaks and indentation for people; lists without objects stay on one line.
std::string indented(std::string_view json);

}  // namespace tenon

// JsonWriter: JSON text appended to a string as it is made, without a tree in between. Commas come by themselves.
//
// Doubles are the shortest text that reads back the same; NaN and infinities are the strings "NaN", "Infinity", "-Infinity". Text
// that is not UTF-8 has its wrong bytes replaced by U+FFFD. The caller nests begin and end correctly.
//
//   JsonWriter json(text);
//   json.begin_object(); json.member("value", 1.5); json.end_object();
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "tenon/array.h"

namespace tenon::server {

// A member's name as it will stand in the text, `,"name":`, put together when it is compiled: writing it is one copy.
class JsonKey {
 public:
  template <std::size_t N>
  consteval JsonKey(const char (&literal)[N]) : size_(N + 3) {
    if (N + 3 > sizeof text_) throw "a name longer than there is room for";
    char* at = text_;
    *at++ = ',';
    *at++ = '"';
    for (std::size_t i = 0; i + 1 < N; ++i) {
      const char c = literal[i];
      if (c < 0x20 || c == 0x7F || c == '"' || c == '\\') throw "a name that has to be escaped";
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
    comma();
    quoted(name);
    out_ += ':';
    return *this;
  }
  void value(std::string_view text);
  void value(const char* text) { value(std::string_view(text)); }
  void value(const std::string& text) { value(std::string_view(text)); }
  void value(bool truth);
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
  // Seconds to the nanosecond, in plain decimals: quicker than all digits of a double, and all that was measured.
  void seconds(const JsonKey& name, double duration);
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

 private:
  void open(char bracket) {
    comma();
    out_ += bracket;
  }
  // A value or a key ends in a quote, a letter, a digit or a closing bracket; only structure ends in one of these.
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
  void quoted(std::string_view text);

  std::string& out_;
};

// Element |index| in row-major order, as its dtype reads: bools, exact integers, floats in the fewest digits.
void write_element(JsonWriter& json, const HostArray& array, std::int64_t index);
// All of them as nested lists of the array's shape.
void write_nested(JsonWriter& json, const HostArray& array);
void write_shape(JsonWriter& json, const Shape& shape);

}  // namespace tenon::server

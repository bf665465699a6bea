#include "server/http/json_writer.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstring>
#include <iterator>

namespace tenon::server {
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

// Whether one of the eight bytes of |word| is a control character, a quote, a backslash or beyond ASCII: the high bit of a byte
// is set where it is, or where subtracting borrows from it.
constexpr bool has_special(std::uint64_t word) noexcept {
  constexpr std::uint64_t kOnes = 0x0101010101010101u, kHigh = 0x8080808080808080u;
  const auto has_zero = [](std::uint64_t x) { return (x - kOnes) & ~x; };
  const std::uint64_t control = word - kOnes * 0x20, above = word + kOnes;
  return ((control | above | word | has_zero(word ^ (kOnes * '"')) | has_zero(word ^ (kOnes * '\\'))) & kHigh) != 0;
}

bool is_plain(std::string_view text) noexcept {
  const auto word_at = [&](std::size_t at, std::size_t size) {
    std::uint64_t word = 0x2020202020202020u;
    std::memcpy(&word, text.data() + at, size);
    return word;
  };
  std::size_t at = 0;
  for (; at + 8 <= text.size(); at += 8)
    if (has_special(word_at(at, 8))) return false;
  return at == text.size() || !has_special(word_at(at, text.size() - at));
}

// The fewest digits that read back the same.
template <class Float>
void write_float(std::string& out, Float number) {
  if (!std::isfinite(number)) {
    out += std::isnan(number) ? "\"NaN\"" : number > 0 ? "\"Infinity\"" : "\"-Infinity\"";
    return;
  }
  // Most numbers people look at are small and whole, and as integers they are written ten times faster. From 100,000 on an
  // exponent may be shorter; minus zero is no integer.
  if (number > -100'000 && number < 100'000) {
    const int whole = static_cast<int>(number);
    if (static_cast<Float>(whole) == number && (whole != 0 || !std::signbit(number))) {
      const fmt::format_int text(whole);
      out.append(text.data(), text.size());
      return;
    }
  }
  char digits[32];
  const auto [end, failure] = std::to_chars(digits, digits + sizeof digits, number);
  if (failure == std::errc()) out.append(digits, static_cast<std::size_t>(end - digits));
}

template <class T>
void write_lists(JsonWriter& json, const Shape& shape, int axis, const T*& next) {
  if (axis == shape.rank()) {
    if constexpr (std::is_same_v<T, std::uint8_t>)
      json.value(static_cast<unsigned>(*next++));
    else
      json.value(*next++);
    return;
  }
  json.begin_array();
  for (std::int64_t i = 0; i < shape[axis]; ++i) write_lists(json, shape, axis + 1, next);
  json.end_array();
}

template <class T>
void write_typed(JsonWriter& json, const HostArray& array) {
  const T* next = array.view<T>().data();
  write_lists(json, array.shape(), 0, next);
}

}  // namespace

void JsonWriter::value(std::string_view text) {
  comma();
  quoted(text);
}

void JsonWriter::value(bool truth) { raw(truth ? "true" : "false"); }

void JsonWriter::value(double number) {
  comma();
  write_float(out_, number);
}

void JsonWriter::value(float number) {
  comma();
  write_float(out_, number);
}

void JsonWriter::seconds(const JsonKey& name, double duration) {
  key(name);
  if (!(duration >= 0 && duration < 1e9)) return value(duration);
  constexpr std::uint64_t kSecond = 1'000'000'000;
  const auto nanoseconds = static_cast<std::uint64_t>(duration * 1e9 + 0.5);
  natural(nanoseconds / kSecond);
  const std::uint64_t rest = nanoseconds % kSecond;
  if (rest == 0) return;
  // The second's own digit in front keeps the zeros behind the point.
  const fmt::format_int text(kSecond + rest);
  std::string_view digits(text.data(), text.size());
  digits.remove_prefix(1);
  digits.remove_suffix(digits.size() - 1 - digits.find_last_not_of('0'));
  out_ += '.';
  out_ += digits;
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

void JsonWriter::quoted(std::string_view text) {
  out_ += '"';
  if (is_plain(text)) {
    out_ += text;
    out_ += '"';
    return;
  }
  while (!text.empty()) {
    const char c = text.front();
    const std::size_t length = sequence_length(text);
    if (length == 0) {
      out_ += "\xEF\xBF\xBD";
    } else if (c == '"' || c == '\\') {
      out_ += '\\';
      out_ += c;
    } else if (c == '\n') {
      out_ += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      fmt::format_to(std::back_inserter(out_), "\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out_ += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out_ += '"';
}

void write_element(JsonWriter& json, const HostArray& array, std::int64_t index) {
  const auto i = static_cast<std::size_t>(index);
  switch (array.dtype()) {
    case DType::boolean: return json.value(array.value(index) != 0);
    case DType::i64: return json.value(array.view<std::int64_t>()[i]);
    case DType::u64: return json.value(array.view<std::uint64_t>()[i]);
    case DType::f32: return json.value(array.view<float>()[i]);
    case DType::f64: return json.value(array.view<double>()[i]);
    default: break;
  }
  const double value = array.value(index);
  if (is_integer(array.dtype())) return json.value(static_cast<std::int64_t>(value));
  json.value(static_cast<float>(value));
}

void write_nested(JsonWriter& json, const HostArray& array) {
  switch (array.dtype()) {
    case DType::u8: return write_typed<std::uint8_t>(json, array);
    case DType::u16: return write_typed<std::uint16_t>(json, array);
    case DType::u32: return write_typed<std::uint32_t>(json, array);
    case DType::u64: return write_typed<std::uint64_t>(json, array);
    case DType::i8: return write_typed<std::int8_t>(json, array);
    case DType::i16: return write_typed<std::int16_t>(json, array);
    case DType::i32: return write_typed<std::int32_t>(json, array);
    case DType::i64: return write_typed<std::int64_t>(json, array);
    case DType::f32: return write_typed<float>(json, array);
    case DType::f64: return write_typed<double>(json, array);
    case DType::boolean: {
      const std::vector<double> values = array.to_doubles();
      const std::unique_ptr<bool[]> truths = std::make_unique<bool[]>(values.size());
      for (std::size_t i = 0; i < values.size(); ++i) truths[i] = values[i] != 0;
      const bool* next = truths.get();
      return write_lists(json, array.shape(), 0, next);
    }
    default: return write_typed<float>(json, array.cast(DType::f32));
  }
}

void write_shape(JsonWriter& json, const Shape& shape) {
  json.begin_array();
  for (const std::int64_t extent : shape) json.value(extent);
  json.end_array();
}

}  // namespace tenon::server

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <vector>

#include "array/io/numpy/npy.h"
#include "tenon/error.h"

namespace tenon {
namespace {

struct TypeCode {
  std::string_view code;
  DType dtype;
};
constexpr TypeCode kTypeCodes[] = {
    {"b1", DType::boolean}, {"u1", DType::u8},  {"u2", DType::u16}, {"u4", DType::u32}, {"u8", DType::u64},
    {"i1", DType::i8},      {"i2", DType::i16}, {"i4", DType::i32}, {"i8", DType::i64}, {"f2", DType::f16},
    {"V2", DType::bf16},    {"f4", DType::f32}, {"f8", DType::f64},
};

[[noreturn]] void refuse(const std::string& why, std::string hint = {}) {
  throw Error(ErrorCode::invalid_argument, why, std::move(hint));
}

// The header is a Python dictionary of three known entries; only this subset of Python is parsed.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  NpyHeader parse() {
    expect('{');
    while (!accept('}')) {
      entry();
      if (accept(',')) continue;
      expect('}');
      break;
    }
    skip_space();
    if (at_ != text_.size()) refuse(fmt::format("the header has extra text after its dictionary, at byte {}", at_));
    for (int i = 0; i < 3; ++i)
      if (!seen_[static_cast<std::size_t>(i)]) refuse(fmt::format("the header has no '{}'", kKeys[i]));
    return header_;
  }

 private:
  static constexpr std::string_view kKeys[] = {"descr", "fortran_order", "shape"};

  void entry() {
    const std::string_view key = string("a key");
    expect(':');
    std::size_t which = 0;
    while (which < 3 && kKeys[which] != key) ++which;
    if (which == 3) refuse(fmt::format("the header has an unknown key '{}'", printable(key)));
    if (seen_[which]) refuse(fmt::format("the header has '{}' twice", key));
    seen_[which] = true;
    if (which == 0) descr();
    if (which == 1) header_.fortran_order = boolean();
    if (which == 2) shape();
  }

  void descr() {
    skip_space();
    if (peek() == '[') refuse("records with several fields are not supported", "save each field as a separate array");
    const std::string_view descr = string("the element type");
    const char order = descr.empty() ? '\0' : descr.front();
    const bool has_order = order == '<' || order == '>' || order == '=' || order == '|';
    for (const TypeCode& type : kTypeCodes) {
      if (!has_order || descr.substr(1) != type.code) continue;
      if (order == '|' && element_bytes(type.dtype) > 1 && type.dtype != DType::bf16)
        refuse(fmt::format("element type '{}' has no byte order", printable(descr)));
      header_.dtype = type.dtype;
      header_.big_endian = order == '>';
      return;
    }
    if (has_order && descr.substr(1, 1) == "O") refuse("arrays of Python objects are not supported", "save a numeric array");
    refuse(fmt::format("element type '{}' is not supported", printable(descr)),
           "use bool, integers of 1 to 8 bytes, or floats of 2, 4 or 8 bytes");
  }

  bool boolean() {
    skip_space();
    for (const auto& [word, value] : {std::pair{std::string_view("True"), true}, std::pair{std::string_view("False"), false}})
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return value;
      }
    refuse("'fortran_order' is neither True nor False");
  }

  void shape() {
    expect('(');
    std::array<std::int64_t, kMaxRank> dims{};
    std::size_t rank = 0;
    bool comma = true;
    while (!accept(')')) {
      if (!comma) refuse("the shape has no comma between two extents");
      if (rank == dims.size()) refuse(fmt::format("the shape has more than {} axes", kMaxRank));
      dims[rank++] = extent();
      comma = accept(',');
    }
    if (rank == 1 && !comma) refuse("the shape is a number, not a tuple");
    header_.shape = Shape(std::span<const std::int64_t>(dims.data(), rank));
  }

  std::int64_t extent() {
    skip_space();
    std::int64_t value = 0;
    const char* const begin = text_.data() + at_;
    const char* const end = text_.data() + text_.size();
    if (begin == end || *begin < '0' || *begin > '9') refuse("an extent of the shape is not a non-negative integer");
    const auto [stop, error] = std::from_chars(begin, end, value);
    if (error != std::errc{}) refuse("an extent of the shape does not fit in 64 bits");
    at_ += static_cast<std::size_t>(stop - begin);
    if (peek() == 'L') ++at_;  // the suffix of long integers in Python 2
    return value;
  }

  std::string_view string(std::string_view what) {
    skip_space();
    const char quote = peek();
    if (quote != '\'' && quote != '"') refuse(fmt::format("expected {} in quotes at byte {} of the header", what, at_));
    const std::size_t begin = at_ + 1, end = text_.find(quote, begin);
    if (end == std::string_view::npos) refuse(fmt::format("the quote at byte {} of the header is never closed", at_));
    const std::string_view inside = text_.substr(begin, end - begin);
    if (inside.find('\\') != std::string_view::npos) refuse("the header has a backslash in a string");
    at_ = end + 1;
    return inside;
  }

  static std::string printable(std::string_view text) {
    std::string out;
    for (char c : text.substr(0, 32)) out += c >= ' ' && c <= '~' ? c : '?';
    return text.size() > 32 ? out + "..." : out;
  }

  char peek() const noexcept { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip_space() noexcept {
    while (peek() == ' ' || peek() == '\n' || peek() == '\t' || peek() == '\r') ++at_;
  }
  bool accept(char c) noexcept {
    skip_space();
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) refuse(fmt::format("expected '{}' at byte {} of the header", c, at_));
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::array<bool, 3> seen_{};
  NpyHeader header_;
};

}  // namespace

NpyHeader parse_npy_header(std::string_view text) { return Parser(text).parse(); }

std::string format_npy_header(DType dtype, const Shape& shape) {
  std::string_view code;
  for (const TypeCode& type : kTypeCodes)
    if (type.dtype == dtype) code = type.code;
  if (code.empty())
    throw Error(ErrorCode::unimplemented, fmt::format(".npy files cannot store {}", name(dtype)),
                "use safetensors, or cast to float32 first");
  const std::string extents = fmt::format("{}{}", fmt::join(shape.dims(), ", "), shape.rank() == 1 ? "," : "");
  std::string dictionary = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}",
                                       element_bytes(dtype) == 1 ? '|' : '<', code, extents);
  constexpr std::size_t kPreamble = 10;
  while ((kPreamble + dictionary.size() + 1) % 64 != 0) dictionary += ' ';
  dictionary += '\n';
  std::string out("\x93NUMPY\x01\x00", 8);
  out += static_cast<char>(dictionary.size() & 0xff);
  out += static_cast<char>(dictionary.size() >> 8);
  return out + dictionary;
}

}  // namespace tenon

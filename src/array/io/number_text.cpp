#include "array/io/number_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>

#include "tenon/error.h"

namespace tenon {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return out;
}

[[noreturn]] void refuse(const std::string& message, const std::string& hint = {}) {
  throw Error(ErrorCode::invalid_argument, message, hint);
}

// Nested brackets of numbers, separated by commas or spaces.
class Brackets {
 public:
  explicit Brackets(std::string_view text) : text_(text) {}

  HostArray read(DType floats, std::optional<DType> dtype) {
    read_list(0);
    skip();
    if (at_ < text_.size()) refuse("unexpected text after the last bracket");
    const HostArray array = numbers_.to_array(Shape(std::span<const std::int64_t>(extents_)), floats);
    return dtype ? array.cast(*dtype) : array;
  }

 private:
  void skip() {
    while (at_ < text_.size() && (is_space(text_[at_]) || text_[at_] == ',')) ++at_;
  }

  void read_list(std::size_t axis) {
    if (axis >= static_cast<std::size_t>(kMaxRank)) refuse("the text has too many nested brackets");
    ++at_;  // the bracket
    std::int64_t count = 0;
    for (skip(); at_ < text_.size() && text_[at_] != ']'; skip(), ++count) {
      if (text_.substr(at_).starts_with("..."))
        refuse("the text leaves elements out (...)", "print the whole tensor: numpy.set_printoptions(threshold=sys.maxsize)");
      if (text_[at_] == '[')
        read_list(axis + 1);
      else
        read_number(axis);
    }
    if (at_ >= text_.size()) refuse("a closing bracket is missing");
    ++at_;
    if (extents_.size() <= axis) extents_.resize(axis + 1, -1);
    if (extents_[axis] >= 0 && extents_[axis] != count) refuse("the rows have different lengths");
    extents_[axis] = count;
  }

  void read_number(std::size_t axis) {
    if (extents_.size() > axis + 1) refuse("the brackets have different depths");
    const std::size_t begin = at_;
    while (at_ < text_.size() && !is_space(text_[at_]) && text_[at_] != ',' && text_[at_] != ']' && text_[at_] != '[') ++at_;
    const std::string_view word = text_.substr(begin, at_ - begin);
    const std::optional<NumberText> number = parse_number_text(word);
    if (!number) refuse("'" + std::string(word.substr(0, 40)) + "' is not a number");
    numbers_.add(*number);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<std::int64_t> extents_;
  NumberList numbers_;
};

// The dtype among the arguments after the list: "dtype=torch.float64, device='cuda:0')".
std::optional<DType> dtype_argument(std::string_view rest) {
  const std::size_t at = rest.find("dtype=");
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view word = rest.substr(at + 6);
  while (!word.empty() && (word.front() == '\'' || word.front() == '"')) word.remove_prefix(1);
  word = word.substr(0, word.find_first_of(" ,)'\"\n"));
  if (const std::size_t dot = word.rfind('.'); dot != std::string_view::npos) word.remove_prefix(dot + 1);
  const std::optional<DType> dtype = parse_dtype(word == "bool_" ? "bool" : word);
  if (!dtype) refuse("'" + std::string(word.substr(0, 40)) + "' is not a dtype");
  return dtype;
}

std::optional<HostArray> parse_wrapped(std::string_view text, DType floats) {
  const std::size_t open = text.find('(');
  if (open == std::string_view::npos || !text.ends_with(')')) return std::nullopt;
  std::string_view call = text.substr(0, open);
  if (const std::size_t dot = call.rfind('.'); dot != std::string_view::npos) call.remove_prefix(dot + 1);
  if (call != "tensor" && call != "array" && call != "Tensor" && call != "Array" && call != "asarray") return std::nullopt;
  const std::string_view inside = trimmed(text.substr(open + 1, text.size() - open - 2));
  const std::size_t end = inside.rfind(']');
  if (!inside.starts_with('[') || end == std::string_view::npos) {
    const std::string_view word = trimmed(inside.substr(0, inside.find(',')));
    const std::optional<NumberText> number = parse_number_text(word);
    if (!number) return std::nullopt;
    NumberList one;
    one.add(*number);
    const std::optional<DType> dtype = dtype_argument(inside);
    const HostArray array = one.to_array({}, floats);
    return dtype ? array.cast(*dtype) : array;
  }
  return Brackets(inside.substr(0, end + 1)).read(floats, dtype_argument(inside.substr(end + 1)));
}

// Rows of numbers: by line, or by semicolon where a line has other separators, too.
std::optional<HostArray> parse_rows(std::string_view text, DType floats) {
  const bool has_lines = text.find('\n') != std::string_view::npos;
  const bool has_semicolons = text.find(';') != std::string_view::npos;
  const bool has_others = text.find_first_of(", \t") != std::string_view::npos;
  if (!has_lines && !has_semicolons) return std::nullopt;
  const char row_end = has_lines ? '\n' : has_others ? ';' : '\0';
  NumberList numbers;
  std::int64_t rows = 0, columns = -1;
  bool is_ragged = false;
  while (!text.empty()) {
    const std::size_t end = row_end == '\0' ? text.size() : std::min(text.find(row_end), text.size());
    std::string_view row = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (row.empty()) continue;
    std::int64_t count = 0;
    while (!row.empty()) {
      const std::size_t stop = std::min(row.find_first_of(",; \t\r"), row.size());
      if (stop > 0) {
        const std::optional<NumberText> number = parse_number_text(row.substr(0, stop));
        if (!number) return std::nullopt;
        numbers.add(*number);
        ++count;
      }
      row.remove_prefix(std::min(stop + 1, row.size()));
    }
    is_ragged = is_ragged || (columns >= 0 && columns != count);
    columns = count;
    ++rows;
  }
  if (rows == 0) return std::nullopt;
  if (is_ragged) refuse("the rows have different lengths");
  const auto total = static_cast<std::int64_t>(numbers.size());
  return numbers.to_array(rows == 1 || columns == 1 ? Shape{total} : Shape{rows, columns}, floats);
}

}  // namespace

std::optional<NumberText> parse_number_text(std::string_view text) noexcept {
  if (text.empty() || text.size() > 400) return std::nullopt;
  NumberText number;
  if (text == "True" || text == "true" || text == "False" || text == "false") {
    number.is_boolean = number.is_integer = true;
    number.value = static_cast<double>(number.integer = text[0] == 'T' || text[0] == 't');
    return number;
  }
  const std::string_view digits = text.starts_with('+') ? text.substr(1) : text;
  if (digits.empty() || digits.starts_with('+')) return std::nullopt;
  const char* const end = digits.data() + digits.size();
  const auto whole = std::from_chars(digits.data(), end, number.integer);
  if (whole.ec == std::errc() && whole.ptr == end) {
    number.is_integer = true;
    number.value = static_cast<double>(number.integer);
    return number;
  }
  const std::string word = lower(digits);
  if (word == "nan" || word == "-nan") {
    number.value = std::numeric_limits<double>::quiet_NaN();
    return number;
  }
  if (word == "inf" || word == "infinity" || word == "-inf" || word == "-infinity") {
    number.value = word[0] == '-' ? -INFINITY : INFINITY;
    return number;
  }
  const auto fraction = std::from_chars(digits.data(), end, number.value);
  if (fraction.ptr != end) return std::nullopt;
  if (fraction.ec == std::errc::result_out_of_range) number.value = std::strtod(std::string(digits).c_str(), nullptr);
  return number;
}

void NumberList::add(const NumberText& number) {
  numbers_.push_back({number.value, number.integer});
  all_integers_ = all_integers_ && number.is_integer;
  all_booleans_ = all_booleans_ && number.is_boolean;
}

HostArray NumberList::to_array(const Shape& shape, DType floats) const {
  if (static_cast<std::size_t>(shape.elements()) != numbers_.size()) refuse("the rows have different lengths");
  if (all_integers_ && !numbers_.empty()) {
    HostArray array = HostArray::empty(DType::i64, shape);
    std::ranges::transform(numbers_, array.mutable_view<std::int64_t>().begin(), &Number::integer);
    return all_booleans_ ? array.cast(DType::boolean) : array;
  }
  HostArray array = HostArray::empty(DType::f64, shape);
  std::ranges::transform(numbers_, array.mutable_view<double>().begin(), &Number::value);
  return array.cast(floats);
}

std::optional<HostArray> parse_pasted(std::string_view text, DType floats) {
  text = trimmed(text);
  if (std::optional<HostArray> wrapped = parse_wrapped(text, floats)) return wrapped;
  // A list with commas is an expression as it stands; one without is what NumPy prints.
  if (text.starts_with('[') && text.ends_with(']') && text.find(',') == std::string_view::npos &&
      text.find_first_of(" \n") != std::string_view::npos &&
      text.find_first_not_of("0123456789+-.eEnaif[] \t\r\n") == std::string_view::npos)
    return Brackets(text).read(floats, std::nullopt);
  return parse_rows(text, floats);
}

}  // namespace tenon

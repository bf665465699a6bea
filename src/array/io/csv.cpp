#include <fmt/format.h>

#include <iterator>
#include <string>
#include <utility>

#include "array/io/byte_source.h"
#include "array/io/number_text.h"
#include "tenon/array/io.h"
#include "tenon/error.h"

namespace tenon {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\"";
  while (!text.empty() && kSpace.find(text.front()) != std::string_view::npos) text.remove_prefix(1);
  while (!text.empty() && kSpace.find(text.back()) != std::string_view::npos) text.remove_suffix(1);
  return text;
}

// The separator of the first line that has one.
char separator_of(std::string_view text) {
  for (const char c : {'\t', ';', ','})
    if (text.find(c) != std::string_view::npos) return c;
  return ' ';
}

std::vector<std::string_view> fields_of(std::string_view line, char separator) {
  std::vector<std::string_view> fields;
  while (true) {
    const std::size_t end = std::min(line.find(separator), line.size());
    const std::string_view field = trimmed(line.substr(0, end));
    // Spaces may be several.
    if (separator != ' ' || !field.empty()) fields.push_back(field);
    if (end == line.size()) return fields;
    line.remove_prefix(end + 1);
  }
}

bool are_names(const std::vector<std::string_view>& fields) {
  for (const std::string_view field : fields)
    if (parse_number_text(field)) return false;
  return true;
}

template <class T>
void append_all(std::string& out, const HostArray& array, std::int64_t rows, std::int64_t columns) {
  const std::span<const T> values = array.view<T>();
  std::size_t at = 0;
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c)
      fmt::format_to(std::back_inserter(out), "{}{}", values[at++], c + 1 < columns ? ',' : '\n');
}

}  // namespace

HostArray parse_csv(std::string_view text, DType floats) {
  NumberList numbers;
  std::int64_t rows = 0, columns = 0;
  char separator = '\0';
  int line_number = 0;
  bool is_first = true;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++line_number;
    if (trimmed(line).empty() || trimmed(line).starts_with('#')) continue;
    if (separator == '\0') separator = separator_of(line);
    const std::vector<std::string_view> fields = fields_of(line, separator);
    if (std::exchange(is_first, false) && are_names(fields)) continue;
    if (columns == 0) columns = static_cast<std::int64_t>(fields.size());
    if (static_cast<std::int64_t>(fields.size()) != columns)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("line {} has {} values, but the lines before it have {}", line_number, fields.size(), columns));
    for (const std::string_view field : fields) {
      const std::optional<NumberText> number = parse_number_text(field);
      if (!number)
        throw Error(ErrorCode::invalid_argument, fmt::format("line {}: '{}' is not a number", line_number, field.substr(0, 40)));
      numbers.add(*number);
    }
    ++rows;
  }
  if (rows == 0) throw Error(ErrorCode::invalid_argument, "the file contains no numbers");
  return numbers.to_array(rows == 1 || columns == 1 ? Shape{rows * columns} : Shape{rows, columns}, floats);
}

HostArray load_csv(const std::filesystem::path& file, DType floats) {
  const std::unique_ptr<ByteSource> source = open_source(file);
  std::string text(static_cast<std::size_t>(source->size()), '\0');
  source->read(0, std::as_writable_bytes(std::span(text)));
  try {
    return parse_csv(text, floats);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", source->label(), error.what()), error.hint());
  }
}

std::string format_csv(const HostArray& array) {
  const Shape& shape = array.shape();
  if (shape.rank() > 2)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("CSV stores vectors and matrices, not a tensor of shape {}", to_string(shape)),
                "use .npy, .npz or .safetensors, or reshape the tensor to a matrix");
  const std::int64_t rows = shape.rank() == 2 ? shape[0] : array.elements(), columns = shape.rank() == 2 ? shape[1] : 1;
  std::string out;
  if (is_integer(array.dtype()) || array.dtype() == DType::boolean) {
    if (array.dtype() == DType::u64)
      append_all<std::uint64_t>(out, array, rows, columns);
    else
      append_all<std::int64_t>(out, array.cast(DType::i64), rows, columns);
  } else if (array.dtype() == DType::f64) {
    append_all<double>(out, array, rows, columns);
  } else {
    append_all<float>(out, array.cast(DType::f32), rows, columns);
  }
  return out;
}

void save_csv(const std::filesystem::path& file, const HostArray& array) {
  const std::string text = format_csv(array);
  const std::span<const std::byte> parts[] = {std::as_bytes(std::span(text))};
  write_file(file, parts);
}

}  // namespace tenon

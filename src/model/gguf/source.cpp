#include "model/gguf/source.h"

#include <fmt/format.h>

#include <cstring>

#include "base/text/printable.h"
#include "tenon/error.h"

namespace tenon::gguf {
namespace {

template <class T>
const T* get(const Source& file, std::string_view key, std::string_view type) {
  const auto found = file.metadata().find(key);
  if (found == file.metadata().end()) return nullptr;
  const T* value = std::get_if<T>(&found->second);
  if (!value) throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is not {}", printable(key), type));
  return value;
}

// The file has the transposed matrix; whole rows of |out| are columns of it.
void read_columns(const ByteSource& file, const TensorInfo& tensor, std::uint64_t first, std::span<std::byte> out) {
  const auto columns = static_cast<std::size_t>(tensor.columns());
  const auto all_rows = static_cast<std::uint64_t>(tensor.rows());
  const std::size_t element = layout_of(tensor.type).bytes, rows = out.size() / element / columns;
  std::vector<std::byte> part(rows * element);
  for (std::size_t column = 0; column < columns; ++column) {
    file.read(tensor.offset + (column * all_rows + first) * element, part);
    for (std::size_t row = 0; row < rows; ++row)
      std::memcpy(out.data() + (row * columns + column) * element, part.data() + row * element, element);
  }
}

}  // namespace

std::int64_t TensorInfo::elements() const noexcept {
  std::int64_t product = 1;
  for (const std::int64_t extent : shape) product *= extent;
  return product;
}

bool Source::add(TensorInfo tensor) {
  if (!places_.emplace(tensor.name, tensors_.size()).second) return false;
  tensors_.push_back(std::move(tensor));
  return true;
}

std::optional<std::string> Source::text(std::string_view key) const {
  const auto* value = get<std::string>(*this, key, "a text");
  return value ? std::optional(*value) : std::nullopt;
}
std::optional<std::int64_t> Source::integer(std::string_view key) const {
  const auto* value = get<std::int64_t>(*this, key, "an integer");
  return value ? std::optional(*value) : std::nullopt;
}
std::optional<double> Source::number(std::string_view key) const {
  const auto found = metadata_.find(key);
  if (found != metadata_.end())
    if (const auto* integer = std::get_if<std::int64_t>(&found->second)) return static_cast<double>(*integer);
  const auto* value = get<double>(*this, key, "a number");
  return value ? std::optional(*value) : std::nullopt;
}
std::optional<bool> Source::boolean(std::string_view key) const {
  const auto* value = get<bool>(*this, key, "true or false");
  return value ? std::optional(*value) : std::nullopt;
}
const List* Source::list(std::string_view key) const { return get<List>(*this, key, "a list"); }

const TensorInfo* Source::find_tensor(std::string_view name) const {
  const auto found = places_.find(name);
  return found == places_.end() ? nullptr : &tensors_[found->second];
}
const TensorInfo& Source::tensor(std::string_view name) const {
  const TensorInfo* found = find_tensor(name);
  if (!found) throw Error(ErrorCode::invalid_argument, fmt::format("the tensor '{}' is missing", printable(name)));
  return *found;
}

std::vector<std::byte> Source::rows(const TensorInfo& tensor, std::int64_t first, std::int64_t count) const {
  if (first < 0 || count < 0 || count > tensor.rows() || first > tensor.rows() - count)
    throw Error(ErrorCode::out_of_range, fmt::format("rows {} to {} of the tensor '{}', which has {}", first, first + count,
                                                     printable(tensor.name), tensor.rows()));
  const std::uint64_t row = tensor.bytes / static_cast<std::uint64_t>(tensor.rows());
  std::vector<std::byte> out(static_cast<std::size_t>(row * static_cast<std::uint64_t>(count)));
  if (tensor.is_transposed)
    read_columns(*files_[tensor.file], tensor, static_cast<std::uint64_t>(first), out);
  else
    files_[tensor.file]->read(tensor.offset + row * static_cast<std::uint64_t>(first), out);
  return out;
}

std::vector<float> Source::floats(const TensorInfo& tensor, std::int64_t first, std::int64_t count) const {
  const std::vector<std::byte> bytes = rows(tensor, first, count);
  std::vector<float> out(static_cast<std::size_t>(count * tensor.columns()));
  dequantize(tensor.type, bytes, out);
  return out;
}

}  // namespace tenon::gguf

#include "model/gguf/gguf_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "base/text/printable.h"
#include "tenon/error.h"

namespace tenon::gguf {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF files are read as they are in memory");

[[noreturn]] void damaged(const std::string& what) { throw Error(ErrorCode::invalid_argument, "not a valid GGUF file: " + what); }

// The header, read front to back in pieces.
class Reader {
 public:
  explicit Reader(const ByteSource& source) : source_(source) {}

  std::uint64_t position() const noexcept { return window_start_ + at_; }
  std::uint64_t left() const noexcept { return source_.size() - position(); }

  void bytes(std::span<std::byte> out) {
    if (out.size() > left()) damaged(fmt::format("it ends within its header, at byte {}", source_.size()));
    while (!out.empty()) {
      if (at_ == window_.size()) fill();
      const std::size_t n = std::min(out.size(), window_.size() - at_);
      std::memcpy(out.data(), window_.data() + at_, n);
      at_ += n;
      out = out.subspan(n);
    }
  }
  template <class T>
  T number() {
    T value{};
    bytes(std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }
  // A count of things that take at least |least| bytes each.
  std::size_t count(std::uint64_t least, std::string_view what) {
    const auto n = number<std::uint64_t>();
    if (n > left() / least) damaged(fmt::format("it claims {} {}, more than it has room for", n, what));
    return static_cast<std::size_t>(n);
  }
  std::string text() {
    std::string out(count(1, "bytes of text"), '\0');
    bytes(std::as_writable_bytes(std::span(out)));
    return out;
  }

 private:
  void fill() {
    window_start_ += window_.size();
    window_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(1 << 20, source_.size() - window_start_)));
    source_.read(window_start_, window_);
    at_ = 0;
  }

  const ByteSource& source_;
  std::vector<std::byte> window_;
  std::uint64_t window_start_ = 0;
  std::size_t at_ = 0;
};

enum class ValueType : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, text, list, u64, i64, f64 };

std::size_t bytes_of(std::uint32_t type) {
  constexpr std::uint8_t bytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};
  if (type >= std::size(bytes)) damaged(fmt::format("a value of the unknown type {}", type));
  return bytes[type];
}

Value scalar(Reader& in, ValueType type) {
  switch (type) {
    case ValueType::u8: return std::int64_t{in.number<std::uint8_t>()};
    case ValueType::i8: return std::int64_t{in.number<std::int8_t>()};
    case ValueType::u16: return std::int64_t{in.number<std::uint16_t>()};
    case ValueType::i16: return std::int64_t{in.number<std::int16_t>()};
    case ValueType::u32: return std::int64_t{in.number<std::uint32_t>()};
    case ValueType::i32: return std::int64_t{in.number<std::int32_t>()};
    case ValueType::f32: return double{in.number<float>()};
    case ValueType::boolean: return in.number<std::uint8_t>() != 0;
    case ValueType::u64: return static_cast<std::int64_t>(in.number<std::uint64_t>());
    case ValueType::i64: return in.number<std::int64_t>();
    case ValueType::f64: return in.number<double>();
    default: return in.text();
  }
}

List list_of(Reader& in) {
  const auto type = in.number<std::uint32_t>();
  const std::size_t least = bytes_of(type);
  if (static_cast<ValueType>(type) == ValueType::list) damaged("a list of lists");
  const std::size_t n = in.count(least, "values of a list");
  List out;
  out.is_text = static_cast<ValueType>(type) == ValueType::text;
  out.is_text ? out.texts.reserve(n) : out.numbers.reserve(n);
  for (std::size_t i = 0; i < n; ++i) {
    Value each = scalar(in, static_cast<ValueType>(type));
    if (auto* text = std::get_if<std::string>(&each))
      out.texts.push_back(std::move(*text));
    else if (const auto* flag = std::get_if<bool>(&each))
      out.numbers.push_back(*flag ? 1 : 0);
    else if (const auto* integer = std::get_if<std::int64_t>(&each))
      out.numbers.push_back(static_cast<double>(*integer));
    else
      out.numbers.push_back(std::get<double>(each));
  }
  return out;
}

TensorInfo tensor_of(Reader& in) {
  TensorInfo info;
  info.name = in.text();
  const auto rank = in.number<std::uint32_t>();
  if (rank < 1 || rank > 4) damaged(fmt::format("the tensor '{}' has {} axes", printable(info.name), rank));
  constexpr std::uint64_t kMostElements = std::uint64_t{1} << 40;
  std::uint64_t elements = 1;
  for (std::uint32_t i = 0; i < rank; ++i) {
    const auto extent = in.number<std::uint64_t>();
    if (extent < 1 || extent > kMostElements / elements)
      damaged(fmt::format("the tensor '{}' has an axis of {}", printable(info.name), extent));
    elements *= extent;
    info.shape.insert(info.shape.begin(), static_cast<std::int64_t>(extent));
  }
  const auto type = in.number<std::uint32_t>();
  const std::optional<BlockLayout> layout = layout_of(type);
  if (!layout)
    throw Error(ErrorCode::unimplemented,
                fmt::format("the tensor '{}' has the GGUF type {}, which is not supported", printable(info.name), type),
                "use a file quantised as Q4_0, Q4_K_M, Q8_0 or F16");
  info.type = static_cast<BlockType>(type);
  const auto columns = static_cast<std::uint64_t>(info.columns());
  const auto block = static_cast<std::uint64_t>(layout->elements);
  if (columns % block != 0)
    damaged(fmt::format("rows of the tensor '{}' have {} elements, no multiple of {}", printable(info.name), columns, block));
  info.bytes = elements / block * layout->bytes;
  info.offset = in.number<std::uint64_t>();
  return info;
}

}  // namespace

GgufFile GgufFile::open(const std::filesystem::path& file) { return read(open_source(file)); }

GgufFile GgufFile::read(std::shared_ptr<const ByteSource> source) {
  Reader in(*source);
  if (source->size() < 24) damaged("it is too short");
  if (in.number<std::uint32_t>() != 0x46554747) damaged("it does not begin with 'GGUF'");
  const auto version = in.number<std::uint32_t>();
  if (version != 2 && version != 3) {
    const bool is_swapped = version != 0 && (version & 0xffffu) == 0;
    if (!is_swapped && version > 0xffffu) damaged("its version is not a number of GGUF");
    throw Error(ErrorCode::unimplemented,
                is_swapped ? std::string("a GGUF file in big-endian order") : fmt::format("version {} of GGUF", version),
                "convert the model again with a current converter");
  }
  GgufFile file;
  file.version_ = static_cast<int>(version);
  const std::size_t tensors = in.count(8 + 4 + 8 + 4 + 8, "tensors"), values = in.count(8 + 4 + 1, "keys");
  for (std::size_t i = 0; i < values; ++i) {
    std::string key = in.text();
    const auto type = in.number<std::uint32_t>();
    bytes_of(type);  // that it is known
    Value value = static_cast<ValueType>(type) == ValueType::list ? Value(list_of(in)) : scalar(in, static_cast<ValueType>(type));
    if (!file.set(std::move(key), std::move(value))) damaged("it has a key twice");
  }
  for (std::size_t i = 0; i < tensors; ++i) {
    TensorInfo tensor = tensor_of(in);
    const std::string name = tensor.name;
    if (!file.add(std::move(tensor))) damaged(fmt::format("it has the tensor '{}' twice", printable(name)));
  }
  const std::int64_t alignment = file.integer("general.alignment").value_or(32);
  if (alignment < 1 || alignment > (1 << 20) || !std::has_single_bit(static_cast<std::uint64_t>(alignment)))
    damaged(fmt::format("an alignment of {}", alignment));
  const auto step = static_cast<std::uint64_t>(alignment);
  const std::uint64_t data = (in.position() + step - 1) / step * step;
  for (TensorInfo& tensor : file.tensors_) {
    if (data > source->size() || tensor.offset > source->size() - data || tensor.bytes > source->size() - data - tensor.offset)
      damaged(fmt::format("the tensor '{}' lies beyond the end of the file", printable(tensor.name)));
    tensor.offset += data;
  }
  file.files_ = {std::move(source)};
  return file;
}

}  // namespace tenon::gguf

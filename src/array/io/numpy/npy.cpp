#include "array/io/numpy/npy.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstdint>
#include <string>

#include "array/convert.h"
#include "array/io/byte_source.h"
#include "array/strided_copy.h"
#include "tenon/array/io.h"
#include "tenon/error.h"

static_assert(std::endian::native == std::endian::little, "files are read and written as little endian");

namespace tenon {
namespace {

struct Layout {
  NpyHeader header;
  std::uint64_t data_begin;
};

[[noreturn]] void refuse(const ByteSource& source, const std::string& why, std::string hint = {}) {
  throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}", source.label(), why), std::move(hint));
}

Layout read_layout(const ByteSource& source) {
  std::array<std::byte, 12> start{};
  const std::uint64_t start_size = std::min<std::uint64_t>(start.size(), source.size());
  source.read(0, std::span(start).first(static_cast<std::size_t>(start_size)));
  if (start_size < 10 || std::memcmp(start.data(), "\x93NUMPY", 6) != 0) refuse(source, "this is not a .npy file");
  const auto byte = [&](std::size_t i) { return std::to_integer<std::uint32_t>(start[i]); };
  if (byte(6) < 1 || byte(6) > 3 || byte(7) != 0)
    refuse(source, fmt::format(".npy version {}.{} is not supported", byte(6), byte(7)), "use version 1.0, 2.0 or 3.0");
  const bool wide = byte(6) >= 2;
  const std::uint64_t header_begin = wide ? 12 : 10;
  std::uint64_t header_size = byte(8) | byte(9) << 8;
  if (wide) header_size |= byte(10) << 16 | byte(11) << 24;
  if (header_size > kMaxNpyHeaderBytes)
    refuse(source, fmt::format("the header length is {} bytes, more than the limit of {}", header_size, kMaxNpyHeaderBytes));
  if (source.size() < header_begin + header_size) refuse(source, "the file ends inside its header");

  std::string text(static_cast<std::size_t>(header_size), '\0');
  source.read(header_begin, std::as_writable_bytes(std::span(text)));
  Layout layout{{}, header_begin + header_size};
  try {
    layout.header = parse_npy_header(text);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", source.label(), error.what()), error.hint());
  }
  const std::uint64_t wanted = storage_bytes(layout.header.dtype, layout.header.shape), there = source.size() - layout.data_begin;
  if (wanted != there)
    refuse(source, fmt::format("{} of shape {} needs {} bytes, but {} follow the header", name(layout.header.dtype),
                               to_string(layout.header.shape), wanted, there));
  return layout;
}

template <class T>
void swap_bytes(std::byte* data, std::int64_t n) noexcept {
  auto* const values = reinterpret_cast<T*>(data);
  for (std::int64_t i = 0; i < n; ++i) {
    if constexpr (sizeof(T) == 2) values[i] = __builtin_bswap16(values[i]);
    if constexpr (sizeof(T) == 4) values[i] = __builtin_bswap32(values[i]);
    if constexpr (sizeof(T) == 8) values[i] = __builtin_bswap64(values[i]);
  }
}

void to_little_endian(HostArray& array) {
  switch (element_bytes(array.dtype())) {
    case 2: return swap_bytes<std::uint16_t>(array.mutable_data(), array.elements());
    case 4: return swap_bytes<std::uint32_t>(array.mutable_data(), array.elements());
    case 8: return swap_bytes<std::uint64_t>(array.mutable_data(), array.elements());
    default: return;
  }
}

HostArray to_row_major(const HostArray& columns) {
  const Shape& shape = columns.shape();
  std::array<std::int64_t, kMaxRank> strides{};
  auto step = static_cast<std::int64_t>(element_bytes(columns.dtype()));
  for (int axis = 0; axis < shape.rank(); ++axis) {
    strides[static_cast<std::size_t>(axis)] = step;
    step *= std::max<std::int64_t>(shape[axis], 1);
  }
  HostArray out = HostArray::empty(columns.dtype(), shape);
  copy_strided(columns.data(), shape, std::span(strides).first(static_cast<std::size_t>(shape.rank())),
               element_bytes(columns.dtype()), out.mutable_data());
  return out;
}

HostArray read_npy(const ByteSource& source) {
  const Layout layout = read_layout(source);
  HostArray array = HostArray::empty(layout.header.dtype, layout.header.shape);
  source.read(layout.data_begin, {array.mutable_data(), array.bytes()});
  if (array.dtype() == DType::boolean) normalize_booleans(array.mutable_data(), array.bytes());
  if (layout.header.big_endian) to_little_endian(array);
  return layout.header.fortran_order && array.shape().rank() > 1 ? to_row_major(array) : array;
}

}  // namespace

HostArray load_npy(const std::filesystem::path& file) { return read_npy(*open_source(file)); }

HostArray parse_npy(std::span<const std::byte> bytes) { return read_npy(MemorySource(bytes, "npy data")); }

void save_npy(const std::filesystem::path& file, const HostArray& array) {
  const std::string header = format_npy_header(array.dtype(), array.shape());
  const std::span<const std::byte> parts[] = {std::as_bytes(std::span(header)), {array.data(), array.bytes()}};
  write_file(file, parts);
}

std::vector<std::byte> format_npy(const HostArray& array) {
  const std::string header = format_npy_header(array.dtype(), array.shape());
  std::vector<std::byte> out(header.size() + array.bytes());
  std::memcpy(out.data(), header.data(), header.size());
  if (array.bytes() != 0) std::memcpy(out.data() + header.size(), array.data(), array.bytes());
  return out;
}

}  // namespace tenon

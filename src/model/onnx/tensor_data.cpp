#include "model/onnx/tensor_data.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/system/file_descriptor.h"
#include "base/text/printable.h"
#include "tenon/error.h"

namespace tenon::onnx {
namespace {

[[noreturn]] void refuse(const TensorProto& tensor, const std::string& problem) {
  throw Error(ErrorCode::invalid_argument, fmt::format("ONNX tensor '{}': {}", printable(tensor.name), problem));
}

std::uint64_t number_in(const TensorProto& tensor, std::string_view key, std::uint64_t fallback) {
  const auto found = tensor.external.find(key);
  if (found == tensor.external.end()) return fallback;
  std::uint64_t value = 0;
  const std::string_view text = found->second;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size())
    refuse(tensor, fmt::format("'{}' is not a number of bytes", printable(text)));
  return value;
}

// The bytes of the elements in a file: whole bytes, the last one padded.
std::size_t stored_bytes(ElementType type, std::int64_t elements) {
  return (static_cast<std::size_t>(elements) * static_cast<std::size_t>(bits(type)) + 7) / 8;
}

// Codes of small types, one after the other from the low bits.
unsigned code_at(Bytes raw, int width, std::size_t index) {
  const std::size_t bit = index * static_cast<std::size_t>(width), byte = bit / 8;
  unsigned word = std::to_integer<unsigned>(raw[byte]);
  if (byte + 1 < raw.size()) word |= std::to_integer<unsigned>(raw[byte + 1]) << 8;
  return word >> (bit % 8) & ((1u << width) - 1);
}

void put_small(ElementType type, unsigned code, HostArray& out, std::size_t index) {
  const int width = bits(type);
  if (is_small_float(type))
    out.mutable_view<float>()[index] = small_float(type, code);
  else if (type == ElementType::u4 || type == ElementType::u2)
    out.mutable_view<std::uint8_t>()[index] = static_cast<std::uint8_t>(code);
  else
    out.mutable_view<std::int8_t>()[index] =
        static_cast<std::int8_t>(code >> (width - 1) ? static_cast<int>(code) - (1 << width) : static_cast<int>(code));
}

HostArray small_from_raw(const TensorProto& tensor, const Shape& shape, Bytes raw) {
  HostArray out = HostArray::empty(held_as(tensor.type), shape);
  for (std::size_t i = 0; i < static_cast<std::size_t>(shape.elements()); ++i)
    put_small(tensor.type, code_at(raw, bits(tensor.type), i), out, i);
  return out;
}

HostArray from_raw(const TensorProto& tensor, const Shape& shape, Bytes raw) {
  const std::size_t wanted = stored_bytes(tensor.type, shape.elements());
  if (raw.size() != wanted)
    refuse(tensor,
           fmt::format("{} bytes of data, but {} of {} need {}", raw.size(), to_string(shape), name(tensor.type), wanted));
  if (is_small(tensor.type)) return small_from_raw(tensor, shape, raw);
  HostArray out = HostArray::from_bytes(held_as(tensor.type), shape, raw);
  // Any byte but 0 is true in the format; arrays hold 0 and 1.
  if (tensor.type == ElementType::boolean)
    for (std::uint8_t& each : out.mutable_view<std::uint8_t>()) each = each != 0;
  return out;
}

template <class T>
HostArray from_integers(const TensorProto& tensor, const Shape& shape) {
  HostArray out = HostArray::empty(held_as(tensor.type), shape);
  T* to = reinterpret_cast<T*>(out.mutable_data());
  for (std::size_t i = 0; i < tensor.integers.size(); ++i) to[i] = static_cast<T>(tensor.integers[i]);
  return out;
}

void expect_count(const TensorProto& tensor, const Shape& shape, std::size_t count) {
  if (count != static_cast<std::size_t>(shape.elements()))
    refuse(tensor, fmt::format("{} elements of data for the shape {}", count, to_string(shape)));
}

HostArray from_integer_field(const TensorProto& tensor, const Shape& shape) {
  if (is_small(tensor.type) && bits(tensor.type) < 8 && tensor.type != ElementType::f6e2m3 &&
      tensor.type != ElementType::f6e3m2) {
    // Several elements in each number, as in the raw form.
    std::vector<std::byte> raw;
    for (const std::int64_t each : tensor.integers) raw.push_back(static_cast<std::byte>(each));
    return from_raw(tensor, shape, raw);
  }
  expect_count(tensor, shape, tensor.integers.size());
  if (is_small(tensor.type)) {
    HostArray out = HostArray::empty(held_as(tensor.type), shape);
    for (std::size_t i = 0; i < tensor.integers.size(); ++i)
      put_small(tensor.type, static_cast<unsigned>(tensor.integers[i]) & ((1u << bits(tensor.type)) - 1), out, i);
    return out;
  }
  switch (tensor.type) {
    case ElementType::boolean: {
      HostArray out = from_integers<std::uint8_t>(tensor, shape);
      for (std::uint8_t& each : out.mutable_view<std::uint8_t>()) each = each != 0;
      return out;
    }
    case ElementType::u8:
    case ElementType::i8: return from_integers<std::uint8_t>(tensor, shape);
    case ElementType::u16:
    case ElementType::i16:
    case ElementType::f16:
    case ElementType::bf16: return from_integers<std::uint16_t>(tensor, shape);
    case ElementType::u32:
    case ElementType::i32: return from_integers<std::uint32_t>(tensor, shape);
    case ElementType::u64:
    case ElementType::i64: return from_integers<std::uint64_t>(tensor, shape);
    default: refuse(tensor, fmt::format("integer data for elements of {}", name(tensor.type)));
  }
}

FileDescriptor open_beneath(const std::filesystem::path& folder, const std::string& location) {
  const FileDescriptor parent(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (parent.get() < 0) return FileDescriptor(-1);
  open_how how{};
  how.flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  return FileDescriptor(static_cast<int>(::syscall(SYS_openat2, parent.get(), location.c_str(), &how, sizeof how)));
}

}  // namespace

ExternalData::ExternalData(std::filesystem::path folder) : folder_(folder.empty() ? "." : std::move(folder)) {}

std::vector<std::byte> ExternalData::read(const TensorProto& tensor, std::size_t bytes) const {
  const auto location = tensor.external.find("location");
  if (location == tensor.external.end() || location->second.empty())
    refuse(tensor, "its data is in another file, but the model does not say which");
  const std::string file(location->second);
  if (folder_.empty())
    throw Error(ErrorCode::failed_precondition,
                fmt::format("ONNX tensor '{}' is in the file '{}', and this model has no folder", printable(tensor.name),
                            printable(file)),
                "load the model from a file that lies beside its data");
  const FileDescriptor fd = open_beneath(folder_, file);
  if (fd.get() < 0)
    throw Error(errno == ENOENT ? ErrorCode::not_found : ErrorCode::permission_denied,
                fmt::format("ONNX tensor '{}': the file '{}' cannot be opened beside the model: {}", printable(tensor.name),
                            printable(file), std::strerror(errno)),
                "data files must be regular files in the folder of the model, without links");
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_nlink != 1)
    throw Error(
        ErrorCode::permission_denied,
        fmt::format("ONNX tensor '{}': '{}' is not a regular file with one name", printable(tensor.name), printable(file)),
        "data files must be regular files in the folder of the model, without links");
  const std::uint64_t offset = number_in(tensor, "offset", 0), size = static_cast<std::uint64_t>(status.st_size);
  const std::uint64_t length = number_in(tensor, "length", bytes);
  if (length != bytes || offset > size || length > size - offset)
    refuse(tensor, fmt::format("{} bytes at {} of '{}', which has {}; the tensor needs {}", length, offset, printable(file), size,
                               bytes));
  std::vector<std::byte> out(bytes);
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t got = ::pread(fd.get(), out.data() + done, bytes - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) throw Error(ErrorCode::data_loss, fmt::format("ONNX: '{}' could not be read to its end", printable(file)));
    done += static_cast<std::size_t>(got);
  }
  return out;
}

Shape shape_of(const TensorProto& tensor) {
  if (tensor.dims.size() > kMaxRank)
    throw Error(ErrorCode::unimplemented, fmt::format("ONNX tensor '{}' has {} axes; at most {} are supported",
                                                      printable(tensor.name), tensor.dims.size(), kMaxRank));
  return Shape(tensor.dims);
}

HostArray array_of(const TensorProto& tensor, const ExternalData& external) {
  const Shape shape = shape_of(tensor);
  (void)held_as(tensor.type);
  if (tensor.is_external) return from_raw(tensor, shape, external.read(tensor, stored_bytes(tensor.type, shape.elements())));
  if (tensor.has_raw) return from_raw(tensor, shape, tensor.raw);
  if (tensor.type == ElementType::f32) {
    expect_count(tensor, shape, tensor.floats.size());
    return HostArray::from<float>(shape, std::span<const float>(tensor.floats));
  }
  if (tensor.type == ElementType::f64) {
    expect_count(tensor, shape, tensor.doubles.size());
    return HostArray::from<double>(shape, std::span<const double>(tensor.doubles));
  }
  return from_integer_field(tensor, shape);
}

}  // namespace tenon::onnx

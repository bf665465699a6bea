#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "array/io/byte_source.h"
#include "tenon/array/io.h"
#include "tenon/error.h"

namespace tenon {
namespace {

enum class FileFormat : std::uint8_t { npy, npz, safetensors, csv, unknown };

FileFormat format_of(std::span<const std::byte> start) {
  const std::string_view text(reinterpret_cast<const char*>(start.data()), start.size());
  if (text.starts_with("\x93NUMPY")) return FileFormat::npy;
  if (text.starts_with("PK\x03\x04") || text.starts_with("PK\x05\x06")) return FileFormat::npz;
  if (text.size() > 8 && text[8] == '{' && text.substr(4, 4) == std::string_view("\0\0\0\0", 4)) return FileFormat::safetensors;
  const auto is_text = [](char c) { return (c >= ' ' && c < 127) || c == '\n' || c == '\r' || c == '\t' || (c & 0x80) != 0; };
  return !text.empty() && std::ranges::all_of(text, is_text) ? FileFormat::csv : FileFormat::unknown;
}

[[noreturn]] void refuse(const std::string& label) {
  throw Error(ErrorCode::invalid_argument, label + " is no .npy, .npz, .safetensors or CSV file", "numpy.save writes .npy files");
}

}  // namespace

ArrayFile load_arrays(const std::filesystem::path& file) {
  std::array<std::byte, 64> start{};
  std::size_t size = 0;
  {
    const std::unique_ptr<ByteSource> source = open_source(file);
    size = static_cast<std::size_t>(std::min<std::uint64_t>(start.size(), source->size()));
    source->read(0, std::span(start).first(size));
  }
  ArrayFile contents;
  switch (format_of(std::span(start).first(size))) {
    case FileFormat::npy: contents.arrays.emplace("", load_npy(file)); return contents;
    case FileFormat::npz: return load_npz(file);
    case FileFormat::safetensors: return load_safetensors(file);
    case FileFormat::csv: contents.arrays.emplace("", load_csv(file)); return contents;
    case FileFormat::unknown: break;
  }
  refuse(fmt::format("'{}'", file.string()));
}

ArrayFile parse_arrays(std::span<const std::byte> bytes) {
  ArrayFile contents;
  switch (format_of(bytes.first(std::min<std::size_t>(bytes.size(), 64)))) {
    case FileFormat::npy: contents.arrays.emplace("", parse_npy(bytes)); return contents;
    case FileFormat::npz: return parse_npz(bytes);
    case FileFormat::safetensors: return parse_safetensors(bytes);
    case FileFormat::csv:
      contents.arrays.emplace("", parse_csv({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
      return contents;
    case FileFormat::unknown: break;
  }
  refuse("the file");
}

void save_arrays(const std::filesystem::path& file, const ArrayFile& contents) {
  const std::string extension = file.extension().string();
  if (extension == ".safetensors") return save_safetensors(file, contents);
  if (extension == ".npz") return save_npz(file, contents);
  if (extension != ".npy" && extension != ".csv")
    throw Error(ErrorCode::invalid_argument, fmt::format("cannot tell the file format of '{}'", file.string()),
                "use a name that ends in .npy, .npz, .safetensors or .csv");
  if (contents.arrays.size() != 1)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a {} file can store one tensor, but there are {}", extension, contents.arrays.size()),
                "use a name that ends in .npz or .safetensors");
  const HostArray& only = contents.arrays.begin()->second;
  return extension == ".npy" ? save_npy(file, only) : save_csv(file, only);
}

}  // namespace tenon

#include "array/io/safetensors/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <span>
#include <utility>

#include "array/convert.h"
#include "array/io/byte_source.h"
#include "tenon/array/io.h"
#include "tenon/error.h"

namespace tenon {
namespace {

constexpr std::uint64_t kLengthBytes = 8;
constexpr const char* kDamagedHint = "the file is damaged, incomplete, or no safetensors file; write or fetch it again";

[[noreturn]] void refuse(const ByteSource& source, const std::string& why) {
  throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}", source.label(), why), kDamagedHint);
}

void read_coded(const ByteSource& source, std::uint64_t at, const Minifloat& code, HostArray& array) {
  std::array<std::uint16_t, 256> values{};
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(code.decode(static_cast<std::uint8_t>(i))) >> 16);
  auto* to = reinterpret_cast<std::uint16_t*>(array.mutable_data());
  std::array<std::uint8_t, 1 << 14> block;
  for (auto left = static_cast<std::size_t>(array.elements()); left > 0;) {
    const std::size_t count = std::min(left, block.size());
    source.read(at, std::as_writable_bytes(std::span(block).first(count)));
    for (std::size_t i = 0; i < count; ++i) *to++ = values[block[i]];
    at += count;
    left -= count;
  }
}

ArrayFile read_safetensors(const ByteSource& source) {
  SafetensorsHeader header = read_safetensors_header(source);
  const std::uint64_t data_begin = header.data_begin;
  ArrayFile file{.arrays = {}, .metadata = std::move(header.metadata)};
  for (SafetensorsEntry& entry : header.entries) {
    HostArray array = HostArray::empty(entry.dtype, entry.shape);
    if (entry.code != nullptr)
      read_coded(source, data_begin + entry.begin, *entry.code, array);
    else
      source.read(data_begin + entry.begin, {array.mutable_data(), array.bytes()});
    if (array.dtype() == DType::boolean) normalize_booleans(array.mutable_data(), array.bytes());
    file.arrays.emplace(std::move(entry.name), std::move(array));
  }
  return file;
}

struct Prepared {
  std::string start;  // length and header
  std::vector<std::span<const std::byte>> parts;
};

// The parts point into |contents| and into start.
Prepared prepare(const ArrayFile& contents) {
  SafetensorsHeader header{.entries = {}, .metadata = contents.metadata};
  for (const auto& [name, array] : contents.arrays)
    header.entries.push_back({.name = name, .dtype = array.dtype(), .shape = array.shape()});
  const std::string json = format_safetensors_header(header);
  Prepared out;
  const std::uint64_t size = json.size();
  out.start.resize(kLengthBytes);
  std::memcpy(out.start.data(), &size, kLengthBytes);
  out.start += json;
  for (const SafetensorsEntry& entry : header.entries) {
    const HostArray& array = contents.arrays.find(entry.name)->second;
    out.parts.emplace_back(array.data(), array.bytes());
  }
  return out;
}

}  // namespace

SafetensorsHeader read_safetensors_header(const ByteSource& source) {
  if (source.size() < kLengthBytes) refuse(source, "this is not a safetensors file: it is shorter than 8 bytes");
  std::uint64_t header_size = 0;
  source.read(0, std::as_writable_bytes(std::span(&header_size, 1)));
  if (header_size > kMaxSafetensorsHeaderBytes)
    refuse(source,
           fmt::format("the header length is {} bytes, more than the limit of {}", header_size, kMaxSafetensorsHeaderBytes));
  if (header_size > source.size() - kLengthBytes) refuse(source, "the file ends inside its header");
  const std::uint64_t data_begin = kLengthBytes + header_size;
  try {
    std::string json(static_cast<std::size_t>(header_size), '\0');
    source.read(kLengthBytes, std::as_writable_bytes(std::span(json)));
    SafetensorsHeader header = parse_safetensors_header(json, source.size() - data_begin);
    header.data_begin = data_begin;
    return header;
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", source.label(), error.what()),
                error.hint().empty() ? kDamagedHint : error.hint());
  }
}

ArrayFile load_safetensors(const std::filesystem::path& file) { return read_safetensors(*open_source(file)); }

ArrayFile parse_safetensors(std::span<const std::byte> bytes) {
  return read_safetensors(MemorySource(bytes, "safetensors data"));
}

void save_safetensors(const std::filesystem::path& file, const ArrayFile& contents) {
  Prepared prepared = prepare(contents);
  prepared.parts.insert(prepared.parts.begin(), std::as_bytes(std::span(prepared.start)));
  write_file(file, prepared.parts);
}

std::vector<std::byte> format_safetensors(const ArrayFile& contents) {
  const Prepared prepared = prepare(contents);
  const auto start = std::as_bytes(std::span(prepared.start));
  std::size_t size = start.size();
  for (std::span<const std::byte> part : prepared.parts) size += part.size();
  std::vector<std::byte> out;
  out.reserve(size);
  out.assign(start.begin(), start.end());
  for (std::span<const std::byte> part : prepared.parts) out.insert(out.end(), part.begin(), part.end());
  return out;
}

}  // namespace tenon

// Strict parsing of the header of a safetensors file, checked against the size of the data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "array/codec/minifloat.h"
#include "array/io/byte_source.h"
#include "tenon/array/dtype.h"
#include "tenon/array/shape.h"

namespace tenon {

// The limit of the format's own reader.
inline constexpr std::uint64_t kMaxSafetensorsHeaderBytes = 100'000'000;

struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::f32;         // a block format if the metadata says so
  Shape shape;                      // of the array, not of its tile bytes
  const Minifloat* code = nullptr;  // each element is a byte of this format; the array has the same values in |dtype|
  std::uint64_t begin = 0;          // bytes from the start of the data
  std::uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in the order of their data
  std::map<std::string, std::string, std::less<>> metadata;
  std::uint64_t data_begin = 0;  // of the data in the file
};

// The header of a file, without its data. Throws as the next.
SafetensorsHeader read_safetensors_header(const ByteSource& source);

// Throws invalid_argument, or unimplemented for an unsupported element type, unless the tensors cover |data_bytes|
// exactly, without holes or overlaps, and each has the size of its shape.
SafetensorsHeader parse_safetensors_header(std::string_view json, std::uint64_t data_bytes);

// Lays out the entries (whose begin and end are ignored) by element size, so that every array is aligned to its
// elements, and returns the JSON, padded with spaces to a multiple of 8. Entries end up in the order of their data.
std::string format_safetensors_header(SafetensorsHeader& header);

}  // namespace tenon

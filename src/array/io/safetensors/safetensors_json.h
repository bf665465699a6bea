// The JSON of a safetensors header, before sizes and offsets are checked.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>

#include "tenon/array/shape.h"

namespace tenon {

struct SafetensorsRecord {
  std::string name;
  std::string dtype;
  std::array<std::int64_t, kMaxRank> dims{};
  int rank = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

struct SafetensorsJson {
  std::deque<SafetensorsRecord> records;  // in the order of the text; names may still be duplicates
  std::map<std::string, std::string, std::less<>> metadata;
};

// Refuses, with invalid_argument, everything except an object of tensors {dtype, shape, data_offsets} and at most one
// __metadata__ of strings. No tree is built, so hostile text cannot use more memory than its size allows.
SafetensorsJson parse_safetensors_json(std::string_view text);

}  // namespace tenon

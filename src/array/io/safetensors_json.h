// The JSON of a safetensors header as it stands, before sizes and offsets are checked.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>

#include "tenon/shape.h"

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
  std::deque<SafetensorsRecord> records;  // in the order of the text; names are not yet known to be different
  std::map<std::string, std::string, std::less<>> metadata;
};

// Refuses, with invalid_argument, everything but an object of tensors {dtype, shape, data_offsets} and at most one
// __metadata__ of strings. No tree is built, so a hostile text costs no more memory than its size allows.
SafetensorsJson parse_safetensors_json(std::string_view text);

}  // namespace tenon

// Numbers given to an op that are integers, with all their bits.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

#include "tenon/ops.h"

namespace tenon {

// The value of a number parameter if it is an integer of 64 bits, exact if it was given as one.
inline std::optional<std::int64_t> whole_number(const OpCall& call, std::string_view name) {
  const double value = call.number(name);
  if (value != std::floor(value) || std::abs(value) > 0x1p63) return std::nullopt;
  return call.integer(name);
}

// Whether a double holds |value|.
inline bool is_exact_double(std::int64_t value) { return value >= -(std::int64_t{1} << 53) && value <= std::int64_t{1} << 53; }

}  // namespace tenon

// Elements as keys, and the parts of a kernel that the sorting kernels share.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "codegen/c/body.h"

namespace tenon::emit {

// |text| with every $NAME replaced by its value.
std::string filled(std::string_view text, const std::map<std::string, std::string>& values);

struct Keys {
  DType stored;
  bool descending;
  int used_bits;  // the lower ones; all others are zero

  int bits() const { return static_cast<int>(element_bytes(stored)) * 8; }
  int passes() const { return (used_bits + 7) / 8; }
  std::string type() const { return bits() == 64 ? "u64" : "u32"; }
  // Defines key_of(element), element_of(key), and is_ambiguous(key): whether several bit patterns have this key (zeros, NaNs).
  std::string functions() const;
};

// Work-items of a sorting work-group.
inline constexpr int kSortThreads = 256;

// Defines t, lane and warp, and total_before(value, sum): a running sum over the work-group, exclusive, and its total.
std::string group_text();
// Defines rank_keys(key, rank, shift): the places of ITEMS keys of each work-item in the order of eight bits, stable. Item k of
// a lane is number (warp * ITEMS + k) * 32 + lane. Needs the enum ITEMS, type KEY and group_text(). Leaves in digit_starts where
// each digit starts.
std::string rank_text();

}  // namespace tenon::emit

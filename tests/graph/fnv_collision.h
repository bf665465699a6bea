// Two constants of 34 int64 that have one 64-bit FNV-1a hash: what executables were found by once, and why they no longer are.
//
// FNV-1a is linear but for the low byte of its state, so that a collision is a short vector of a lattice; LLL finds one in
// seconds.
#pragma once

#include <array>
#include <cstdint>

#include "tenon/array.h"

namespace tenon::test {

using Colliding = std::array<std::int64_t, 34>;

inline Colliding colliding(bool second) {
  Colliding values{};
  for (std::size_t i = 0; i < 32; ++i) values[i] = static_cast<std::int64_t>(i);
  values[32] = second ? 419207941500284088 : 1815637710851563966;
  values[33] = second ? 1627059369471003785 : 786027553881808271;
  return values;
}

inline HostArray colliding_array(bool second) { return HostArray::from<std::int64_t>({34}, colliding(second)); }

inline std::uint64_t fnv1a(const HostArray& array) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (std::size_t i = 0; i < array.bytes(); ++i) hash = (hash ^ static_cast<std::uint64_t>(array.data()[i])) * 0x100000001b3;
  return hash;
}

}  // namespace tenon::test

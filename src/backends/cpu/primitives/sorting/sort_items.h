// What sorting and selection work on: unsigned keys in the requested order, each with the index that breaks ties.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "tenon/array/dtype.h"

namespace tenon::cpu {

template <class T>
using KeyBits = std::conditional_t<
    sizeof(T) == 1, std::uint8_t,
    std::conditional_t<sizeof(T) == 2, std::uint16_t, std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;

// An unsigned key with the requested order: the order of negative numbers is reversed, both zeros are equal, NaNs are last in
// either direction.
template <class T>
KeyBits<T> key_of(T value, bool descending) {
  using U = KeyBits<T>;
  constexpr U kSign = static_cast<U>(U{1} << (8 * sizeof(T) - 1));
  if constexpr (std::is_floating_point_v<T>) {
    if (value != value) return static_cast<U>(~U{0});
    const U bits = std::bit_cast<U>(value == T{} ? T{} : value);
    const U key = static_cast<U>((bits & kSign) ? ~bits : bits | kSign);
    return descending ? static_cast<U>(~key) : key;
  } else {
    const U bits = static_cast<U>(value);
    const U key = std::is_signed_v<T> ? static_cast<U>(bits ^ kSign) : bits;
    return descending ? static_cast<U>(~key) : key;
  }
}

// Keys of up to 32 bits share a word with the index.
struct NarrowItem {
  std::uint64_t word;
  static NarrowItem make(std::uint64_t key, std::int64_t index) { return {key << 32 | static_cast<std::uint64_t>(index)}; }
  std::uint64_t key() const { return word >> 32; }
  std::int64_t index() const { return static_cast<std::int64_t>(word & 0xffffffffu); }
  friend bool operator<(const NarrowItem& a, const NarrowItem& b) { return a.word < b.word; }
};
struct WideItem {
  std::uint64_t bits;
  std::int64_t at;
  static WideItem make(std::uint64_t key, std::int64_t index) { return {key, index}; }
  std::uint64_t key() const { return bits; }
  std::int64_t index() const { return at; }
  friend bool operator<(const WideItem& a, const WideItem& b) { return a.bits != b.bits ? a.bits < b.bits : a.at < b.at; }
};

inline bool has_narrow_items(DType dtype, std::int64_t extent) {
  return element_bytes(dtype) <= 4 && extent < (std::int64_t{1} << 32);
}
inline std::size_t item_bytes(DType dtype, std::int64_t extent) {
  return has_narrow_items(dtype, extent) ? sizeof(NarrowItem) : sizeof(WideItem);
}

}  // namespace tenon::cpu

// DType: the element types of tensors, their sizes, names, and the promotion table.
//
// Types have NumPy's names where NumPy has them ("float32"), and short aliases ("f32", "bf16"). In the block formats
// bfloat8_b and bfloat4_b, 16 adjacent elements of a row share an exponent, so they have no size per element.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace tenon {

enum class DType : std::uint8_t {
  boolean,
  u8,
  u16,
  u32,
  u64,
  i8,
  i16,
  i32,
  i64,
  f16,
  bf16,
  f32,
  f64,
  bfloat8_b,
  bfloat4_b,
};
inline constexpr int kDTypeCount = 15;

std::string_view name(DType dtype) noexcept;                       // "float32"
std::optional<DType> parse_dtype(std::string_view text) noexcept;  // full names and aliases, case-insensitive
std::span<const DType> all_dtypes() noexcept;

constexpr bool is_block(DType d) noexcept { return d == DType::bfloat8_b || d == DType::bfloat4_b; }
constexpr bool is_float(DType d) noexcept { return d >= DType::f16; }  // block formats included
constexpr bool is_signed_integer(DType d) noexcept { return d >= DType::i8 && d <= DType::i64; }
constexpr bool is_unsigned_integer(DType d) noexcept { return d >= DType::u8 && d <= DType::u64; }
constexpr bool is_integer(DType d) noexcept { return d >= DType::u8 && d <= DType::i64; }

// Bytes of one element; 0 for the block formats (see storage_bytes in array.h).
constexpr std::size_t element_bytes(DType d) noexcept {
  constexpr std::uint8_t bytes[] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 0, 0};
  return bytes[static_cast<int>(d)];
}

// The type in which values of |d| are computed: f32 for f16, bf16 and the block formats, otherwise |d| itself. Rounding to |d|
// happens once, where a result leaves the program or at an explicit cast.
constexpr DType compute_dtype(DType d) noexcept { return (d == DType::f16 || d == DType::bf16 || is_block(d)) ? DType::f32 : d; }

// The smallest type that both operands convert to (docs/dtypes.md has the table):
// bool < integers < block formats < f16, bf16 < f32 < f64. Integers promote as in NumPy (u8 + i8 = i16, u64 + signed = f64);
// an integer with a float gives the float's type; f16 with bf16 or a block format gives f32.
DType promote(DType a, DType b) noexcept;

// Maps C++ types to DTypes.
template <class T>
struct DTypeOf;
template <>
struct DTypeOf<bool> {
  static constexpr DType value = DType::boolean;
};
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType value = DType::u8;
};
template <>
struct DTypeOf<std::uint16_t> {
  static constexpr DType value = DType::u16;
};
template <>
struct DTypeOf<std::uint32_t> {
  static constexpr DType value = DType::u32;
};
template <>
struct DTypeOf<std::uint64_t> {
  static constexpr DType value = DType::u64;
};
template <>
struct DTypeOf<std::int8_t> {
  static constexpr DType value = DType::i8;
};
template <>
struct DTypeOf<std::int16_t> {
  static constexpr DType value = DType::i16;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct DTypeOf<std::int64_t> {
  static constexpr DType value = DType::i64;
};
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::f64;
};
template <class T>
inline constexpr DType dtype_of = DTypeOf<T>::value;

}  // namespace tenon

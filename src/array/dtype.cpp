#include "tenon/array/dtype.h"

#include <algorithm>
#include <array>

namespace tenon {
namespace {

constexpr std::array<DType, kDTypeCount> kAll{DType::boolean, DType::u8,  DType::u16, DType::u32,       DType::u64,
                                              DType::i8,      DType::i16, DType::i32, DType::i64,       DType::f16,
                                              DType::bf16,    DType::f32, DType::f64, DType::bfloat8_b, DType::bfloat4_b};

constexpr std::array<std::string_view, kDTypeCount> kNames{"bool",     "uint8",   "uint16",  "uint32",    "uint64",
                                                           "int8",     "int16",   "int32",   "int64",     "float16",
                                                           "bfloat16", "float32", "float64", "bfloat8_b", "bfloat4_b"};

struct Alias {
  std::string_view text;
  DType dtype;
};
constexpr Alias kAliases[] = {
    {"boolean", DType::boolean},  {"u8", DType::u8},
    {"byte", DType::u8},          {"u16", DType::u16},
    {"u32", DType::u32},          {"uint", DType::u32},
    {"u64", DType::u64},          {"i8", DType::i8},
    {"i16", DType::i16},          {"short", DType::i16},
    {"i32", DType::i32},          {"int", DType::i32},
    {"i64", DType::i64},          {"long", DType::i64},
    {"f16", DType::f16},          {"fp16", DType::f16},
    {"half", DType::f16},         {"bf16", DType::bf16},
    {"f32", DType::f32},          {"fp32", DType::f32},
    {"float", DType::f32},        {"single", DType::f32},
    {"f64", DType::f64},          {"fp64", DType::f64},
    {"double", DType::f64},       {"bfp8_b", DType::bfloat8_b},
    {"bfp8", DType::bfloat8_b},   {"bf8_b", DType::bfloat8_b},
    {"bfp4_b", DType::bfloat4_b}, {"bfp4", DType::bfloat4_b},
    {"bf4_b", DType::bfloat4_b},
};

constexpr char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool same_text(std::string_view a, std::string_view b) noexcept {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}

constexpr DType signed_of_bytes(std::size_t bytes) noexcept {
  switch (bytes) {
    case 1: return DType::i8;
    case 2: return DType::i16;
    case 4: return DType::i32;
    default: return DType::i64;
  }
}

constexpr DType promote_integers(DType a, DType b) noexcept {
  const std::size_t a_bytes = element_bytes(a), b_bytes = element_bytes(b);
  if (is_signed_integer(a) == is_signed_integer(b)) return a_bytes >= b_bytes ? a : b;
  const DType with_sign = is_signed_integer(a) ? a : b;
  const std::size_t signed_bytes = element_bytes(with_sign), unsigned_bytes = a_bytes + b_bytes - signed_bytes;
  if (signed_bytes > unsigned_bytes) return with_sign;
  return unsigned_bytes == 8 ? DType::f64 : signed_of_bytes(2 * unsigned_bytes);
}

constexpr DType promote_floats(DType a, DType b) noexcept {
  if (a == DType::f64 || b == DType::f64) return DType::f64;
  if (a == DType::f32 || b == DType::f32) return DType::f32;
  if (a == DType::f16 || b == DType::f16) return DType::f32;  // the other type has a wider exponent
  if (a == DType::bf16 || b == DType::bf16) return DType::bf16;
  return DType::bfloat8_b;
}

constexpr auto kPromotions = [] {
  std::array<std::array<DType, kDTypeCount>, kDTypeCount> table{};
  for (DType a : kAll)
    for (DType b : kAll) {
      DType result = a;
      if (a == b || b == DType::boolean)
        result = a;
      else if (a == DType::boolean)
        result = b;
      else if (is_float(a) && is_float(b))
        result = promote_floats(a, b);
      else if (is_float(a) || is_float(b))
        result = is_float(a) ? a : b;
      else
        result = promote_integers(a, b);
      table[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)] = result;
    }
  return table;
}();

}  // namespace

std::string_view name(DType dtype) noexcept { return kNames[static_cast<std::size_t>(dtype)]; }

std::optional<DType> parse_dtype(std::string_view text) noexcept {
  for (DType dtype : kAll)
    if (same_text(text, name(dtype))) return dtype;
  for (const Alias& alias : kAliases)
    if (same_text(text, alias.text)) return alias.dtype;
  return std::nullopt;
}

std::span<const DType> all_dtypes() noexcept { return kAll; }

DType promote(DType a, DType b) noexcept { return kPromotions[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)]; }

}  // namespace tenon

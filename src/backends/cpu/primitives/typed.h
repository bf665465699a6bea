// Dispatches from a DType known at run time to the C++ type that stores it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "tenon/array/dtype.h"
#include "tenon/error.h"

namespace tenon::cpu {

// Calls f with a value of the C++ type that stores |dtype|, a compute type; bool is u8.
template <class F>
decltype(auto) with_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::boolean:
    case DType::u8: return f(std::uint8_t{});
    case DType::u16: return f(std::uint16_t{});
    case DType::u32: return f(std::uint32_t{});
    case DType::u64: return f(std::uint64_t{});
    case DType::i8: return f(std::int8_t{});
    case DType::i16: return f(std::int16_t{});
    case DType::i32: return f(std::int32_t{});
    case DType::i64: return f(std::int64_t{});
    case DType::f32: return f(float{});
    case DType::f64: return f(double{});
    default: throw Error(ErrorCode::internal, "the CPU does not compute in " + std::string(name(dtype)));
  }
}

// Calls f with an unsigned integer of |bytes|.
template <class F>
decltype(auto) with_bytes(std::int64_t bytes, F&& f) {
  switch (bytes) {
    case 1: return f(std::uint8_t{});
    case 2: return f(std::uint16_t{});
    case 4: return f(std::uint32_t{});
    case 8: return f(std::uint64_t{});
    default: throw Error(ErrorCode::internal, "elements of " + std::to_string(bytes) + " bytes cannot be moved individually");
  }
}

// Calls f with an unsigned integer as wide as an element of |dtype|: for code that only moves elements. f16 and bf16 included.
template <class F>
decltype(auto) with_size(DType dtype, F&& f) {
  return with_bytes(static_cast<std::int64_t>(element_bytes(dtype)), std::forward<F>(f));
}

template <class T>
constexpr bool is_nan(T value) {
  return value != value;
}

}  // namespace tenon::cpu

#include "array/convert.h"

#include <cstring>

#include "tenon/error.h"

namespace tenon {
namespace {

template <class To, class From>
void convert_loop(const void* in, void* out, std::int64_t n) {
  const auto* source = static_cast<const From*>(in);
  auto* target = static_cast<To*>(out);
  for (std::int64_t i = 0; i < n; ++i) target[i] = convert_element<To>(source[i]);
}

// Calls visit with a value of the C++ type that stores |dtype|.
template <class Visit>
void with_storage_type(DType dtype, Visit visit) {
  switch (dtype) {
    case DType::boolean: return visit(Bool{});
    case DType::u8: return visit(std::uint8_t{});
    case DType::u16: return visit(std::uint16_t{});
    case DType::u32: return visit(std::uint32_t{});
    case DType::u64: return visit(std::uint64_t{});
    case DType::i8: return visit(std::int8_t{});
    case DType::i16: return visit(std::int16_t{});
    case DType::i32: return visit(std::int32_t{});
    case DType::i64: return visit(std::int64_t{});
    case DType::f16: return visit(Half{});
    case DType::bf16: return visit(BFloat16{});
    case DType::f32: return visit(float{});
    case DType::f64: return visit(double{});
    case DType::bfloat8_b:
    case DType::bfloat4_b: break;
  }
  throw Error(ErrorCode::internal, "block formats cannot be converted element by element");
}

}  // namespace

void convert_elements(DType from, const void* in, DType to, void* out, std::int64_t n) {
  if (from == to && !is_block(from)) {
    if (in != out && n > 0) std::memcpy(out, in, static_cast<std::size_t>(n) * element_bytes(from));
    return;
  }
  with_storage_type(from, [&](auto source) {
    with_storage_type(to, [&](auto target) { convert_loop<decltype(target), decltype(source)>(in, out, n); });
  });
}

void normalize_booleans(void* bytes, std::size_t n) noexcept {
  auto* const values = static_cast<std::uint8_t*>(bytes);
  for (std::size_t i = 0; i < n; ++i) values[i] = values[i] != 0 ? 1 : 0;
}

}  // namespace tenon

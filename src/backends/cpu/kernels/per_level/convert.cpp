// Conversions between the storage types: the rules of array/convert.h, in loops the compiler vectorises, with instructions for
// f16 where there are some. Compiled once per instruction set (kernels.cmake).
//
// The rules are included into an unnamed namespace, so that this file's copies of them are its own; what they include themselves
// comes first.
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/lanes.h"
#include "backends/cpu/kernels/level.h"

// The loops over the rules, declared there, are not for this file.
#pragma GCC diagnostic ignored "-Wunused-function"

namespace tenon::cpu {
namespace {

#include "array/convert.h"

using tenon::BFloat16;
using tenon::Bool;
using tenon::Half;

#if TENON_CPU_LEVEL >= 3
// Two vectors rounded to bf16, as convert_element does: in words whose upper halves count, of which the instructions then take
// those of both vectors in order.
TENON_INLINE Uint32V rounded_to_bf16(const float* p) {
  Uint32V bits;
  __builtin_memcpy(&bits, p, sizeof bits);
  const Uint32V nearest = bits + 0x7fffu + ((bits >> 16) & 1u);
  const auto is_nan = (Int32V)((FloatV)bits != (FloatV)bits);
  return (Uint32V)(is_nan ? (Int32V)(bits | 0x0040'0000u) : (Int32V)nearest);
}
TENON_INLINE void store_bf16(const float* in, BFloat16* out) {
  const Uint32V first = rounded_to_bf16(in), second = rounded_to_bf16(in + kVectorBytes / 4);
#if TENON_CPU_LEVEL == 4
  alignas(64) static constexpr std::uint16_t kUpperHalves[32] = {1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31,
                                                                 33, 35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
  _mm512_storeu_si512(out, _mm512_permutex2var_epi16((__m512i)first, _mm512_load_si512(kUpperHalves), (__m512i)second));
#else
  const __m256i packed = _mm256_packus_epi32((__m256i)(first >> 16), (__m256i)(second >> 16));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm256_permute4x64_epi64(packed, 0xd8));
#endif
}
#endif

template <class From, class To>
void convert(const void* in, void* out, std::int64_t n) {
  const auto* source = static_cast<const From*>(in);
  auto* target = static_cast<To*>(out);
  std::int64_t i = 0;
#if TENON_CPU_LEVEL == 4
  if constexpr (std::is_same_v<From, Half> && std::is_same_v<To, float>)
    for (; i + 16 <= n; i += 16)
      _mm512_storeu_ps(target + i, _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(source + i))));
  if constexpr (std::is_same_v<From, float> && std::is_same_v<To, Half>)
    for (; i + 16 <= n; i += 16)
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(target + i), _mm512_cvtps_ph(_mm512_loadu_ps(source + i), 0));
#elif TENON_CPU_LEVEL == 3
  if constexpr (std::is_same_v<From, Half> && std::is_same_v<To, float>)
    for (; i + 8 <= n; i += 8)
      _mm256_storeu_ps(target + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(source + i))));
  if constexpr (std::is_same_v<From, float> && std::is_same_v<To, Half>)
    for (; i + 8 <= n; i += 8)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(target + i), _mm256_cvtps_ph(_mm256_loadu_ps(source + i), 0));
#endif
#if TENON_CPU_LEVEL >= 3
  if constexpr (std::is_same_v<From, float> && std::is_same_v<To, BFloat16>)
    for (; i + kVectorBytes / 2 <= n; i += kVectorBytes / 2) store_bf16(source + i, target + i);
#endif
  TENON_INDEPENDENT
  for (; i < n; ++i) target[i] = tenon::convert_element<To>(source[i]);
}

// In the order of DType.
template <class From>
void add_row(ConvertKernel (&row)[kStorageTypes]) {
  ConvertKernel kernels[] = {convert<From, Bool>,          convert<From, std::uint8_t>,  convert<From, std::uint16_t>,
                             convert<From, std::uint32_t>, convert<From, std::uint64_t>, convert<From, std::int8_t>,
                             convert<From, std::int16_t>,  convert<From, std::int32_t>,  convert<From, std::int64_t>,
                             convert<From, Half>,          convert<From, BFloat16>,      convert<From, float>,
                             convert<From, double>};
  for (int i = 0; i < kStorageTypes; ++i) row[i] = kernels[i];
}

}  // namespace

void level::add_convert_kernels(Kernels& table) {
  ConvertKernel(*row)[kStorageTypes] = table.convert;
  add_row<Bool>(*row++);
  add_row<std::uint8_t>(*row++);
  add_row<std::uint16_t>(*row++);
  add_row<std::uint32_t>(*row++);
  add_row<std::uint64_t>(*row++);
  add_row<std::int8_t>(*row++);
  add_row<std::int16_t>(*row++);
  add_row<std::int32_t>(*row++);
  add_row<std::int64_t>(*row++);
  add_row<Half>(*row++);
  add_row<BFloat16>(*row++);
  add_row<float>(*row++);
  add_row<double>(*row++);
}

}  // namespace tenon::cpu

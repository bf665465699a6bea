// Vector registers as bytes, for kernels that only move elements. Included by files that are compiled once per instruction set.
#pragma once

#include "backends/cpu/kernels/lanes.h"

namespace tenon::cpu {
namespace {

template <int Bytes>
struct Element;
template <>
struct Element<1> {
  using Type = std::uint8_t;
};
template <>
struct Element<2> {
  using Type = std::uint16_t;
};
template <>
struct Element<4> {
  using Type = std::uint32_t;
};
template <>
struct Element<8> {
  using Type = std::uint64_t;
};

// One vector at a time: rows are often short.
#if defined(__clang__)
#define TENON_PLAIN_LOOP _Pragma("clang loop interleave_count(1) unroll(disable)")
#else
#define TENON_PLAIN_LOOP
#endif

// Fills the vector, or line, with elements like that at |value|.
template <class T, class Line>
void repeat_element(const void* value, Line& line) {
  T element, elements[sizeof(Line) / sizeof(T)];
  __builtin_memcpy(&element, value, sizeof element);
  for (T& e : elements) e = element;
  __builtin_memcpy(&line, elements, sizeof line);
}
#if TENON_CPU_LEVEL > 0
#if TENON_CPU_LEVEL == 4
using Register = __m512i;
TENON_INLINE Register get(const char* p) { return _mm512_loadu_si512(p); }
TENON_INLINE void put(char* p, Register x) { _mm512_storeu_si512(p, x); }
TENON_INLINE void put_streaming(char* p, Register x) { _mm512_stream_si512(reinterpret_cast<__m512i*>(p), x); }
#define TENON_UNPACK(half, bits) _mm512_unpack##half##_epi##bits
#elif TENON_CPU_LEVEL == 3
using Register = __m256i;
TENON_INLINE Register get(const char* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
TENON_INLINE void put(char* p, Register x) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), x); }
TENON_INLINE void put_streaming(char* p, Register x) { _mm256_stream_si256(reinterpret_cast<__m256i*>(p), x); }
#define TENON_UNPACK(half, bits) _mm256_unpack##half##_epi##bits
#else
using Register = __m128i;
TENON_INLINE Register get(const char* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }
TENON_INLINE void put(char* p, Register x) { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), x); }
TENON_INLINE void put_streaming(char* p, Register x) { _mm_stream_si128(reinterpret_cast<__m128i*>(p), x); }
#define TENON_UNPACK(half, bits) _mm_unpack##half##_epi##bits
#endif
inline constexpr int kRegistersPerLine = 64 / kVectorBytes;  // of the cache

// The first |bytes| of a vector, and a copy of as many.
#if TENON_CPU_LEVEL == 4
TENON_INLINE __mmask64 lowest_bytes(std::size_t bytes) { return bytes == 0 ? 0 : ~std::uint64_t{0} >> (64 - bytes); }
TENON_INLINE void put_part(char* p, Register x, std::size_t bytes) { _mm512_mask_storeu_epi8(p, lowest_bytes(bytes), x); }
TENON_INLINE void copy_part(char* dst, const char* src, std::size_t bytes) {
  put_part(dst, _mm512_maskz_loadu_epi8(lowest_bytes(bytes), src), bytes);
}
#else
TENON_INLINE void put_part(char* p, Register x, std::size_t bytes) { __builtin_memcpy(p, &x, bytes); }
TENON_INLINE void copy_part(char* dst, const char* src, std::size_t bytes) { __builtin_memcpy(dst, src, bytes); }
#endif
#endif

}  // namespace
}  // namespace tenon::cpu

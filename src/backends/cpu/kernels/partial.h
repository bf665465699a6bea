// The last lanes of a row: vectors of which only the first elements exist. With AVX-512 by masks; elsewhere through a padded
// copy.
//
// Compiled once per instruction set, like lanes.h. Nothing beyond the elements that exist is read or written.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/lanes.h"

namespace tenon::cpu {
namespace {

#if TENON_CPU_LEVEL == 4
TENON_INLINE std::uint64_t first_bytes(std::int64_t bytes) { return (std::uint64_t{1} << bytes) - 1; }
#endif

// The first |bytes| from |p|, fewer than the vector has; the rest of |others|.
template <class Vector>
TENON_INLINE Vector load_first(const void* p, std::int64_t bytes, Vector others) {
#if TENON_CPU_LEVEL == 4
  const std::uint64_t mask = first_bytes(bytes);
  if constexpr (sizeof(Vector) == 64) {
    return (Vector)_mm512_mask_loadu_epi8((__m512i)others, mask, p);
  } else if constexpr (sizeof(Vector) == 32) {
    return (Vector)_mm256_mask_loadu_epi8((__m256i)others, static_cast<__mmask32>(mask), p);
  } else if constexpr (sizeof(Vector) == 16) {
    return (Vector)_mm_mask_loadu_epi8((__m128i)others, static_cast<__mmask16>(mask), p);
  } else {
    __m128i wide = _mm_setzero_si128();
    __builtin_memcpy(&wide, &others, sizeof others);
    wide = _mm_mask_loadu_epi8(wide, static_cast<__mmask16>(mask), p);
    __builtin_memcpy(&others, &wide, sizeof others);
    return others;
  }
#else
  __builtin_memcpy(&others, p, static_cast<std::size_t>(bytes));
  return others;
#endif
}

// The first |bytes| of |v|, fewer than it has, to |p|.
template <class Vector>
TENON_INLINE void store_first(void* p, std::int64_t bytes, Vector v) {
#if TENON_CPU_LEVEL == 4
  const std::uint64_t mask = first_bytes(bytes);
  if constexpr (sizeof(Vector) == 64) {
    _mm512_mask_storeu_epi8(p, mask, (__m512i)v);
  } else if constexpr (sizeof(Vector) == 32) {
    _mm256_mask_storeu_epi8(p, static_cast<__mmask32>(mask), (__m256i)v);
  } else {
    __m128i wide = _mm_setzero_si128();
    __builtin_memcpy(&wide, &v, sizeof v);
    _mm_mask_storeu_epi8(p, static_cast<__mmask16>(mask), wide);
  }
#else
  __builtin_memcpy(p, &v, static_cast<std::size_t>(bytes));
#endif
}

}  // namespace
}  // namespace tenon::cpu

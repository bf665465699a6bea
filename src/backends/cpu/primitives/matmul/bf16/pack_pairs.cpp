#include "backends/cpu/primitives/matmul/bf16/pack_pairs.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#if defined(__x86_64__) && defined(__linux__)
#include <immintrin.h>
#define TENON_HAS_AVX512_PACKING 1
#endif

namespace tenon::cpu::bf16 {

template <int Width>
void pack_pairs_plainly(const Lines& lines, std::int64_t pairs, std::uint16_t* to) {
  const auto [from, line_stride, step_stride, count, steps] = lines;
  if (count < Width || steps < 2 * pairs) std::memset(to, 0, static_cast<std::size_t>(pairs * Width) * 2 * sizeof(*to));
  if (step_stride == 1) {
    // A square of 8 lines and 8 pairs at a time, so that neither side leaves the L1 cache.
    for (std::int64_t first = 0; first < steps / 2; first += 8)
      for (std::int64_t l = 0; l < count; ++l)
        for (std::int64_t p = first; p < std::min(first + 8, steps / 2); ++p)
          std::memcpy(to + (p * Width + l) * 2, from + l * line_stride + 2 * p, 2 * sizeof(*to));
  } else {
    for (std::int64_t p = 0; p < steps / 2; ++p)
      for (std::int64_t l = 0; l < count; ++l)
        for (std::int64_t half = 0; half < 2; ++half)
          to[(p * Width + l) * 2 + half] = from[l * line_stride + (2 * p + half) * step_stride];
  }
  if (steps % 2 != 0)
    for (std::int64_t l = 0; l < count; ++l) to[(steps / 2 * Width + l) * 2] = from[l * line_stride + (steps - 1) * step_stride];
}

#ifdef TENON_HAS_AVX512_PACKING
namespace {

bool has_avx512() {
  static const bool has = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
  return has;
}

__mmask16 first_of_16(std::int64_t n) { return static_cast<__mmask16>((1u << std::clamp<std::int64_t>(n, 0, 16)) - 1); }
__mmask32 first_of_32(std::int64_t n) {
  return static_cast<__mmask32>((std::uint64_t{1} << std::clamp<std::int64_t>(n, 0, 32)) - 1);
}

// Rows of 16 pairs become columns, in four rounds that exchange blocks of 1, 2, 4 and 8.
[[gnu::target("avx512f,avx512bw")]] inline void transpose(__m512i (&r)[16]) {
  __m512i t[16];
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xdd);
  }
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
    r[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd);
    r[i + 4] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0x88);
    r[i + 12] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0xdd);
  }
}

// Steps lie side by side in memory: 16 lines and 16 pairs are a square that is transposed.
template <int Width>
[[gnu::target("avx512f,avx512bw")]] void pack_transposed(const Lines& lines, std::int64_t pairs, std::uint16_t* to) {
  for (std::int64_t first = 0; first < Width; first += 16) {
    const std::int64_t count = std::min<std::int64_t>(16, lines.count - first);
    const __mmask16 stored = first_of_16(Width - first);
    for (std::int64_t pair = 0; pair < pairs; pair += 16) {
      const __mmask32 there = first_of_32(lines.steps - 2 * pair);
      const std::uint16_t* const from = lines.from + first * lines.line_stride + 2 * pair;
      __m512i square[16];
      for (int l = 0; l < 16; ++l)
        square[l] = l < count ? _mm512_maskz_loadu_epi16(there, from + l * lines.line_stride) : _mm512_setzero_si512();
      transpose(square);
      std::uint16_t* const out = to + (pair * Width + first) * 2;
      const auto most = static_cast<int>(std::min<std::int64_t>(16, pairs - pair));
      if (most == 16) {
        for (int p = 0; p < 16; ++p) _mm512_mask_storeu_epi32(out + p * Width * 2, stored, square[p]);
      } else {
        for (int p = 0; p < most; ++p) _mm512_mask_storeu_epi32(out + p * Width * 2, stored, square[p]);
      }
    }
  }
}

// low[0], high[0], low[1], high[1] ...
[[gnu::target("avx512f,avx512bw")]] inline __m512i interleaved(__m256i low, __m256i high) {
  return _mm512_or_si512(_mm512_cvtepu16_epi32(low), _mm512_slli_epi32(_mm512_cvtepu16_epi32(high), 16));
}

// Lines lie side by side in memory: those of two steps are interleaved.
template <int Width>
[[gnu::target("avx512f,avx512bw")]] void pack_interleaved(const Lines& lines, std::int64_t pairs, std::uint16_t* to) {
  const __mmask32 there = first_of_32(std::min<std::int64_t>(Width, lines.count));
  for (std::int64_t p = 0; p < pairs; ++p) {
    const std::uint16_t* const from = lines.from + 2 * p * lines.step_stride;
    const __m512i even = 2 * p < lines.steps ? _mm512_maskz_loadu_epi16(there, from) : _mm512_setzero_si512();
    const __m512i odd =
        2 * p + 1 < lines.steps ? _mm512_maskz_loadu_epi16(there, from + lines.step_stride) : _mm512_setzero_si512();
    std::uint16_t* const out = to + p * Width * 2;
    _mm512_mask_storeu_epi32(out, first_of_16(Width), interleaved(_mm512_castsi512_si256(even), _mm512_castsi512_si256(odd)));
    if constexpr (Width > 16)
      _mm512_mask_storeu_epi32(out + 32, first_of_16(Width - 16),
                               interleaved(_mm512_extracti64x4_epi64(even, 1), _mm512_extracti64x4_epi64(odd, 1)));
  }
}

}  // namespace

template <int Width>
void pack_pairs(const Lines& lines, std::int64_t pairs, std::uint16_t* to) {
  static_assert(Width <= 32);
  if (has_avx512() && lines.step_stride == 1) return pack_transposed<Width>(lines, pairs, to);
  if (has_avx512() && lines.line_stride == 1) return pack_interleaved<Width>(lines, pairs, to);
  pack_pairs_plainly<Width>(lines, pairs, to);
}

#else

template <int Width>
void pack_pairs(const Lines& lines, std::int64_t pairs, std::uint16_t* to) {
  pack_pairs_plainly<Width>(lines, pairs, to);
}

#endif

template void pack_pairs<14>(const Lines&, std::int64_t, std::uint16_t*);
template void pack_pairs<32>(const Lines&, std::int64_t, std::uint16_t*);
template void pack_pairs_plainly<14>(const Lines&, std::int64_t, std::uint16_t*);
template void pack_pairs_plainly<32>(const Lines&, std::int64_t, std::uint16_t*);

}  // namespace tenon::cpu::bf16

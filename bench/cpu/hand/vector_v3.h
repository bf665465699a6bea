// Eight floats in AVX2 registers. One of two files with the same names; hand_loops.h is written on top of either.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace bench::v3 {

using V = __m256;
inline constexpr std::int64_t kWidth = 8;

inline V load(const float* p) { return _mm256_load_ps(p); }
inline void store(float* p, V v) { _mm256_store_ps(p, v); }
inline void stream(float* p, V v) { _mm256_stream_ps(p, v); }
inline V set(float x) { return _mm256_set1_ps(x); }
inline V add(V a, V b) { return _mm256_add_ps(a, b); }
inline V mul(V a, V b) { return _mm256_mul_ps(a, b); }
// The divider works beside the multipliers: cheaper than an estimate of 1 / b with its corrections.
inline V divide(V a, V b) { return _mm256_div_ps(a, b); }
inline V fma(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }    // a * b + c
inline V fnma(V a, V b, V c) { return _mm256_fnmadd_ps(a, b, c); }  // c - a * b
inline V max(V a, V b) { return _mm256_max_ps(a, b); }              // b where either is NaN
inline V min(V a, V b) { return _mm256_min_ps(a, b); }
inline V round(V a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
inline constexpr float kExpMax = 88.0f;  // 2^n stays finite
// x * 2^n, n a whole number in [-126, 127].
inline V scale(V x, V n) {
  const __m256i exponent = _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23);
  return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(x), exponent));
}
// 1 / x to about 1 ULP: the 12-bit estimate and one Newton step.
inline V reciprocal(V x) {
  const V r = _mm256_rcp_ps(x);
  return mul(r, fnma(x, r, set(2.0f)));
}

// A 16 x 16 block as four of 8 x 8, the two halves of a line written together.
inline void transpose_8x8(V (&r)[8]) {
  V t[8], u[8];
  for (int i = 0; i < 4; ++i) {
    t[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
  }
  for (int i = 0; i < 2; ++i) {
    u[4 * i] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0x44);
    u[4 * i + 1] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0xEE);
    u[4 * i + 2] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0x44);
    u[4 * i + 3] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0xEE);
  }
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x20);
    r[i + 4] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x31);
  }
}
template <bool Stream>
inline void transpose_block(const float* in, float* out, std::int64_t stride) {
  for (int column = 0; column < 16; column += 8) {
    V low[8], high[8];
    for (int i = 0; i < 8; ++i) {
      low[i] = load(in + i * stride + column);
      high[i] = load(in + (i + 8) * stride + column);
    }
    transpose_8x8(low);
    transpose_8x8(high);
    for (int i = 0; i < 8; ++i) {
      float* line = out + (column + i) * stride;
      Stream ? stream(line, low[i]) : store(line, low[i]);
      Stream ? stream(line + 8, high[i]) : store(line + 8, high[i]);
    }
  }
}

}  // namespace bench::v3

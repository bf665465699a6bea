// Sixteen floats in AVX-512 registers. One of two files with the same names; hand_loops.h is written on top of either.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace bench::v4 {

using V = __m512;
inline constexpr std::int64_t kWidth = 16;

inline V load(const float* p) { return _mm512_load_ps(p); }
inline void store(float* p, V v) { _mm512_store_ps(p, v); }
inline void stream(float* p, V v) { _mm512_stream_ps(p, v); }
inline V set(float x) { return _mm512_set1_ps(x); }
inline V add(V a, V b) { return _mm512_add_ps(a, b); }
inline V mul(V a, V b) { return _mm512_mul_ps(a, b); }
// The divider works beside the multipliers: cheaper than an estimate of 1 / b with its corrections.
inline V divide(V a, V b) { return _mm512_div_ps(a, b); }
inline V fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }    // a * b + c
inline V fnma(V a, V b, V c) { return _mm512_fnmadd_ps(a, b, c); }  // c - a * b
inline V max(V a, V b) { return _mm512_max_ps(a, b); }              // b where either is NaN
inline V min(V a, V b) { return _mm512_min_ps(a, b); }
inline V round(V a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
inline constexpr float kExpMax = 88.8f;  // above: infinity, through scale()
// x * 2^n, n a whole number; overflow and underflow as for a product.
inline V scale(V x, V n) { return _mm512_scalef_ps(x, n); }
// 1 / x to about 1 ULP: the 14-bit estimate and one Newton step.
inline V reciprocal(V x) {
  const V r = _mm512_rcp14_ps(x);
  return mul(r, fnma(x, r, set(2.0f)));
}

// Four stages of pairwise exchanges: elements, pairs, then 128-bit lanes twice.
template <bool Stream>
inline void transpose_block(const float* in, float* out, std::int64_t stride) {
  V r[16], t[16];
  for (int i = 0; i < 16; ++i) r[i] = load(in + i * stride);
  for (int i = 0; i < 8; ++i) {
    t[2 * i] = _mm512_unpacklo_ps(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_ps(r[2 * i], r[2 * i + 1]);
  }
  for (int i = 0; i < 4; ++i) {
    r[4 * i] = _mm512_shuffle_ps(t[4 * i], t[4 * i + 2], 0x44);
    r[4 * i + 1] = _mm512_shuffle_ps(t[4 * i], t[4 * i + 2], 0xEE);
    r[4 * i + 2] = _mm512_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0x44);
    r[4 * i + 3] = _mm512_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0xEE);
  }
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0xDD);
    t[i + 8] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0xDD);
  }
  for (int i = 0; i < 8; ++i) {
    r[i] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0x88);
    r[i + 8] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0xDD);
  }
  for (int i = 0; i < 16; ++i) Stream ? stream(out + i * stride, r[i]) : store(out + i * stride, r[i]);
}

}  // namespace bench::v4

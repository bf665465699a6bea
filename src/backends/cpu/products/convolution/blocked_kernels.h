// The inner loops of blocked convolutions (conv_blocked.h): tiles of neighbouring places, sums in registers. AVX-512.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>

#include <cstdint>
#include <utility>

#include "backends/cpu/products/convolution/conv_blocked.h"

namespace tenon::cpu::blocked {

constexpr std::int64_t kBlock = kChannelBlock;
constexpr std::int64_t kPlaces = 14;  // of a tile
constexpr std::int64_t kNarrow = 9;   // rows of at most this many places take three blocks of channels at a time
constexpr std::int64_t kDepthwisePlaces = 8;

// Where the input and the weights of an element of the kernel are.
struct Tap {
  std::int32_t in, weights;
};

// One tile: neighbouring places of a row, and Blocks blocks of channels.
struct Tile {
  const float* in;    // the first place
  std::int64_t step;  // from a place to the next, in elements
  const Tap* taps;
  std::int64_t tap_count, whole_taps;  // the first |whole_taps| read |unit| neighbouring elements each, the others |last_unit|
  std::int64_t unit, last_unit;
  const float* weights;                // of the first block
  std::int64_t weight_step, out_step;  // from a block to the next
  std::int64_t place_step;             // of the result, from a place to the next
  // In this order: sums += before, sums = sums * scale + shift, sums += added, not below 0 if |relu|. |before| and |added| are at
  // the same places as |out|, |scale| and |shift| are [Blocks][16]. Each may be nullptr; |scale| stands for |shift| too.
  const float *before, *scale, *shift, *added;
  bool relu;
  float* out;
};
using Kernel = void (*)(const Tile& tile);

template <int Places, int Blocks>
[[gnu::target("avx512f"), gnu::always_inline]] inline void store(__m512 (&sum)[Places][Blocks], const Tile& tile) {
  _Pragma("GCC unroll 4") for (int b = 0; b < Blocks; ++b) {
    const std::int64_t place = b * tile.out_step;
    if (tile.before)
      _Pragma("GCC unroll 16") for (int p = 0; p < Places; ++p) sum[p][b] =
          _mm512_add_ps(sum[p][b], _mm512_loadu_ps(tile.before + place + p * tile.place_step));
    if (tile.scale) {
      const __m512 scale = _mm512_loadu_ps(tile.scale + b * kBlock), shift = _mm512_loadu_ps(tile.shift + b * kBlock);
      _Pragma("GCC unroll 16") for (int p = 0; p < Places; ++p) sum[p][b] = _mm512_fmadd_ps(sum[p][b], scale, shift);
    }
    if (tile.added)
      _Pragma("GCC unroll 16") for (int p = 0; p < Places; ++p) sum[p][b] =
          _mm512_add_ps(sum[p][b], _mm512_loadu_ps(tile.added + place + p * tile.place_step));
    // The second operand is the result if one is NaN.
    if (tile.relu)
      _Pragma("GCC unroll 16") for (int p = 0; p < Places; ++p) sum[p][b] = _mm512_max_ps(_mm512_setzero_ps(), sum[p][b]);
    _Pragma("GCC unroll 16") for (int p = 0; p < Places; ++p) _mm512_storeu_ps(tile.out + place + p * tile.place_step, sum[p][b]);
  }
}

// Places are addressed as base, base + step and base + 2 step, so that many of them need few registers.
template <int Places, int Blocks>
[[gnu::target("avx512f")]] void product(const Tile& tile) {
  constexpr int kBases = (Places + 2) / 3;
  __m512 sum[Places][Blocks];
  _Pragma("GCC unroll 16") for (int p = 0; p < Places; ++p) _Pragma("GCC unroll 4") for (int b = 0; b < Blocks; ++b) sum[p][b] =
      _mm512_setzero_ps();
  const std::int64_t step = tile.step, weight_step = tile.weight_step;
  for (std::int64_t t = 0; t < tile.tap_count; ++t) {
    const float* weights = tile.weights + tile.taps[t].weights;
    const float* base[kBases];
    base[0] = tile.in + tile.taps[t].in;
    _Pragma("GCC unroll 8") for (int b = 1; b < kBases; ++b) base[b] = base[b - 1] + 3 * step;
    const std::int64_t unit = t < tile.whole_taps ? tile.unit : tile.last_unit;
    for (std::int64_t i = 0; i < unit; ++i, weights += kBlock) {
      __m512 factor[Blocks];
      _Pragma("GCC unroll 4") for (int b = 0; b < Blocks; ++b) factor[b] = _mm512_loadu_ps(weights + b * weight_step);
      _Pragma("GCC unroll 16") for (int p = 0; p < Places; ++p) {
        const __m512 value = _mm512_set1_ps(base[p / 3][p % 3 * step + i]);
        _Pragma("GCC unroll 4") for (int b = 0; b < Blocks; ++b) sum[p][b] = _mm512_fmadd_ps(value, factor[b], sum[p][b]);
      }
    }
  }
  store(sum, tile);
}

// Every channel with its own weights: |unit| is not used.
template <int Places>
[[gnu::target("avx512f")]] void depthwise_product(const Tile& tile) {
  __m512 sum[Places][1];
  _Pragma("GCC unroll 16") for (int p = 0; p < Places; ++p) sum[p][0] = _mm512_setzero_ps();
  const std::int64_t step = tile.step;
  for (std::int64_t t = 0; t < tile.tap_count; ++t) {
    const float* const base = tile.in + tile.taps[t].in;
    const __m512 factor = _mm512_loadu_ps(tile.weights + tile.taps[t].weights);
    _Pragma("GCC unroll 16") for (int p = 0; p < Places; ++p) sum[p][0] =
        _mm512_fmadd_ps(_mm512_loadu_ps(base + p * step), factor, sum[p][0]);
  }
  store(sum, tile);
}

template <int Blocks, int... I>
Kernel product_of(std::int64_t places, std::integer_sequence<int, I...>) {
  static constexpr Kernel kKernels[] = {product<I + 1, Blocks>...};
  return kKernels[places - 1];
}

template <int... I>
Kernel depthwise_of(std::int64_t places, std::integer_sequence<int, I...>) {
  static constexpr Kernel kKernels[] = {depthwise_product<I + 1>...};
  return kKernels[places - 1];
}

inline Kernel kernel_for(bool is_depthwise, std::int64_t places, std::int64_t blocks) {
  if (is_depthwise) return depthwise_of(places, std::make_integer_sequence<int, kDepthwisePlaces>());
  if (blocks == 3) return product_of<3>(places, std::make_integer_sequence<int, kNarrow>());
  if (blocks == 2) return product_of<2>(places, std::make_integer_sequence<int, kPlaces>());
  return product_of<1>(places, std::make_integer_sequence<int, kPlaces>());
}

}  // namespace tenon::cpu::blocked

#endif

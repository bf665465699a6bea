#include "backends/cpu/products/convolution/bf16/conv16_direct.h"

#include "backends/cpu/primitives/matmul/amx_tiles.h"
#include "backends/cpu/products/convolution/bf16/conv16_bands.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tenon::cpu {
namespace {

// row[i] = the pair at from[i * step] for i in [begin, end), 0 for the others below |pitch|; what is after them may be
// overwritten.
using FillRow = void (*)(const Bf16Bits* even, const Bf16Bits* odd, std::int64_t step, std::int64_t begin, std::int64_t end,
                         std::int64_t pitch, Bf16Pair* row);

void fill_row_plain(const Bf16Bits* even, const Bf16Bits* odd, std::int64_t step, std::int64_t begin, std::int64_t end,
                    std::int64_t pitch, Bf16Pair* row) {
  std::fill_n(row, pitch, Bf16Pair{0});
  for (std::int64_t i = begin; i < end; ++i) row[i] = even[i * step] | static_cast<Bf16Pair>(odd ? odd[i * step] : 0) << 16;
}

#if defined(__x86_64__)
// The bits [begin, end) of 32.
inline std::uint32_t bits(std::int64_t begin, std::int64_t end) {
  const auto below = [](std::int64_t n) { return n <= 0 ? 0u : n >= 32 ? 0xffff'ffffu : (1u << n) - 1; };
  return below(end) & ~below(begin);
}

[[gnu::target("avx512f,avx512bw,avx512vl")]] void fill_row_wide(const Bf16Bits* even, const Bf16Bits* odd, std::int64_t step,
                                                                std::int64_t begin, std::int64_t end, std::int64_t pitch,
                                                                Bf16Pair* row) {
  if (step > 2) return fill_row_plain(even, odd, step, begin, end, pitch, row);
  const __m512i lower = _mm512_set1_epi32(0xffff);
  for (std::int64_t i = 0; i < pitch; i += 16) {
    const std::uint32_t mask = bits(step * (begin - i), step * (end - i) - (step - 1)) & (step == 1 ? 0xffffu : 0xffff'ffffu);
    __m512i pairs, upper = _mm512_setzero_si512();
    if (step == 1) {
      pairs = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(static_cast<__mmask16>(mask), even + i));
      if (odd) upper = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(static_cast<__mmask16>(mask), odd + i));
    } else {
      pairs = _mm512_and_si512(_mm512_maskz_loadu_epi16(mask, even + 2 * i), lower);
      if (odd) upper = _mm512_maskz_loadu_epi16(mask, odd + 2 * i);
    }
    _mm512_storeu_si512(row + i, _mm512_or_si512(pairs, _mm512_slli_epi32(upper, 16)));
  }
}

FillRow fill_row() {
  static const bool has = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  return has ? fill_row_wide : fill_row_plain;
}
#else
FillRow fill_row() { return fill_row_plain; }
#endif

}  // namespace

void fill_pair_planes(const Planes& planes, const Bf16Bits* even, const Bf16Bits* odd, std::int64_t slice, std::int64_t count,
                      std::int64_t first, std::int64_t rows, Bf16Pair* words) {
  const Sliding& at = planes.at;
  const FillRow fill_one = fill_row();
  const std::int64_t needed = planes.rows_for(rows);
  for (std::int64_t tap = 0; tap < planes.slices_for(count); ++tap, words += planes.slice_elements) {
    const std::int64_t depth = at.source(0, slice, tap);
    if (!at.is_inside(0, depth)) {
      std::fill_n(words, planes.slice_elements, Bf16Pair{0});
      continue;
    }
    for (std::int64_t ry = 0; ry < at.stride[1]; ++ry)
      for (std::int64_t rx = 0; rx < at.stride[2]; ++rx) {
        Bf16Pair* const plane = words + (ry * at.stride[2] + rx) * planes.plane_elements;
        const auto [begin, end] = planes.columns_inside(rx);
        for (std::int64_t y = 0; y < needed; ++y) {
          const std::int64_t source = (first + y) * at.stride[1] + ry - at.pad[1];
          if (!at.is_inside(1, source)) {
            std::fill_n(plane + y * planes.pitch, planes.pitch, Bf16Pair{0});
            continue;
          }
          const std::int64_t place = depth * at.steps[0] + source * at.steps[1] + rx - at.pad[2];
          fill_one(even + place, odd ? odd + place : nullptr, at.stride[2], begin, end, planes.pitch, plane + y * planes.pitch);
        }
        std::fill(plane + needed * planes.pitch, plane + planes.plane_elements, Bf16Pair{0});
      }
  }
}

void store_tile_rows(const float* tile, std::int64_t rows, const Piece* pieces, int count, float* c, std::int64_t ldc, bool add) {
#if defined(__x86_64__)
  static const bool has = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
  if (has) return store_rows(tile, rows, pieces, count, c, ldc, add, nullptr, 0);
#endif
  for (int i = 0; i < count; ++i)
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t j = 0; j < pieces[i].count; ++j) {
        float& to = c[r * ldc + pieces[i].place + j];
        const float value = tile[r * kTileCols + pieces[i].column + j];
        to = add ? to + value : value;
      }
}

#if defined(__x86_64__) && defined(__linux__)
namespace {

// Rows x 32 sums in registers: two vectors of places a row.
struct Avx512Unit {
  static constexpr std::int64_t kPairs = 1, kMostRows = 14;

  struct Use {
    explicit Use(std::int64_t) {}
  };

  // Blocks of nearly equal numbers of rows.
  static std::int64_t rows_for(std::int64_t channels) {
    const std::int64_t blocks = (channels + kMostRows - 1) / kMostRows;
    return (channels + blocks - 1) / blocks;
  }

  template <int Rows>
  [[gnu::target("avx512f,avx512bf16")]] static void rows_of(const Bf16Bits* weights, const Bf16Pair* const* places,
                                                            const std::int32_t* offsets, std::int64_t steps, float* tile) {
    __m512 sums[Rows][2];
    _Pragma("GCC unroll 16") for (int r = 0; r < Rows; ++r) sums[r][0] = sums[r][1] = _mm512_setzero_ps();
    for (std::int64_t s = 0; s < steps; ++s, weights += 2 * Rows) {
      const std::int64_t offset = offsets[s];
      const auto left = (__m512bh)_mm512_loadu_si512(places[0] + offset),
                 right = (__m512bh)_mm512_loadu_si512(places[1] + offset);
      _Pragma("GCC unroll 16") for (int r = 0; r < Rows; ++r) {
        int pair = 0;
        std::memcpy(&pair, weights + 2 * r, sizeof pair);
        const auto factor = (__m512bh)_mm512_set1_epi32(pair);
        sums[r][0] = _mm512_dpbf16_ps(sums[r][0], factor, left);
        sums[r][1] = _mm512_dpbf16_ps(sums[r][1], factor, right);
      }
    }
    _Pragma("GCC unroll 16") for (int r = 0; r < Rows; ++r) for (int v = 0; v < 2; ++v)
        _mm512_storeu_ps(tile + r * kTileCols + 16 * v, sums[r][v]);
  }

  static void tile(const Bf16Bits* weights, std::int64_t rows, std::int64_t, const Bf16Pair* const* places, std::int64_t,
                   const std::int32_t* offsets, std::int64_t steps, float* sums) {
    using Rows = void (*)(const Bf16Bits*, const Bf16Pair* const*, const std::int32_t*, std::int64_t, float*);
    static constexpr Rows of[] = {rows_of<1>, rows_of<2>, rows_of<3>,  rows_of<4>,  rows_of<5>,  rows_of<6>,  rows_of<7>,
                                  rows_of<8>, rows_of<9>, rows_of<10>, rows_of<11>, rows_of<12>, rows_of<13>, rows_of<14>};
    of[rows - 1](weights, places, offsets, steps, sums);
  }
};

// 32 x 32 sums as two by two tiles. The pairs of a step are the rows of a tile of the right operand.
struct AmxUnit {
  static constexpr std::int64_t kPairs = 16;

  static TileConfiguration configuration(std::int64_t pairs) {
    TileConfiguration tiles;
    for (int tile = 0; tile < 4; ++tile) tiles.set(tile, 16, 64);
    for (int tile = 4; tile < 6; ++tile) tiles.set(tile, 16, static_cast<int>(4 * pairs));
    for (int tile = 6; tile < 8; ++tile) tiles.set(tile, static_cast<int>(pairs), 64);
    return tiles;
  }
  struct Use {
    explicit Use(std::int64_t pairs) : tiles(configuration(pairs)) {}
    TileUse tiles;
  };

  static std::int64_t rows_for(std::int64_t) { return 32; }

  [[gnu::target("amx-tile,amx-bf16")]] static void tile(const Bf16Bits* weights, std::int64_t, std::int64_t pairs,
                                                        const Bf16Pair* const* places, std::int64_t pair_stride,
                                                        const std::int32_t* offsets, std::int64_t steps, float* sums) {
    const std::int64_t row = 4 * pairs, stride = 4 * pair_stride;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (std::int64_t s = 0; s < steps; ++s, weights += 32 * 2 * pairs) {
      _tile_loadd(4, weights, row);
      _tile_loadd(6, places[0] + offsets[s], stride);
      _tile_dpbf16ps(0, 4, 6);
      _tile_loadd(7, places[1] + offsets[s], stride);
      _tile_dpbf16ps(1, 4, 7);
      _tile_loadd(5, weights + 16 * 2 * pairs, row);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
    constexpr std::int64_t to = kTileCols * static_cast<std::int64_t>(sizeof(float));
    _tile_stored(0, sums, to);
    _tile_stored(1, sums + 16, to);
    _tile_stored(2, sums + 16 * kTileCols, to);
    _tile_stored(3, sums + 16 * kTileCols + 16, to);
  }
};

template <class F>
auto with_plan(const View& x, const Shape& weight, const ConvAttr& attr, const Shape& out, int threads, F&& f) {
  if (bf16_unit() == Bf16Unit::amx) return f(Conv16Plan<AmxUnit>(x, weight, attr, out, threads));
  return f(Conv16Plan<Avx512Unit>(x, weight, attr, out, threads));
}

}  // namespace

bool has_direct_conv16(const View& x, const Shape& weight, const ConvAttr& attr, const Shape& out) {
  // A band that would leave the L2 cache.
  constexpr std::int64_t kMostWords = 256 * 1024;
  if (bf16_unit() == Bf16Unit::none || weight[1] < 2 || out.elements() == 0) return false;
  const Planes planes(sliding_of(x, weight, attr, out), 1);
  const Sliding& at = planes.at;
  if (at.window() == 1 || at.stride[1] > 2 || at.stride[2] > 2) return false;
  // Rows of elements that are not neighbours.
  if (!are_tiles_better(planes, weight[0] / attr.groups, 4) || (at.in[2] > 1 && at.steps[2] != 1)) return false;
  return with_plan(x, weight, attr, out, 1, [](const auto& plan) { return plan.plane_words() <= kMostWords; });
}

std::size_t direct_conv16_scratch_bytes(const ThreadPool& pool, const View& x, const Shape& weight, const ConvAttr& attr,
                                        const Shape& out) {
  return with_plan(x, weight, attr, out, pool.threads(), [&](const auto& plan) { return plan.scratch_bytes(pool.threads()); });
}

void direct_conv16(ThreadPool& pool, const View& x, const View& weight, const ConvAttr& attr, const Target& out,
                   std::span<std::byte> scratch) {
  with_plan(x, weight.shape, attr, out.shape, pool.threads(), [&](const auto& plan) {
    plan.run(pool, static_cast<const Bf16Bits*>(x.data), static_cast<const Bf16Bits*>(weight.data), static_cast<float*>(out.data),
             scratch.data());
  });
}

#else

bool has_direct_conv16(const View&, const Shape&, const ConvAttr&, const Shape&) { return false; }
std::size_t direct_conv16_scratch_bytes(const ThreadPool&, const View&, const Shape&, const ConvAttr&, const Shape&) { return 0; }
void direct_conv16(ThreadPool&, const View&, const View&, const ConvAttr&, const Target&, std::span<std::byte>) {}

#endif

}  // namespace tenon::cpu

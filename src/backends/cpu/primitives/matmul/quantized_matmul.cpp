#include "backends/cpu/primitives/matmul/quantized_matmul.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "array/convert.h"
#include "backends/cpu/primitives/matmul/amx_tiles.h"
#include "backends/cpu/primitives/matmul/packing_memory.h"
#include "backends/cpu/primitives/split.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tenon::cpu {
namespace {

constexpr std::int64_t kLanes = 16;  // rows of the matrix that are stored together
constexpr std::int64_t kBlock = 32;  // columns of x with one step

// x as integers: x[r][c] is about codes[r * k + c] * steps[r * (k / 32) + c / 32].
struct Rows {
  std::int8_t* codes;
  float* steps;
  // For each group of the matrix: the sum of the codes times the step, which minima are multiplied with, and as an integer times
  // -zero, with which the sums of products begin.
  float* sums;
  std::int32_t* starts;
  std::int64_t k, groups;
};

std::size_t padded(std::int64_t bytes) { return static_cast<std::size_t>((bytes + 63) / 64 * 64); }

Rows rows_in(std::span<std::byte> scratch, std::int64_t m, std::int64_t k, std::int64_t group) {
  std::byte* at = scratch.data();
  const auto take = [&](std::int64_t bytes) {
    std::byte* taken = at;
    at += padded(bytes);
    return taken;
  };
  Rows rows{};
  rows.k = k;
  rows.groups = k / group;
  rows.codes = reinterpret_cast<std::int8_t*>(take(m * k));
  rows.steps = reinterpret_cast<float*>(take(m * (k / kBlock) * 4));
  rows.sums = reinterpret_cast<float*>(take(m * rows.groups * 4));
  rows.starts = reinterpret_cast<std::int32_t*>(take(m * rows.groups * 4));
  return rows;
}

// A panel: sixteen rows of the matrix.
struct Panel {
  const std::uint8_t* codes;
  const std::byte* scales;
  const std::byte* minima;
  bool has_half_scales;
};

// --- Any CPU ---

void round_block(const float* x, std::int8_t* codes, float factor) {
  for (int i = 0; i < kBlock; ++i)
    codes[i] = static_cast<std::int8_t>(std::clamp(std::nearbyint(x[i] * factor), -127.0f, 127.0f));
}

float largest_of(const float* x) {
  // By their bits, so that a NaN is the largest.
  std::uint32_t largest = 0;
  for (int i = 0; i < kBlock; ++i) largest = std::max(largest, std::bit_cast<std::uint32_t>(x[i]) & 0x7fffffffu);
  return std::bit_cast<float>(largest);
}

float scale_at(const std::byte* scales, bool is_half, std::int64_t i) {
  if (is_half) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, scales + 2 * i, sizeof bits);
    return half_to_float(bits);
  }
  float value = 0;
  std::memcpy(&value, scales + 4 * i, sizeof value);
  return value;
}

template <int Bits, int Group, int Count>
void tile_base(const Panel& panel, const Rows& x, std::int64_t row, float* out, std::int64_t stride) {
  constexpr std::int64_t kBytes = kLanes * Group * Bits / 8;
  for (int r = 0; r < Count; ++r) {
    float results[kLanes] = {};
    for (std::int64_t g = 0; g < x.groups; ++g) {
      const std::uint8_t* codes = panel.codes + g * kBytes;
      const std::int8_t* values = x.codes + (row + r) * x.k + g * Group;
      const float step = x.steps[(row + r) * (x.k / kBlock) + g * Group / kBlock];
      for (std::int64_t lane = 0; lane < kLanes; ++lane) {
        std::int32_t sum = x.starts[(row + r) * x.groups + g];
        for (int c = 0; c < Group; ++c) {
          const int place = Bits == 8 ? c : c % (Group / 2);
          const std::uint8_t byte = codes[(place / 4) * 64 + lane * 4 + place % 4];
          sum += (Bits == 8 ? byte : c < Group / 2 ? byte & 15 : byte >> 4) * values[c];
        }
        const std::int64_t at = g * kLanes + lane;
        results[lane] += static_cast<float>(sum) * step * scale_at(panel.scales, panel.has_half_scales, at);
        if (panel.minima) results[lane] += x.sums[(row + r) * x.groups + g] * scale_at(panel.minima, panel.has_half_scales, at);
      }
    }
    std::copy_n(results, kLanes, out + r * stride);
  }
}

#if defined(__x86_64__)

// --- AVX2 ---

#define TENON_AVX2 [[gnu::target("avx2,fma,f16c")]]

TENON_AVX2 void round_block_avx2(const float* x, std::int8_t* codes, float factor) {
  const __m256 f = _mm256_set1_ps(factor);
  __m256i words[4];
  for (int i = 0; i < 4; ++i) words[i] = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 8 * i), f));
  const __m256i low = _mm256_packs_epi32(words[0], words[1]), high = _mm256_packs_epi32(words[2], words[3]);
  // The packs work within halves of a register.
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(codes), _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high), order));
}

TENON_AVX2 float largest_avx2(const float* x) {
  const __m256i mask = _mm256_set1_epi32(0x7fffffff);
  __m256i largest = _mm256_setzero_si256();
  for (int i = 0; i < 4; ++i)
    largest = _mm256_max_epi32(largest, _mm256_and_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + 8 * i)), mask));
  __m128i half = _mm_max_epi32(_mm256_castsi256_si128(largest), _mm256_extracti128_si256(largest, 1));
  half = _mm_max_epi32(half, _mm_shuffle_epi32(half, 0x4e));
  half = _mm_max_epi32(half, _mm_shuffle_epi32(half, 0xb1));
  return std::bit_cast<float>(_mm_cvtsi128_si32(half));
}

TENON_AVX2 inline __m256 scales_avx2(const std::byte* scales, bool is_half, std::int64_t i) {
  if (is_half) return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(scales + 2 * i)));
  return _mm256_loadu_ps(reinterpret_cast<const float*>(scales + 4 * i));
}

// Products of codes of 4 bits cannot exceed 16 bits; codes of 8 bits are taken as two of 4.
template <int Bits, int Group, int Count>
TENON_AVX2 void tile_avx2(const Panel& panel, const Rows& x, std::int64_t row, float* out, std::int64_t stride) {
  constexpr int kVectors = Group * Bits / 32;
  constexpr std::int64_t kBytes = kLanes * Group * Bits / 8;
  const __m256i nibble = _mm256_set1_epi8(15), ones = _mm256_set1_epi16(1), sixteens = _mm256_set1_epi16(16);
  __m256 results[Count][2];
  for (int r = 0; r < Count; ++r) results[r][0] = results[r][1] = _mm256_setzero_ps();
  for (std::int64_t g = 0; g < x.groups; ++g) {
    const std::uint8_t* codes = panel.codes + g * kBytes;
    for (int half = 0; half < 2; ++half) {
      const __m256 scale = scales_avx2(panel.scales, panel.has_half_scales, g * kLanes + 8 * half);
      __m256i sums[Count];
      for (int r = 0; r < Count; ++r) sums[r] = _mm256_set1_epi32(x.starts[(row + r) * x.groups + g]);
      for (int v = 0; v < kVectors; ++v) {
        const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes + 64 * v + 32 * half));
        const __m256i low = _mm256_and_si256(bytes, nibble), high = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), nibble);
        for (int r = 0; r < Count; ++r) {
          const std::int8_t* values = x.codes + (row + r) * x.k + g * Group + 4 * v;
          std::int32_t four = 0, later = 0;
          std::memcpy(&four, values, sizeof four);
          if constexpr (Bits == 4) std::memcpy(&later, values + Group / 2, sizeof later);
          const __m256i a = _mm256_set1_epi32(four), b = Bits == 4 ? _mm256_set1_epi32(later) : a;
          sums[r] = _mm256_add_epi32(sums[r], _mm256_madd_epi16(_mm256_maddubs_epi16(low, a), ones));
          sums[r] = _mm256_add_epi32(sums[r], _mm256_madd_epi16(_mm256_maddubs_epi16(high, b), Bits == 4 ? ones : sixteens));
        }
      }
      for (int r = 0; r < Count; ++r) {
        const __m256 step = _mm256_set1_ps(x.steps[(row + r) * (x.k / kBlock) + g * Group / kBlock]);
        results[r][half] = _mm256_fmadd_ps(_mm256_mul_ps(_mm256_cvtepi32_ps(sums[r]), step), scale, results[r][half]);
        if (panel.minima)
          results[r][half] =
              _mm256_fmadd_ps(_mm256_set1_ps(x.sums[(row + r) * x.groups + g]),
                              scales_avx2(panel.minima, panel.has_half_scales, g * kLanes + 8 * half), results[r][half]);
      }
    }
  }
  for (int r = 0; r < Count; ++r)
    for (int half = 0; half < 2; ++half) _mm256_storeu_ps(out + r * stride + 8 * half, results[r][half]);
}

// --- AVX-512 with VNNI ---

#define TENON_VNNI [[gnu::target("avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma,f16c")]]

TENON_VNNI inline __m512 scales_vnni(const std::byte* scales, bool is_half, std::int64_t i) {
  if (is_half) return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(scales + 2 * i)));
  return _mm512_loadu_ps(scales + 4 * i);
}

template <int Bits, int Group, int Count>
TENON_VNNI void tile_vnni(const Panel& panel, const Rows& x, std::int64_t row, float* out, std::int64_t stride) {
  constexpr int kVectors = Group / 4;
  constexpr std::int64_t kBytes = kLanes * Group * Bits / 8;
  const __m512i nibble = _mm512_set1_epi8(15);
  __m512 results[Count];
  for (int r = 0; r < Count; ++r) results[r] = _mm512_setzero_ps();
  const std::int8_t* values = x.codes + row * x.k;
  const float* steps = x.steps + row * (x.k / kBlock);
  for (std::int64_t g = 0; g < x.groups; ++g) {
    const std::uint8_t* bytes = panel.codes + g * kBytes;
    __m512i codes[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      if constexpr (Bits == 8) {
        codes[v] = _mm512_loadu_si512(bytes + 64 * v);
      } else if (v < kVectors / 2) {
        const __m512i both = _mm512_loadu_si512(bytes + 64 * v);
        codes[v] = _mm512_and_si512(both, nibble);
        codes[v + kVectors / 2] = _mm512_and_si512(_mm512_srli_epi16(both, 4), nibble);
      }
    }
    const __m512 scale = scales_vnni(panel.scales, panel.has_half_scales, g * kLanes);
    __m512i sums[Count];
    for (int r = 0; r < Count; ++r) {
      sums[r] = _mm512_set1_epi32(x.starts[(row + r) * x.groups + g]);
      for (int v = 0; v < kVectors; ++v) {
        std::int32_t four = 0;
        std::memcpy(&four, values + r * x.k + g * Group + 4 * v, sizeof four);
        sums[r] = _mm512_dpbusd_epi32(sums[r], codes[v], _mm512_set1_epi32(four));
      }
      const __m512 step = _mm512_set1_ps(steps[r * (x.k / kBlock) + g * Group / kBlock]);
      results[r] = _mm512_fmadd_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(sums[r]), step), scale, results[r]);
    }
    if (panel.minima) {
      const __m512 minimum = scales_vnni(panel.minima, panel.has_half_scales, g * kLanes);
      for (int r = 0; r < Count; ++r)
        results[r] = _mm512_fmadd_ps(_mm512_set1_ps(x.sums[(row + r) * x.groups + g]), minimum, results[r]);
    }
  }
  for (int r = 0; r < Count; ++r) _mm512_storeu_ps(out + r * stride, results[r]);
}

// --- AMX: sixteen rows of x times sixteen of the matrix by one instruction for each group of columns ---

#define TENON_AMX [[gnu::target("amx-tile,amx-int8,avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma,f16c")]]

// Codes of 4 bits as bytes: [columns / 4][16 lanes][4].
template <int Group>
TENON_VNNI void widen_codes(const std::uint8_t* from, std::int64_t groups, std::uint8_t* to) {
  constexpr int kVectors = Group / 4;
  const __m512i nibble = _mm512_set1_epi8(15);
  for (std::int64_t g = 0; g < groups; ++g, from += 64 * (kVectors / 2), to += 64 * kVectors)
    for (int v = 0; v < kVectors / 2; ++v) {
      const __m512i both = _mm512_loadu_si512(from + 64 * v);
      _mm512_store_si512(to + 64 * v, _mm512_and_si512(both, nibble));
      _mm512_store_si512(to + 64 * (v + kVectors / 2), _mm512_and_si512(_mm512_srli_epi16(both, 4), nibble));
    }
}

// Scales of a panel as floats.
TENON_VNNI void widen_scales(const std::byte* from, bool is_half, std::int64_t groups, float* to) {
  for (std::int64_t g = 0; g < groups; ++g) _mm512_store_ps(to + g * kLanes, scales_vnni(from, is_half, g * kLanes));
}

struct AmxPanel {
  const std::uint8_t* codes;  // bytes
  const float *scales, *minima;
};

template <int Group>
TileConfiguration amx_configuration() {
  TileConfiguration configuration;
  for (const int sums : {0, 1}) configuration.set(sums, 16, 64);
  for (const int left : {2, 3}) configuration.set(left, 16, Group);
  for (const int right : {4, 5}) configuration.set(right, Group / 4, 64);
  return configuration;
}

// The products of group |g|, with one of two sets of tiles. Their numbers are written out: g++ makes text of them.
template <int Group, int Set>
TENON_AMX inline void multiply_amx(const AmxPanel& panel, const std::int8_t* values, std::int64_t k, std::int64_t g,
                                   std::int32_t* sums) {
  const std::int8_t* const left = values + g * Group;
  const std::uint8_t* const right = panel.codes + g * Group * kLanes;
  if constexpr (Set == 0) {
    _tile_zero(0);
    _tile_loadd(2, left, k);
    _tile_loadd(4, right, 64);
    _tile_dpbsud(0, 2, 4);
    _tile_stored(0, sums, 64);
  } else {
    _tile_zero(1);
    _tile_loadd(3, left, k);
    _tile_loadd(5, right, 64);
    _tile_dpbsud(1, 3, 5);
    _tile_stored(1, sums, 64);
  }
}

// Sixteen rows, in the operations of tile_vnni: the bits are the same. The products of a group are computed while those of the
// one before are scaled.
template <int Group>
TENON_AMX void rows_amx(const AmxPanel& panel, const Rows& x, std::int64_t row, bool has_zero, float* out, std::int64_t stride) {
  alignas(64) std::int32_t sums[2][16 * kLanes];
  __m512 results[16];
  for (__m512& each : results) each = _mm512_setzero_ps();
  const std::int8_t* values = x.codes + row * x.k;
  const float* steps = x.steps + row * (x.k / kBlock);
  const std::int64_t per_row = x.k / kBlock;
  multiply_amx<Group, 0>(panel, values, x.k, 0, sums[0]);
  for (std::int64_t g = 0; g < x.groups; ++g) {
    if (g + 1 < x.groups && g % 2 == 0) multiply_amx<Group, 1>(panel, values, x.k, g + 1, sums[1]);
    if (g + 1 < x.groups && g % 2 == 1) multiply_amx<Group, 0>(panel, values, x.k, g + 1, sums[0]);
    const std::int32_t* done = sums[g % 2];
    const __m512 scale = _mm512_load_ps(panel.scales + g * kLanes);
    const float* step = steps + g * Group / kBlock;
    for (int r = 0; r < 16; ++r) {
      __m512i sum = _mm512_load_si512(done + r * kLanes);
      if (has_zero) sum = _mm512_add_epi32(sum, _mm512_set1_epi32(x.starts[(row + r) * x.groups + g]));
      results[r] = _mm512_fmadd_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(sum), _mm512_set1_ps(step[r * per_row])), scale, results[r]);
    }
    if (!panel.minima) continue;
    const __m512 minimum = _mm512_load_ps(panel.minima + g * kLanes);
    for (int r = 0; r < 16; ++r)
      results[r] = _mm512_fmadd_ps(_mm512_set1_ps(x.sums[(row + r) * x.groups + g]), minimum, results[r]);
  }
  for (int r = 0; r < 16; ++r) _mm512_storeu_ps(out + r * stride, results[r]);
}

// Products of the rows of x that fill tiles.
class AmxProduct {
 public:
  AmxProduct(const Rows& x, const QuantizedMatMulAttr& attr) : x_(x), attr_(attr) {
    const std::size_t codes = padded(attr.bits == 8 ? 0 : x.k * kLanes), scales = padded(x.groups * kLanes * 4);
    std::byte* const memory = memory_.get<std::byte>(static_cast<std::int64_t>(codes + 2 * scales));
    codes_ = reinterpret_cast<std::uint8_t*>(memory);
    scales_ = reinterpret_cast<float*>(memory + codes);
    minima_ = reinterpret_cast<float*>(memory + codes + scales);
  }

  void run(const Panel& panel, std::int64_t rows, float* out, std::int64_t stride) {
    attr_.group == 32 ? run<32>(panel, rows, out, stride) : run<16>(panel, rows, out, stride);
  }
  TileConfiguration configuration() const { return attr_.group == 32 ? amx_configuration<32>() : amx_configuration<16>(); }

 private:
  template <int Group>
  void run(const Panel& panel, std::int64_t rows, float* out, std::int64_t stride) {
    AmxPanel wide{panel.codes, scales_, panel.minima ? minima_ : nullptr};
    if (attr_.bits == 4) {
      widen_codes<Group>(panel.codes, x_.groups, codes_);
      wide.codes = codes_;
    }
    widen_scales(panel.scales, panel.has_half_scales, x_.groups, scales_);
    if (panel.minima) widen_scales(panel.minima, panel.has_half_scales, x_.groups, minima_);
    for (std::int64_t row = 0; row < rows; row += 16) rows_amx<Group>(wide, x_, row, attr_.zero != 0, out + row * stride, stride);
  }

  const Rows& x_;
  const QuantizedMatMulAttr& attr_;
  PackingMemory<> memory_;  // of a widened panel
  std::uint8_t* codes_ = nullptr;
  float *scales_ = nullptr, *minima_ = nullptr;
};

#endif

using TileFunction = void (*)(const Panel&, const Rows&, std::int64_t row, float* out, std::int64_t stride);
// For 1, 2, 4 and 8 rows of x.
using Tiles = TileFunction[4];

struct Unit {
  float (*largest)(const float* x);
  void (*round_block)(const float* x, std::int8_t* codes, float factor);
  Tiles tiles[2][2];  // 4 or 8 bits, groups of 16 or 32
};

#define TENON_TILES(name, bits, group) {name<bits, group, 1>, name<bits, group, 2>, name<bits, group, 4>, name<bits, group, 8>}
#define TENON_UNIT(name)                                                                                         \
  {                                                                                                              \
    {TENON_TILES(name, 4, 16), TENON_TILES(name, 4, 32)}, { TENON_TILES(name, 8, 16), TENON_TILES(name, 8, 32) } \
  }

const Unit& functions_of([[maybe_unused]] IntegerUnit unit) {
  static constexpr Unit base{largest_of, round_block, TENON_UNIT(tile_base)};
#if defined(__x86_64__)
  static constexpr Unit avx2{largest_avx2, round_block_avx2, TENON_UNIT(tile_avx2)};
  static constexpr Unit vnni{largest_avx2, round_block_avx2, TENON_UNIT(tile_vnni)};
  if (unit == IntegerUnit::vnni || unit == IntegerUnit::amx) return vnni;
  if (unit == IntegerUnit::avx2) return avx2;
#endif
  return base;
}

void round_row(const Unit& use, const float* x, std::int64_t row, const Rows& rows, const QuantizedMatMulAttr& attr) {
  std::int8_t* codes = rows.codes + row * rows.k;
  for (std::int64_t b = 0; b < rows.k / kBlock; ++b) {
    const float largest = use.largest(x + b * kBlock);
    const float step = half_to_float(float_to_half(largest / 127.0f));
    rows.steps[row * (rows.k / kBlock) + b] = step;
    use.round_block(x + b * kBlock, codes + b * kBlock, largest == 0 ? 0.0f : 127.0f / largest);
    for (std::int64_t first = 0; first < kBlock; first += attr.group) {
      std::int32_t sum = 0;
      for (std::int64_t i = 0; i < attr.group; ++i) sum += codes[b * kBlock + first + i];
      const std::int64_t at = row * rows.groups + (b * kBlock + first) / attr.group;
      rows.sums[at] = static_cast<float>(sum) * step;
      rows.starts[at] = -static_cast<std::int32_t>(attr.zero) * sum;
    }
  }
}

}  // namespace

bool has_integer_unit(IntegerUnit unit) {
  if (unit == IntegerUnit::base) return true;
#if defined(__x86_64__)
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  if (unit == IntegerUnit::avx2) return has_avx2;
  const bool has_vnni = has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
  return has_vnni && (unit == IntegerUnit::vnni || tile_units().int8);
#else
  return false;
#endif
}

IntegerUnit best_integer_unit() {
  static const IntegerUnit best = has_integer_unit(IntegerUnit::amx)    ? IntegerUnit::amx
                                  : has_integer_unit(IntegerUnit::vnni) ? IntegerUnit::vnni
                                  : has_integer_unit(IntegerUnit::avx2) ? IntegerUnit::avx2
                                                                        : IntegerUnit::base;
  return best;
}

std::size_t quantized_matmul_scratch_bytes(const Shape& x, const QuantizedMatMulAttr& attr) {
  const std::int64_t m = x[0], k = x[1];
  return padded(m * k) + padded(m * (k / kBlock) * 4) + 2 * padded(m * (k / attr.group) * 4);
}

void quantized_matmul(ThreadPool& pool, const View& x, const QuantizedMatrix& matrix, const QuantizedMatMulAttr& attr,
                      const Target& out, std::span<std::byte> scratch, IntegerUnit unit) {
  const Unit& use = functions_of(unit);
  const std::int64_t m = x.shape[0], k = x.shape[1], n = out.shape[1];
  if (m == 0) return;
  const Rows rows = rows_in(scratch, m, k, attr.group);
  const float* values = static_cast<const float*>(x.data);
  for_ranges(pool, m, k, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t row = begin; row < end; ++row) round_row(use, values + row * k, row, rows, attr);
  });
  const Tiles& tiles = use.tiles[attr.bits == 8][attr.group == 32];
  const std::int64_t code_bytes = kLanes * k * attr.bits / 8,
                     scale_bytes = kLanes * rows.groups * (matrix.has_half_scales ? 2 : 4);
  float* const results = static_cast<float*>(out.data);
  // A product of 16 rows costs about as much as moving an eighth as many elements.
  for_ranges(pool, n / kLanes, std::max<std::int64_t>(1, m * k * kLanes / 8), [&](std::int64_t begin, std::int64_t end, int) {
    const auto panel_at = [&](std::int64_t p) {
      return Panel{matrix.codes + p * code_bytes, static_cast<const std::byte*>(matrix.scales) + p * scale_bytes,
                   matrix.minima ? static_cast<const std::byte*>(matrix.minima) + p * scale_bytes : nullptr,
                   matrix.has_half_scales};
    };
    std::int64_t tiled = 0;  // rows that AMX has computed
#if defined(__x86_64__)
    if (unit == IntegerUnit::amx && m >= 16) {
      tiled = m / 16 * 16;
      AmxProduct product(rows, attr);
      const TileUse held(product.configuration());
      for (std::int64_t p = begin; p < end; ++p) product.run(panel_at(p), tiled, results + p * kLanes, n);
    }
#endif
    if (tiled == m) return;
    for (std::int64_t p = begin; p < end; ++p) {
      const Panel panel = panel_at(p);
      std::int64_t row = tiled;
      for (int size = 3; size >= 0; --size)
        for (; row + (1 << size) <= m; row += 1 << size) tiles[size](panel, rows, row, results + row * n + p * kLanes, n);
    }
  });
}

}  // namespace tenon::cpu

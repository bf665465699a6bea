#include "backends/cpu/products/integer/gemm_int8.h"

#include <algorithm>
#include <cstring>

#include "base/threads/stop_scope.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

#include "backends/cpu/primitives/matmul/bf16/gemm_bf16.h"

namespace tenon::cpu {
namespace {

// Operands are multiplied as u8 x i8: a signed a and an unsigned b are shifted
// by 128 together with their zero points. Packed weights: [panel of kCols][four
// steps][column][step], then the sum of every column as i32, of whole panels.
constexpr std::int64_t kCols = 32, kRows = 12;

std::int64_t rounded_up(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit * unit; }

// Rows x kCols sums of |quads| times four products; a's rows are |stride| bytes
// apart.
using Micro = void (*)(const std::uint8_t* a, std::int64_t stride, const std::int8_t* b, std::int64_t quads, std::int32_t* c);

template <int Rows>
[[gnu::target("avx512f,avx512bw,avx512vnni")]] void vnni_tile(const std::uint8_t* a, std::int64_t stride, const std::int8_t* b,
                                                              std::int64_t quads, std::int32_t* c) {
  constexpr int kBases = (Rows + 2) / 3;
  const std::uint8_t* base[kBases];
  for (int i = 0; i < kBases; ++i) base[i] = a + 3 * i * stride;
  __m512i sum[Rows][2];
  _Pragma("GCC unroll 16") for (int r = 0; r < Rows; ++r) sum[r][0] = sum[r][1] = _mm512_setzero_si512();
  for (std::int64_t q = 0; q < quads; ++q, b += 4 * kCols) {
    const __m512i left = _mm512_loadu_si512(b), right = _mm512_loadu_si512(b + 64);
    _Pragma("GCC unroll 16") for (int r = 0; r < Rows; ++r) {
      std::int32_t four;
      std::memcpy(&four, base[r / 3] + (r % 3) * stride + 4 * q, sizeof four);
      const __m512i factor = _mm512_set1_epi32(four);
      sum[r][0] = _mm512_dpbusd_epi32(sum[r][0], factor, left);
      sum[r][1] = _mm512_dpbusd_epi32(sum[r][1], factor, right);
    }
  }
  _Pragma("GCC unroll 16") for (int r = 0; r < Rows; ++r) {
    _mm512_storeu_si512(c + r * kCols, sum[r][0]);
    _mm512_storeu_si512(c + r * kCols + 16, sum[r][1]);
  }
}

// Without VNNI: bytes are widened to 16 bits, whose products are added in pairs
// without saturating.
template <int Rows>
[[gnu::target("avx2")]] void avx2_tile(const std::uint8_t* a, std::int64_t stride, const std::int8_t* b, std::int64_t quads,
                                       std::int32_t* c) {
  for (int part = 0; part < kCols; part += 8) {
    __m256i even[Rows], odd[Rows];
    for (int r = 0; r < Rows; ++r) even[r] = odd[r] = _mm256_setzero_si256();
    for (std::int64_t q = 0; q < quads; ++q) {
      const std::int8_t* from = b + q * 4 * kCols + 4 * part;
      const __m256i columns = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
      const __m256i low = _mm256_cvtepi8_epi16(_mm256_castsi256_si128(columns));
      const __m256i high = _mm256_cvtepi8_epi16(_mm256_extracti128_si256(columns, 1));
      for (int r = 0; r < Rows; ++r) {
        std::int32_t four;
        std::memcpy(&four, a + r * stride + 4 * q, sizeof four);
        const __m256i factor = _mm256_cvtepu8_epi16(_mm_set1_epi32(four));
        even[r] = _mm256_add_epi32(even[r], _mm256_madd_epi16(low, factor));
        odd[r] = _mm256_add_epi32(odd[r], _mm256_madd_epi16(high, factor));
      }
    }
    // Two neighbouring sums belong to one column.
    for (int r = 0; r < Rows; ++r) {
      const __m256i joined = _mm256_permute4x64_epi64(_mm256_hadd_epi32(even[r], odd[r]), 0xd8);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(c + r * kCols + part), joined);
    }
  }
}

bool has_vnni() {
  static const bool has = __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw");
  return has;
}

template <int Rows>
Micro micro() {
  return has_vnni() ? vnni_tile<Rows> : avx2_tile<Rows>;
}

Micro micro_for(std::int64_t rows) {
  switch (rows) {
    case 1: return micro<1>();
    case 2: return micro<2>();
    case 3: return micro<3>();
    case 4: return micro<4>();
    case 5: return micro<5>();
    case 6: return micro<6>();
    case 7: return micro<7>();
    case 8: return micro<8>();
    case 9: return micro<9>();
    case 10: return micro<10>();
    case 11: return micro<11>();
    default: return micro<12>();
  }
}

// --- AMX: tiles of 16 rows by 64 steps, times 64 steps by 16 columns ---

constexpr std::int64_t kAmxSteps = 64;

bool has_amx() {
  // bf16_unit() has asked the kernel for the tile registers.
  static const bool has = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    constexpr unsigned kAmxInt8 = 1u << 25;
    return bf16_unit() == Bf16Unit::amx && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & kAmxInt8) != 0;
  }();
  return has;
}

// Released at once: a thread with tiles in use costs 8 KiB at every switch.
class AmxUse {
 public:
  explicit AmxUse(bool is_used) : is_used_(is_used) {
    if (is_used_) configure();
  }
  ~AmxUse() {
    if (is_used_) release();
  }
  AmxUse(const AmxUse&) = delete;
  AmxUse& operator=(const AmxUse&) = delete;

 private:
  [[gnu::target("amx-tile,amx-int8")]] static void configure() {
    struct alignas(64) {
      std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
      std::uint16_t row_bytes[16] = {};
      std::uint8_t rows[16] = {};
    } configuration;
    static_assert(sizeof configuration == 64);
    for (int tile = 0; tile < 8; ++tile) {
      configuration.row_bytes[tile] = 64;
      configuration.rows[tile] = 16;
    }
    _tile_loadconfig(&configuration);
  }
  [[gnu::target("amx-tile,amx-int8")]] static void release() { _tile_release(); }
  bool is_used_;
};

// 32 rows x kCols sums.
[[gnu::target("amx-tile,amx-int8")]] void amx_tile(const std::uint8_t* a, std::int64_t stride, const std::int8_t* b,
                                                   std::int64_t blocks, std::int32_t* c) {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (std::int64_t block = 0; block < blocks; ++block, a += kAmxSteps, b += kAmxSteps * kCols) {
    _tile_loadd(4, a, stride);
    _tile_loadd(6, b, 4 * kCols);
    _tile_dpbusd(0, 4, 6);
    _tile_loadd(7, b + 64, 4 * kCols);
    _tile_dpbusd(1, 4, 7);
    _tile_loadd(5, a + 16 * stride, stride);
    _tile_dpbusd(2, 5, 6);
    _tile_dpbusd(3, 5, 7);
  }
  _tile_stored(0, c, 4 * kCols);
  _tile_stored(1, c + 16, 4 * kCols);
  _tile_stored(2, c + 16 * kCols, 4 * kCols);
  _tile_stored(3, c + 16 * kCols + 16, 4 * kCols);
}

// u8 rows with four bytes' multiple of elements, and their sums.
struct Rows {
  const std::uint8_t* data;
  std::int64_t stride;
};

[[gnu::target("avx2")]] std::int32_t sum_of(const std::uint8_t* row, std::int64_t n) {
  __m256i sums = _mm256_setzero_si256();
  std::int64_t i = 0;
  for (; i + 32 <= n; i += 32)
    sums = _mm256_add_epi64(
        sums, _mm256_sad_epu8(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(row + i)), _mm256_setzero_si256()));
  alignas(32) std::int64_t parts[4];
  _mm256_store_si256(reinterpret_cast<__m256i*>(parts), sums);
  std::int64_t sum = parts[0] + parts[1] + parts[2] + parts[3];
  for (; i < n; ++i) sum += row[i];
  return static_cast<std::int32_t>(sum);
}

// c = sums - a_zero * (column sum) - (row sum) * b_zero + depth * a_zero *
// b_zero; all wrap.
struct Correction {
  std::uint32_t a_zero, row_sum_part;  // the latter: row sum - depth * a_zero
};

#define TENON_STORE_TILE(name, attribute)                                                                                 \
  attribute void name(const std::int32_t* sums, std::int64_t rows, std::int64_t width, const Correction* corrections,     \
                      const std::int32_t* column_sums, const std::uint32_t* b_zeros, std::int32_t* c, std::int64_t ldc) { \
    for (std::int64_t r = 0; r < rows; ++r) {                                                                             \
      const std::uint32_t a_zero = corrections[r].a_zero, part = corrections[r].row_sum_part;                             \
      const std::int32_t* const from = sums + r * kCols;                                                                  \
      std::int32_t* const to = c + r * ldc;                                                                               \
      const std::int64_t n = width == kCols ? kCols : width;                                                              \
      for (std::int64_t j = 0; j < n; ++j)                                                                                \
        to[j] = static_cast<std::int32_t>(static_cast<std::uint32_t>(from[j]) -                                           \
                                          a_zero * static_cast<std::uint32_t>(column_sums[j]) - part * b_zeros[j]);       \
    }                                                                                                                     \
  }
TENON_STORE_TILE(store_tile_wide, [[gnu::target("avx512f,avx512bw,avx512vl")]])
TENON_STORE_TILE(store_tile_narrow, [[gnu::target("avx2")]])

}  // namespace

bool has_int8_gemm() {
  static const bool has = __builtin_cpu_supports("avx2");
  return has;
}

std::size_t packed_int8_bytes(std::int64_t depth, std::int64_t cols) {
  return static_cast<std::size_t>(rounded_up(cols, kCols) * (rounded_up(depth, 4) + 4));
}

void pack_int8(const Int8Matrix& b, std::byte* packed) {
  const std::int64_t panels = rounded_up(b.cols, kCols) / kCols, quads = rounded_up(b.rows, 4) / 4;
  auto* to = reinterpret_cast<std::int8_t*>(packed);
  auto* sums = reinterpret_cast<std::int32_t*>(packed + panels * quads * 4 * kCols);
  const auto* from = static_cast<const std::uint8_t*>(b.data);
  const std::uint8_t flip = b.is_signed ? 0 : 0x80;
  std::fill_n(sums, panels * kCols, 0);
  for (std::int64_t panel = 0; panel < panels; ++panel)
    for (std::int64_t q = 0; q < quads; ++q)
      for (std::int64_t j = panel * kCols; j < (panel + 1) * kCols; ++j)
        for (std::int64_t p = 4 * q; p < 4 * q + 4; ++p) {
          std::int8_t value = 0;
          if (p < b.rows && j < b.cols) value = static_cast<std::int8_t>(from[p * b.row_stride + j * b.col_stride] ^ flip);
          *to++ = value;
          sums[j] += value;
        }
}

std::size_t int8_scratch_bytes(std::int64_t rows, std::int64_t depth) {
  return static_cast<std::size_t>(rows * (rounded_up(depth, 4) + 64) + rows * 16 + 64);
}

void gemm_int8(const Int8Matrix& a, const std::byte* packed, bool b_is_signed, std::int64_t cols, const ZeroPoints& a_zero,
               const ZeroPoints& b_zero, std::int32_t* c, std::int64_t ldc, std::span<std::byte> scratch) {
  const std::int64_t depth = a.cols, quads = rounded_up(depth, 4) / 4, padded = rounded_up(cols, kCols);
  const auto* const sums = reinterpret_cast<const std::int32_t*>(packed + padded * quads * 4);
  auto* const corrections = reinterpret_cast<Correction*>(scratch.data());
  Rows rows{static_cast<const std::uint8_t*>(a.data), a.row_stride};
  if (a.is_signed || depth % 4 != 0 || a.col_stride != 1) {
    auto* const copy = reinterpret_cast<std::uint8_t*>(scratch.data()) + rounded_up(a.rows * 8, 64);
    const std::uint8_t flip = a.is_signed ? 0x80 : 0;
    for (std::int64_t i = 0; i < a.rows; ++i) {
      std::uint8_t* to = copy + i * quads * 4;
      const std::uint8_t* from = rows.data + i * a.row_stride;
      for (std::int64_t p = 0; p < depth; ++p) to[p] = static_cast<std::uint8_t>(from[p * a.col_stride] ^ flip);
      for (std::int64_t p = depth; p < quads * 4; ++p) to[p] = 0;
    }
    rows = {copy, quads * 4};
  }
  for (std::int64_t i = 0; i < a.rows; ++i) {
    const auto zero = static_cast<std::uint32_t>(a_zero.at(i)) + (a.is_signed ? 128u : 0u);
    const auto sum = static_cast<std::uint32_t>(sum_of(rows.data + i * rows.stride, depth));
    corrections[i] = {zero, sum - static_cast<std::uint32_t>(depth) * zero};
  }
  alignas(64) std::int32_t tile[32 * kCols];
  std::uint32_t zeros[kCols];
  const std::int64_t tiled = has_amx() && depth % kAmxSteps == 0 ? a.rows / 32 * 32 : 0, others = a.rows - tiled;
  const std::int64_t count = (others + kRows - 1) / kRows;
  const AmxUse use(tiled > 0);
  for (std::int64_t j = 0; j < cols; j += kCols) {
    const std::int64_t width = std::min(kCols, cols - j);
    for (std::int64_t n = 0; n < width; ++n) zeros[n] = static_cast<std::uint32_t>(b_zero.at(j + n)) - (b_is_signed ? 0u : 128u);
    const auto* const panel = reinterpret_cast<const std::int8_t*>(packed) + j * quads * 4;
    check_stop();
    for (std::int64_t i = 0; i < tiled; i += 32) {
      amx_tile(rows.data + i * rows.stride, rows.stride, panel, depth / kAmxSteps, tile);
      store_tile_wide(tile, 32, width, corrections + i, sums + j, zeros, c + i * ldc + j, ldc);
    }
    for (std::int64_t t = 0, i = tiled; t < count; ++t) {
      const std::int64_t n = others / count + (t < others % count ? 1 : 0);
      micro_for(n)(rows.data + i * rows.stride, rows.stride, panel, quads, tile);
      (has_vnni() ? store_tile_wide : store_tile_narrow)(tile, n, width, corrections + i, sums + j, zeros, c + i * ldc + j, ldc);
      i += n;
    }
  }
}

}  // namespace tenon::cpu
#else

namespace tenon::cpu {

bool has_int8_gemm() { return false; }
std::size_t packed_int8_bytes(std::int64_t, std::int64_t) { return 0; }
void pack_int8(const Int8Matrix&, std::byte*) {}
std::size_t int8_scratch_bytes(std::int64_t, std::int64_t) { return 0; }
void gemm_int8(const Int8Matrix&, const std::byte*, bool, std::int64_t, const ZeroPoints&, const ZeroPoints&, std::int32_t*,
               std::int64_t, std::span<std::byte>) {}

}  // namespace tenon::cpu
#endif

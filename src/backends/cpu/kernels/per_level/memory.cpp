// Transposition and streaming copies. Compiled once per instruction set (kernels.cmake).
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/lanes.h"
#include "backends/cpu/kernels/level.h"

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

template <class T>
void transpose_plain(const T* src, std::int64_t src_stride, T* dst, std::int64_t dst_stride, std::int64_t rows,
                     std::int64_t cols) {
  constexpr std::int64_t tile = 32;
  for (std::int64_t j0 = 0; j0 < cols; j0 += tile)
    for (std::int64_t i0 = 0; i0 < rows; i0 += tile)
      for (std::int64_t j = j0; j < j0 + tile && j < cols; ++j)
        for (std::int64_t i = i0; i < i0 + tile && i < rows; ++i) dst[j * dst_stride + i] = src[i * src_stride + j];
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
inline constexpr int kParts = kVectorBytes / 16;             // of 128 bits in a register
inline constexpr int kRegistersPerLine = 64 / kVectorBytes;  // of the cache

// The elements of both registers in turn, within each 128-bit part: from their lower or their upper halves.
template <int Bytes>
TENON_INLINE Register interleave_low(Register x, Register y) {
  if constexpr (Bytes == 1) return TENON_UNPACK(lo, 8)(x, y);
  if constexpr (Bytes == 2) return TENON_UNPACK(lo, 16)(x, y);
  if constexpr (Bytes == 4) return TENON_UNPACK(lo, 32)(x, y);
  if constexpr (Bytes == 8) return TENON_UNPACK(lo, 64)(x, y);
}
template <int Bytes>
TENON_INLINE Register interleave_high(Register x, Register y) {
  if constexpr (Bytes == 1) return TENON_UNPACK(hi, 8)(x, y);
  if constexpr (Bytes == 2) return TENON_UNPACK(hi, 16)(x, y);
  if constexpr (Bytes == 4) return TENON_UNPACK(hi, 32)(x, y);
  if constexpr (Bytes == 8) return TENON_UNPACK(hi, 64)(x, y);
}

// Every 128-bit part of 16 / Bytes registers transposes its own square: in each round the registers' first half is interleaved
// with their second.
template <int Bytes>
TENON_INLINE void transpose_parts(Register* x) {
  constexpr int n = 16 / Bytes;
  Register y[n];
  for (int round = n; round > 1; round /= 2) {
    for (int k = 0; k < n / 2; ++k) {
      y[2 * k] = interleave_low<Bytes>(x[k], x[k + n / 2]);
      y[2 * k + 1] = interleave_high<Bytes>(x[k], x[k + n / 2]);
    }
    for (int k = 0; k < n; ++k) x[k] = y[k];
  }
}

template <bool stream>
TENON_INLINE void put_row(char* p, Register x) {
  if constexpr (stream)
    put_streaming(p, x);
  else
    put(p, x);
}
// Line l of the target, for l below kParts, is part l of the four registers.
template <bool stream>
TENON_INLINE void put_lines(char* p, std::int64_t step, Register a, Register b, Register c, Register d) {
#if TENON_CPU_LEVEL == 4
  const Register ab_even = _mm512_shuffle_i32x4(a, b, 0x88), ab_odd = _mm512_shuffle_i32x4(a, b, 0xdd);
  const Register cd_even = _mm512_shuffle_i32x4(c, d, 0x88), cd_odd = _mm512_shuffle_i32x4(c, d, 0xdd);
  put_row<stream>(p, _mm512_shuffle_i32x4(ab_even, cd_even, 0x88));
  put_row<stream>(p + step, _mm512_shuffle_i32x4(ab_odd, cd_odd, 0x88));
  put_row<stream>(p + 2 * step, _mm512_shuffle_i32x4(ab_even, cd_even, 0xdd));
  put_row<stream>(p + 3 * step, _mm512_shuffle_i32x4(ab_odd, cd_odd, 0xdd));
#elif TENON_CPU_LEVEL == 3
  put_row<stream>(p, _mm256_permute2x128_si256(a, b, 0x20));
  put_row<stream>(p + 32, _mm256_permute2x128_si256(c, d, 0x20));
  put_row<stream>(p + step, _mm256_permute2x128_si256(a, b, 0x31));
  put_row<stream>(p + step + 32, _mm256_permute2x128_si256(c, d, 0x31));
#else
  static_cast<void>(step);
  put_row<stream>(p, a);
  put_row<stream>(p + 16, b);
  put_row<stream>(p + 32, c);
  put_row<stream>(p + 48, d);
#endif
}

// A square whose rows are one cache line, in the source and in the target: every line is read once and written once, whole. (Half
// lines would have to survive in the L1 cache until the other half's turn, and with strides that are powers of two they do not.)
template <int Bytes, bool stream>
TENON_INLINE void transpose_square(const char* src, std::int64_t src_step, char* dst, std::int64_t dst_step) {
  constexpr int n = 16 / Bytes;
  Register quarter[4][kRegistersPerLine][n];
  for (int q = 0; q < 4; ++q) {
    for (int k = 0; k < n; ++k)
      for (int h = 0; h < kRegistersPerLine; ++h) quarter[q][h][k] = get(src + (q * n + k) * src_step + h * kVectorBytes);
    for (int h = 0; h < kRegistersPerLine; ++h) transpose_parts<Bytes>(quarter[q][h]);
  }
  for (int h = 0; h < kRegistersPerLine; ++h)
    for (int k = 0; k < n; ++k)
      put_lines<stream>(dst + (h * kParts * n + k) * dst_step, n * dst_step, quarter[0][h][k], quarter[1][h][k], quarter[2][h][k],
                        quarter[3][h][k]);
}

template <int Bytes, bool stream>
void transpose_squares(const char* src, std::int64_t src_step, char* dst, std::int64_t dst_step, std::int64_t rows,
                       std::int64_t cols) {
  constexpr std::int64_t side = 64 / Bytes;
  // Down the rows inside, so that the target is written along its rows; in tiles, so that the lines next to those read are read
  // soon.
  constexpr std::int64_t tile_rows = 256, tile_cols = 4 * side;
  for (std::int64_t i0 = 0; i0 < rows; i0 += tile_rows)
    for (std::int64_t j0 = 0; j0 < cols; j0 += tile_cols)
      for (std::int64_t j = j0; j < j0 + tile_cols && j < cols; j += side)
        for (std::int64_t i = i0; i < i0 + tile_rows && i < rows; i += side)
          transpose_square<Bytes, stream>(src + i * src_step + j * Bytes, src_step, dst + j * dst_step + i * Bytes, dst_step);
}

template <int Bytes>
void transpose(const void* src, std::int64_t src_stride, void* dst, std::int64_t dst_stride, std::int64_t rows, std::int64_t cols,
               bool stream) {
  using T = typename Element<Bytes>::Type;
  constexpr std::int64_t side = 64 / Bytes;
  const auto* s = static_cast<const T*>(src);
  auto* d = static_cast<T*>(dst);

  // Streaming stores need aligned rows of the target; the rows of the source before the first aligned place use ordinary stores.
  const auto offset = reinterpret_cast<std::uintptr_t>(d) % 64;
  stream = stream && offset % Bytes == 0 && dst_stride * Bytes % 64 == 0;
  if (stream && offset != 0) {
    const auto before = static_cast<std::int64_t>((64 - offset) / Bytes);
    const std::int64_t head = before < rows ? before : rows;
    transpose_plain(s, src_stride, d, dst_stride, head, cols);
    s += head * src_stride;
    d += head;
    rows -= head;
  }

  const std::int64_t full_rows = rows / side * side, full_cols = cols / side * side;
  const auto squares = stream ? transpose_squares<Bytes, true> : transpose_squares<Bytes, false>;
  squares(reinterpret_cast<const char*>(s), src_stride * Bytes, reinterpret_cast<char*>(d), dst_stride * Bytes, full_rows,
          full_cols);
  transpose_plain(s + full_rows * src_stride, src_stride, d + full_rows, dst_stride, rows - full_rows, full_cols);
  transpose_plain(s + full_cols, src_stride, d + full_cols * dst_stride, dst_stride, rows, cols - full_cols);
}

void copy(void* dst, const void* src, std::size_t bytes) {
  constexpr std::size_t kVector = kVectorBytes, kStep = 4 * kVector;
  if (bytes < kVector) {
    __builtin_memcpy(dst, src, bytes);
    return;
  }
  auto* d = static_cast<char*>(dst);
  const auto* s = static_cast<const char*>(src);
  std::size_t i = 0;
  for (; i + kStep <= bytes; i += kStep) {
    const Register a = get(s + i), b = get(s + i + kVector), c = get(s + i + 2 * kVector), e = get(s + i + 3 * kVector);
    put(d + i, a);
    put(d + i + kVector, b);
    put(d + i + 2 * kVector, c);
    put(d + i + 3 * kVector, e);
  }
  for (; i + kVector <= bytes; i += kVector) put(d + i, get(s + i));
  if (i < bytes) put(d + bytes - kVector, get(s + bytes - kVector));
}
void stream_copy(void* dst, const void* src, std::size_t bytes) {
  auto* d = static_cast<char*>(dst);
  const auto* s = static_cast<const char*>(src);
  const std::size_t misaligned = reinterpret_cast<std::uintptr_t>(d) % 64;
  std::size_t head = misaligned == 0 ? 0 : 64 - misaligned;
  if (head > bytes) head = bytes;
  __builtin_memcpy(d, s, head);
  std::size_t i = head;
  for (; i + 64 <= bytes; i += 64) {
    Register line[64 / kVectorBytes];
    __builtin_memcpy(line, s + i, 64);
    for (int k = 0; k < 64 / kVectorBytes; ++k) put_streaming(d + i + k * kVectorBytes, line[k]);
  }
  __builtin_memcpy(d + i, s + i, bytes - i);
}
void stream_fence() { _mm_sfence(); }

#else  // no vector instructions known

template <int Bytes>
void transpose(const void* src, std::int64_t src_stride, void* dst, std::int64_t dst_stride, std::int64_t rows, std::int64_t cols,
               bool) {
  using T = typename Element<Bytes>::Type;
  transpose_plain(static_cast<const T*>(src), src_stride, static_cast<T*>(dst), dst_stride, rows, cols);
}
void copy(void* dst, const void* src, std::size_t bytes) { __builtin_memcpy(dst, src, bytes); }
void stream_copy(void* dst, const void* src, std::size_t bytes) { __builtin_memcpy(dst, src, bytes); }
void stream_fence() {}
#endif

}  // namespace

void level::add_memory_kernels(Kernels& table) {
  table.transpose[0] = transpose<1>;
  table.transpose[1] = transpose<2>;
  table.transpose[2] = transpose<4>;
  table.transpose[3] = transpose<8>;
  table.copy = copy;
  table.stream_copy = stream_copy;
  table.stream_fence = stream_fence;
}

}  // namespace tenon::cpu

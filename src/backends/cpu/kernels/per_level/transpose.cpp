// Transposition. Compiled once per instruction set (kernels.cmake).
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/level.h"
#include "backends/cpu/kernels/registers.h"

namespace tenon::cpu {
namespace {

template <class T>
[[gnu::noinline]] void transpose_plain(const T* src, std::int64_t src_stride, T* dst, std::int64_t dst_stride, std::int64_t rows,
                                       std::int64_t cols) {
  constexpr std::int64_t tile = 32;
  for (std::int64_t j0 = 0; j0 < cols; j0 += tile)
    for (std::int64_t i0 = 0; i0 < rows; i0 += tile)
      for (std::int64_t j = j0; j < j0 + tile && j < cols; ++j)
        TENON_PLAIN_LOOP for (std::int64_t i = i0; i < i0 + tile && i < rows; ++i) dst[j * dst_stride + i] =
            src[i * src_stride + j];
}

// A few rows of the source side by side in the target: dst[j * Rows + i] = src[i * src_stride + j].
template <int Rows, class T>
void interleave(const T* src, std::int64_t src_stride, T* __restrict dst, std::int64_t cols) {
  TENON_PLAIN_LOOP for (std::int64_t j = 0; j < cols; ++j) for (int i = 0; i < Rows; ++i) dst[j * Rows + i] =
      src[i * src_stride + j];
}

#if TENON_CPU_LEVEL > 0
inline constexpr int kParts = kVectorBytes / 16;  // of 128 bits in a register

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

TENON_INLINE void put_row(char* p, Register x, bool stream) {
  asm("" : "+r"(stream));  // else the compiler makes the loop around it twice
  if (stream)
    put_streaming(p, x);
  else
    put(p, x);
}
// Line l of the target, for l below kParts, is part l of the four registers.
TENON_INLINE void put_lines(char* p, std::int64_t step, Register a, Register b, Register c, Register d, bool stream) {
#if TENON_CPU_LEVEL == 4
  const Register ab_even = _mm512_shuffle_i32x4(a, b, 0x88), ab_odd = _mm512_shuffle_i32x4(a, b, 0xdd);
  const Register cd_even = _mm512_shuffle_i32x4(c, d, 0x88), cd_odd = _mm512_shuffle_i32x4(c, d, 0xdd);
  put_row(p, _mm512_shuffle_i32x4(ab_even, cd_even, 0x88), stream);
  put_row(p + step, _mm512_shuffle_i32x4(ab_odd, cd_odd, 0x88), stream);
  put_row(p + 2 * step, _mm512_shuffle_i32x4(ab_even, cd_even, 0xdd), stream);
  put_row(p + 3 * step, _mm512_shuffle_i32x4(ab_odd, cd_odd, 0xdd), stream);
#elif TENON_CPU_LEVEL == 3
  put_row(p, _mm256_permute2x128_si256(a, b, 0x20), stream);
  put_row(p + 32, _mm256_permute2x128_si256(c, d, 0x20), stream);
  put_row(p + step, _mm256_permute2x128_si256(a, b, 0x31), stream);
  put_row(p + step + 32, _mm256_permute2x128_si256(c, d, 0x31), stream);
#else
  static_cast<void>(step);
  put_row(p, a, stream);
  put_row(p + 16, b, stream);
  put_row(p + 32, c, stream);
  put_row(p + 48, d, stream);
#endif
}

// A square whose rows are one cache line, in the source and in the target: every line is read once and written once, whole. (Half
// lines would have to survive in the L1 cache until the other half's turn, and with strides that are powers of two they do not.)
template <int Bytes>
TENON_INLINE void transpose_square(const char* src, std::int64_t src_step, char* dst, std::int64_t dst_step, bool stream) {
  constexpr int n = 16 / Bytes;
  Register quarter[4][kRegistersPerLine][n];
  for (int q = 0; q < 4; ++q) {
    for (int k = 0; k < n; ++k)
      for (int h = 0; h < kRegistersPerLine; ++h) quarter[q][h][k] = get(src + (q * n + k) * src_step + h * kVectorBytes);
    for (int h = 0; h < kRegistersPerLine; ++h) transpose_parts<Bytes>(quarter[q][h]);
  }
  for (int h = 0; h < kRegistersPerLine; ++h)
    for (int k = 0; k < n; ++k)
      put_lines(dst + (h * kParts * n + k) * dst_step, n * dst_step, quarter[0][h][k], quarter[1][h][k], quarter[2][h][k],
                quarter[3][h][k], stream);
}

template <int Bytes>
[[gnu::noinline]] void transpose_squares(const char* src, std::int64_t src_step, char* dst, std::int64_t dst_step,
                                         std::int64_t rows, std::int64_t cols, bool stream) {
  constexpr std::int64_t side = 64 / Bytes;
  // Down the rows inside, so that the target is written along its rows; in tiles, so that the lines next to those read are read
  // soon.
  constexpr std::int64_t tile_rows = 256, tile_cols = 4 * side;
  for (std::int64_t i0 = 0; i0 < rows; i0 += tile_rows)
    for (std::int64_t j0 = 0; j0 < cols; j0 += tile_cols)
      for (std::int64_t j = j0; j < j0 + tile_cols && j < cols; j += side)
        for (std::int64_t i = i0; i < i0 + tile_rows && i < rows; i += side)
          transpose_square<Bytes>(src + i * src_step + j * Bytes, src_step, dst + j * dst_step + i * Bytes, dst_step, stream);
}

// Copies at most 64 bytes.
TENON_INLINE void copy_line(char* dst, const char* src, std::int64_t bytes) {
#if TENON_CPU_LEVEL == 4
  copy_part(dst, src, static_cast<std::size_t>(bytes));
#else
  __builtin_memcpy(dst, src, static_cast<std::size_t>(bytes));
#endif
}

// What is smaller than a square, in one.
template <int Bytes>
void transpose_part(const char* src, std::int64_t src_step, char* dst, std::int64_t dst_step, std::int64_t rows,
                    std::int64_t cols) {
  constexpr std::int64_t side = 64 / Bytes;
  alignas(64) char from[side * 64] = {}, to[side * 64];
  for (std::int64_t i = 0; i < rows; ++i) copy_line(from + i * 64, src + i * src_step, cols * Bytes);
  transpose_squares<Bytes>(from, 64, to, 64, side, side, false);
  for (std::int64_t j = 0; j < cols; ++j) copy_line(dst + j * dst_step, to + j * 64, rows * Bytes);
}

// Fewer rows or columns than a square has.
template <int Bytes>
[[gnu::noinline]] void transpose_strip(const char* src, std::int64_t src_step, char* dst, std::int64_t dst_step,
                                       std::int64_t rows, std::int64_t cols) {
  using T = typename Element<Bytes>::Type;
  constexpr std::int64_t side = 64 / Bytes, kFew = 4;
  if (rows <= kFew || cols <= kFew)
    return transpose_plain(reinterpret_cast<const T*>(src), src_step / Bytes, reinterpret_cast<T*>(dst), dst_step / Bytes, rows,
                           cols);
  for (std::int64_t j = 0; j < cols; j += side)
    for (std::int64_t i = 0; i < rows; i += side)
      transpose_part<Bytes>(src + i * src_step + j * Bytes, src_step, dst + j * dst_step + i * Bytes, dst_step,
                            rows - i < side ? rows - i : side, cols - j < side ? cols - j : side);
}

// Each of |cols| elements |times| times, which a line has room for: lines that overlap, each over the end of the one before.
template <int Bytes, class T>
void repeat_each(const T* src, T* dst, std::int64_t times, std::int64_t cols) {
  constexpr std::int64_t side = 64 / Bytes;
  if constexpr (Bytes == 2 || Bytes == 4)
    if (times == 2) return interleave<2>(src, 0, dst, cols);
  const std::int64_t whole = cols - (side + times - 1) / times;
  std::int64_t j = 0;
  for (; j < whole; ++j, dst += times) {
    Register x;
    repeat_element<T>(src + j, x);
    for (int k = 0; k < kRegistersPerLine; ++k) put(reinterpret_cast<char*>(dst) + k * kVectorBytes, x);
  }
  for (; j < cols; ++j)
    for (std::int64_t i = 0; i < times; ++i) *dst++ = src[j];
}

template <int Bytes>
void transpose(const void* src, std::int64_t src_stride, void* dst, std::int64_t dst_stride, std::int64_t rows, std::int64_t cols,
               bool stream) {
  using T = typename Element<Bytes>::Type;
  constexpr std::int64_t side = 64 / Bytes;
  const auto* s = static_cast<const T*>(src);
  auto* d = static_cast<T*>(dst);
  if (dst_stride == rows) {
    if (src_stride == 0 && rows <= side) return repeat_each<Bytes>(s, d, rows, cols);
    // Of other sizes they are rare, and the code is long.
    if constexpr (Bytes == 2 || Bytes == 4) {
      if (rows == 2) return interleave<2>(s, src_stride, d, cols);
      if (rows == 3) return interleave<3>(s, src_stride, d, cols);
      if (rows == 4) return interleave<4>(s, src_stride, d, cols);
    }
  }

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

  const auto* from = reinterpret_cast<const char*>(s);
  auto* to = reinterpret_cast<char*>(d);
  const std::int64_t src_step = src_stride * Bytes, dst_step = dst_stride * Bytes;
  const std::int64_t full_rows = rows / side * side, full_cols = cols / side * side;
  transpose_squares<Bytes>(from, src_step, to, dst_step, full_rows, full_cols, stream);
  // What is left, in squares that overlap those before, if there are any.
  const auto left = [&](std::int64_t i, std::int64_t j, std::int64_t n, std::int64_t m, bool is_square) {
    const char* const source = from + i * src_step + j * Bytes;
    char* const target = to + i * Bytes + j * dst_step;
    if (is_square)
      transpose_squares<Bytes>(source, src_step, target, dst_step, n, m, false);
    else
      transpose_strip<Bytes>(source, src_step, target, dst_step, n, m);
  };
  const bool has_rows = full_rows > 0, has_both = has_rows && full_cols > 0;
  const std::int64_t last_row = has_rows ? rows - side : 0, last_col = full_cols > 0 ? cols - side : 0;
  if (full_rows < rows) left(last_row, 0, rows - last_row, full_cols, has_rows);
  if (full_cols == cols) return;
  left(0, last_col, has_both ? full_rows : rows, cols - last_col, has_both);
  if (has_both && full_rows < rows) left(last_row, last_col, side, side, true);
}

#else  // no vector instructions known

template <int Bytes>
void transpose(const void* src, std::int64_t src_stride, void* dst, std::int64_t dst_stride, std::int64_t rows, std::int64_t cols,
               bool) {
  using T = typename Element<Bytes>::Type;
  transpose_plain(static_cast<const T*>(src), src_stride, static_cast<T*>(dst), dst_stride, rows, cols);
}
#endif

}  // namespace

void level::add_transpose_kernels(Kernels& table) {
  table.transpose[0] = transpose<1>;
  table.transpose[1] = transpose<2>;
  table.transpose[2] = transpose<4>;
  table.transpose[3] = transpose<8>;
}

}  // namespace tenon::cpu

#include "backends/cpu/loop/short_rows.h"

#include <algorithm>

#include "backends/cpu/kernels/kernels.h"

namespace tenon::cpu {
namespace {

// The compiler unrolls the few columns it knows.
template <class T, int columns>
void gather_rows_of(T* out, const T* in, std::int64_t rows, std::int64_t row_stride, std::int64_t col_stride) {
  for (std::int64_t r = 0; r < rows; ++r, in += row_stride, out += columns)
    for (std::int64_t c = 0; c < columns; ++c) out[c] = in[c * col_stride];
}

template <class T>
void gather_rows_as(void* to, const void* from, std::int64_t rows, std::int64_t row_stride, std::int64_t cols,
                    std::int64_t col_stride) {
  const T* in = static_cast<const T*>(from);
  T* out = static_cast<T*>(to);
  switch (cols) {
    case 1: return gather_rows_of<T, 1>(out, in, rows, row_stride, col_stride);
    case 2: return gather_rows_of<T, 2>(out, in, rows, row_stride, col_stride);
    case 3: return gather_rows_of<T, 3>(out, in, rows, row_stride, col_stride);
    case 4: return gather_rows_of<T, 4>(out, in, rows, row_stride, col_stride);
    default:
      for (std::int64_t r = 0; r < rows; ++r, in += row_stride, out += cols)
        for (std::int64_t c = 0; c < cols; ++c) out[c] = in[c * col_stride];
  }
}

void gather_rows(void* out, const void* in, std::int64_t rows, std::int64_t row_stride, std::int64_t cols,
                 std::int64_t col_stride, std::size_t size) {
  switch (size) {
    case 1: return gather_rows_as<std::uint8_t>(out, in, rows, row_stride, cols, col_stride);
    case 2: return gather_rows_as<std::uint16_t>(out, in, rows, row_stride, cols, col_stride);
    case 4: return gather_rows_as<std::uint32_t>(out, in, rows, row_stride, cols, col_stride);
    default: return gather_rows_as<std::uint64_t>(out, in, rows, row_stride, cols, col_stride);
  }
}

}  // namespace

void load_short_rows(std::byte* out, const std::byte* in, std::int64_t rows, std::int64_t row_stride, std::int64_t cols,
                     std::int64_t col_stride, std::size_t size) {
  const std::int64_t bytes = cols * static_cast<std::int64_t>(size);
  const auto copy = [&](std::byte* to, const std::byte* from, std::int64_t count) {
    kernels().copy(to, from, static_cast<std::size_t>(count * bytes));
  };
  if (col_stride == 1 && row_stride == cols) return copy(out, in, rows);
  if (row_stride != 0) return gather_rows(out, in, rows, row_stride, cols, col_stride, size);
  // One row again and again: what is there is doubled.
  gather_rows(out, in, std::min<std::int64_t>(rows, 1), 0, cols, col_stride, size);
  for (std::int64_t done = 1; done < rows; done *= 2) copy(out + done * bytes, out, std::min(done, rows - done));
}

}  // namespace tenon::cpu

// Many rows of a few elements at once.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tenon::cpu {

// out[r * cols + c] = in[r * row_stride + c * col_stride] for r in [0, rows), c in [0, cols); strides in elements of |size|
// bytes. Any number of columns; meant for up to kShortRow.
void load_short_rows(std::byte* out, const std::byte* in, std::int64_t rows, std::int64_t row_stride, std::int64_t cols,
                     std::int64_t col_stride, std::size_t size);

}  // namespace tenon::cpu

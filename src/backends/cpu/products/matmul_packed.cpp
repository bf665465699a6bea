#include "backends/cpu/products/matmul_packed.h"

#include <algorithm>

#include "backends/cpu/primitives/split.h"

namespace tenon::cpu {

void packed_matmul(ThreadPool& pool, const Matrix<float>& a, const float* packed, std::int64_t cols, float* out,
                   const Finish& finish) {
  // A band of the result stays in the L2 cache until its epilogue is computed.
  constexpr std::int64_t kBandElements = 192 * 1024;
  const std::int64_t unit = packed_layout().cols, panels = (cols + unit - 1) / unit;
  const std::int64_t most = std::clamp<std::int64_t>(kBandElements / cols, 48, 240);
  std::int64_t bands = (a.rows + most - 1) / most;
  std::int64_t parts = 1;
  if (pool.threads() > 1 && a.rows * a.cols * cols > 8 * kGrain) {
    const std::int64_t wanted = 2 * pool.threads();
    bands = std::max(bands, std::min(wanted, a.rows / 48));
    parts = std::clamp<std::int64_t>((wanted + bands - 1) / std::max<std::int64_t>(1, bands), 1, panels);
  }
  bands = std::max<std::int64_t>(1, bands);
  pool.for_each(bands * parts, [&](std::int64_t task, int) {
    const Range rows = part_of(a.rows, bands, task / parts), columns = part_of(cols, parts, task % parts, unit);
    if (rows.begin == rows.end || columns.begin == columns.end) return;
    gemm_packed_right(a.band(rows.begin, rows.end), packed, cols, columns.begin, columns.end, out + rows.begin * cols, cols);
    if (!finish.epilogue || finish.epilogue->empty()) return;
    for (std::int64_t row = rows.begin; row < rows.end; ++row) {
      float* const line = out + row * cols + columns.begin;
      finish.apply(line, line, row, columns.begin, columns.end - columns.begin);
    }
  });
}

void finish_rows(ThreadPool& pool, const Finish& finish, std::int64_t rows, float* out) {
  if (!finish.epilogue || finish.epilogue->empty()) return;
  for_ranges(pool, rows, finish.cols * static_cast<std::int64_t>(finish.epilogue->steps.size()),
             [&](std::int64_t begin, std::int64_t end, int) {
               for (std::int64_t row = begin; row < end; ++row)
                 finish.apply(out + row * finish.cols, out + row * finish.cols, row, 0, finish.cols);
             });
}

}  // namespace tenon::cpu

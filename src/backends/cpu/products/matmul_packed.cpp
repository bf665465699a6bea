#include "backends/cpu/products/matmul_packed.h"

#include <algorithm>

#include "backends/cpu/primitives/split.h"

namespace tenon::cpu {

namespace {

// How a product is cut: into |bands| of rows times |parts| of columns.
struct Cut {
  std::int64_t bands = 1, parts = 1;
};

std::int64_t ceiling(std::int64_t n, std::int64_t of) { return (n + of - 1) / of; }

// A part of the result stays in the L2 cache until its epilogue is computed.
constexpr std::int64_t kPartElements = 192 * 1024;

Cut cut_small(std::int64_t rows, std::int64_t depth, std::int64_t cols, std::int64_t panels, int threads) {
  const std::int64_t most = std::clamp<std::int64_t>(kPartElements / cols, 48, 240);
  Cut cut{ceiling(rows, most), 1};
  if (threads > 1 && rows * depth * cols > 8 * kGrain) {
    const std::int64_t wanted = 2 * threads;
    cut.bands = std::max(cut.bands, std::min(wanted, rows / 48));
    cut.parts = std::clamp<std::int64_t>(ceiling(wanted, std::max<std::int64_t>(1, cut.bands)), 1, panels);
  }
  cut.bands = std::max<std::int64_t>(1, cut.bands);
  return cut;
}

// The cut that takes the least time if all threads work alike. Time is counted in cycles of one step of the inner axis: a row and
// a panel multiplied, half a cycle to pack a row, and what it takes to fetch a panel from beyond the L2 cache.
Cut cut_of(std::int64_t rows, std::int64_t depth, std::int64_t cols, std::int64_t panels, int threads) {
  constexpr std::int64_t kLarge = std::int64_t{1} << 22, kRows = 240;
  if (rows * depth * cols < kLarge || rows < 24) return cut_small(rows, depth, cols, panels, threads);
  Cut best;
  double least = 0;
  for (std::int64_t bands = ceiling(rows, kRows); bands <= std::min<std::int64_t>(ceiling(rows, 24), 64); ++bands)
    for (std::int64_t rounds = 1; rounds <= 4; ++rounds) {
      const std::int64_t band_rows = ceiling(rows, bands);
      const std::int64_t fitting = ceiling(band_rows * panels * packed_layout().cols, kPartElements);
      const std::int64_t parts = std::min(panels, std::max(fitting, std::max<std::int64_t>(1, rounds * threads / bands)));
      const auto height = static_cast<double>(band_rows), width = static_cast<double>(ceiling(panels, parts));
      const double time = static_cast<double>(ceiling(bands * parts, threads)) * (height * width + height / 2 + 6 * width);
      if (least == 0 || time < least) {
        least = time;
        best = {bands, parts};
      }
    }
  return best;
}

}  // namespace

void packed_matmul(ThreadPool& pool, const Matrix<float>& a, const float* packed, std::int64_t cols, float* out,
                   const Finish& finish) {
  const std::int64_t unit = packed_layout().cols, panels = ceiling(cols, unit);
  const Cut cut = cut_of(a.rows, a.cols, cols, panels, pool.threads());
  pool.for_each(cut.bands * cut.parts, [&](std::int64_t task, int) {
    const Range rows = part_of(a.rows, cut.bands, task / cut.parts), columns = part_of(cols, cut.parts, task % cut.parts, unit);
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

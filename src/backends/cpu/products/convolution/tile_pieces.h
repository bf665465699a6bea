// The tiles of a band of results whose places are counted along the rows of planes (planes.h): two vectors of places each, and
// where their columns go.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/cpu/products/convolution/planes.h"
#include "backends/cpu/products/epilogue.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tenon::cpu {

inline constexpr std::int64_t kTileCols = 32;
inline constexpr int kMostPieces = static_cast<int>(kTileCols);

// A piece of a tile's columns that are neighbours in the result.
struct Piece {
  std::int32_t column, count;  // at most 16
  std::int64_t place;          // in the result, from the begin of the band
};

// Vectors of 16 places, either one after the other through the planes, with what is beyond the end of a row computed in vain, or
// from the begin of each row: whichever are fewer.
class TileWalk {
 public:
  TileWalk(const Planes& planes, std::int64_t rows, std::int64_t slices = 1)
      : pitch_(planes.pitch),
        width_(planes.at.out[2]),
        slice_step_(planes.slice_step()),
        slice_places_(planes.at.out[1] * width_) {
    const std::int64_t extent = (rows - 1) * pitch_ + width_, along = (extent + 15) / 16, per_row = (width_ + 15) / 16;
    is_by_rows_ = rows * per_row <= along;
    per_row_ = is_by_rows_ ? per_row : along;
    row_extent_ = is_by_rows_ ? width_ : extent;
    per_slice_ = is_by_rows_ ? rows * per_row : along;
    vectors_ = slices * per_slice_;
  }

  std::int64_t vectors() const { return vectors_; }
  // Where vector |v| is in the planes. A tile's second vector may be missing: then it is the first one again.
  std::int64_t place(std::int64_t v) const { return v / per_slice_ * slice_step_ + place_in_slice(v % per_slice_); }
  std::int64_t second_place(std::int64_t v) const { return place(v + 1 < vectors_ ? v + 1 : v); }

  // Of the tile of vectors |v| and |v| + 1.
  int pieces(std::int64_t v, Piece* pieces) const {
    int count = add_pieces(v, 0, pieces);
    if (v + 1 < vectors_) count += add_pieces(v + 1, 16, pieces + count);
    return count;
  }

 private:
  std::int64_t place_in_slice(std::int64_t v) const { return v / per_row_ * pitch_ + v % per_row_ * 16; }

  int add_pieces(std::int64_t number, std::int64_t first, Piece* pieces) const {
    const std::int64_t v = number % per_slice_, start = number / per_slice_ * slice_places_;
    const std::int64_t begin = place_in_slice(v), cols = std::min<std::int64_t>(16, row_extent_ - v % per_row_ * 16);
    int count = 0;
    for (std::int64_t column = 0; column < cols;) {
      const std::int64_t y = (begin + column) / pitch_, x = (begin + column) % pitch_;
      if (x >= width_) {
        column += pitch_ - x;
        continue;
      }
      const std::int64_t n = std::min(width_ - x, cols - column);
      pieces[count++] = {static_cast<std::int32_t>(first + column), static_cast<std::int32_t>(n), start + y * width_ + x};
      column += n;
    }
    return count;
  }

  std::int64_t pitch_, width_, slice_step_, slice_places_;
  bool is_by_rows_ = false;
  std::int64_t per_row_ = 1, row_extent_ = 0, per_slice_ = 1, vectors_ = 0;
};

// Whether tiles of neighbouring places are the better way to multiply by |rows| rows of weights than columns that are laid out.
// Both cost about as much as their products: tiles those of places that are computed in vain, columns those of laying out runs of
// neighbours, |copies| times the cost for f32.
inline bool are_tiles_better(const Planes& planes, std::int64_t rows, double copies) {
  const std::int64_t slices = planes.has_slices() ? planes.at.out[0] : 1;
  const std::int64_t tiles = (TileWalk(planes, planes.at.out[1], slices).vectors() + 1) / 2;
  const double places = static_cast<double>(slices * planes.at.out[1] * planes.at.out[2]);
  const double in_vain = static_cast<double>(tiles * kTileCols) / places - 1, products = static_cast<double>(rows) / kTileCols;
  return in_vain * products < copies * (0.3 + 8 / static_cast<double>(planes.at.out[2]));
}

#if defined(__x86_64__)
// |tile|: rows of kTileCols.
[[gnu::target("avx512f,avx512bw")]] inline void store_rows(const float* tile, std::int64_t rows, const Piece* pieces, int count,
                                                           float* c, std::int64_t ldc, bool add, const TileEnd* end,
                                                           std::int64_t first_row) {
  for (int i = 0; i < count; ++i) {
    const auto mask = static_cast<__mmask16>(pieces[i].count >= 16 ? 0xffff : (1u << pieces[i].count) - 1);
    const float* from = tile + pieces[i].column;
    float* to = c + pieces[i].place;
    for (std::int64_t r = 0; r < rows; ++r, from += kTileCols, to += ldc) {
      __m512 value = _mm512_maskz_loadu_ps(mask, from);
      if (add) value = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, to), value);
      if (end) {
        if (end->scale) value = _mm512_mul_ps(value, _mm512_set1_ps(end->scale[first_row + r]));
        if (end->shift) value = _mm512_add_ps(value, _mm512_set1_ps(end->shift[first_row + r]));
        if (end->relu)
          value = _mm512_mask_mov_ps(value, _mm512_cmp_ps_mask(value, _mm512_setzero_ps(), _CMP_LT_OQ), _mm512_setzero_ps());
      }
      _mm512_mask_storeu_ps(to, mask, value);
    }
  }
}
#endif

}  // namespace tenon::cpu

#include "backends/cpu/products/convolution/planes.h"

#include <algorithm>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tenon::cpu {
namespace {

constexpr std::int64_t kSlack = 64;  // kernels read whole vectors, past the end of a plane; rows are written in whole vectors

// row[i] = from[i * step] for i in [begin, end), 0 for the others below |pitch|; what is behind them may be overwritten.
using FillRow = void (*)(const float* from, std::int64_t step, std::int64_t begin, std::int64_t end, std::int64_t pitch,
                         float* row);

void fill_row_plain(const float* from, std::int64_t step, std::int64_t begin, std::int64_t end, std::int64_t pitch, float* row) {
  for (std::int64_t i = 0; i < begin; ++i) row[i] = 0;
  for (std::int64_t i = begin; i < end; ++i) row[i] = from[i * step];
  for (std::int64_t i = end; i < pitch; ++i) row[i] = 0;
}

#if defined(__x86_64__)
// The bits [begin, end) of 16.
inline __mmask16 bits(std::int64_t begin, std::int64_t end) {
  const auto below = [](std::int64_t n) { return n <= 0 ? 0u : n >= 16 ? 0xffffu : (1u << n) - 1; };
  return static_cast<__mmask16>(below(end) & ~below(begin));
}

[[gnu::target("avx512f,avx512bw")]] void fill_row_wide(const float* from, std::int64_t step, std::int64_t begin, std::int64_t end,
                                                       std::int64_t pitch, float* row) {
  if (step == 1) {
    for (std::int64_t i = 0; i < pitch; i += 16) {
      const bool is_whole = i >= begin && i + 16 <= end;
      _mm512_storeu_ps(row + i, is_whole ? _mm512_loadu_ps(from + i) : _mm512_maskz_loadu_ps(bits(begin - i, end - i), from + i));
    }
  } else if (step == 2) {
    const __m512i even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    for (std::int64_t i = 0; i < pitch; i += 16) {
      const std::int64_t low = 2 * (begin - i), high = 2 * (end - i) - 1;
      if (low <= 0 && high >= 32) {
        _mm512_storeu_ps(row + i,
                         _mm512_permutex2var_ps(_mm512_loadu_ps(from + 2 * i), even, _mm512_loadu_ps(from + 2 * i + 16)));
        continue;
      }
      const __m512 a = _mm512_maskz_loadu_ps(bits(low, high), from + 2 * i);
      const __m512 b = _mm512_maskz_loadu_ps(bits(low - 16, high - 16), from + 2 * i + 16);
      _mm512_storeu_ps(row + i, _mm512_permutex2var_ps(a, even, b));
    }
  } else {
    fill_row_plain(from, step, begin, end, pitch, row);
  }
}

// The same for |rows| rows, |from_step| apart, whose masks are the same: rows are short, and making a mask takes as long as a
// row.
constexpr std::int64_t kMaskedVectors = 4;

[[gnu::target("avx512f,avx512bw")]] void fill_short_rows(const float* from, std::int64_t from_step, std::int64_t step,
                                                         std::int64_t begin, std::int64_t end, std::int64_t pitch,
                                                         std::int64_t rows, float* to) {
  __mmask16 first[kMaskedVectors], second[kMaskedVectors];
  const std::int64_t vectors = (pitch + 15) / 16;
  for (std::int64_t v = 0; v < vectors; ++v) {
    const std::int64_t low = step * (begin - 16 * v), high = step * (end - 16 * v) - (step - 1);
    first[v] = bits(low, high);
    second[v] = bits(low - 16, high - 16);
  }
  const __m512i even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
  if (step == 1) {
    for (std::int64_t y = 0; y < rows; ++y, from += from_step, to += pitch)
      for (std::int64_t v = 0; v < vectors; ++v) _mm512_storeu_ps(to + 16 * v, _mm512_maskz_loadu_ps(first[v], from + 16 * v));
    return;
  }
  for (std::int64_t y = 0; y < rows; ++y, from += from_step, to += pitch)
    for (std::int64_t v = 0; v < vectors; ++v) {
      const __m512 a = _mm512_maskz_loadu_ps(first[v], from + 32 * v);
      const __m512 b = _mm512_maskz_loadu_ps(second[v], from + 32 * v + 16);
      _mm512_storeu_ps(to + 16 * v, _mm512_permutex2var_ps(a, even, b));
    }
}

bool has_short_rows(std::int64_t step, std::int64_t pitch) {
  static const bool has = __builtin_cpu_supports("avx512bw");
  return has && (step == 1 || step == 2) && pitch <= 16 * kMaskedVectors;
}

FillRow fill_row() {
  static const FillRow best = __builtin_cpu_supports("avx512bw") ? fill_row_wide : fill_row_plain;
  return best;
}
#else
FillRow fill_row() { return fill_row_plain; }
bool has_short_rows(std::int64_t, std::int64_t) { return false; }
void fill_short_rows(const float*, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, float*) {}
#endif

}  // namespace

Sliding sliding_of(const View& x, const Shape& weight, const ConvAttr& attr, const Shape& out) {
  Spatial size{1, 1, 1};
  for (int i = 2; i < weight.rank(); ++i) size[static_cast<std::size_t>(i - 2)] = weight[i];
  Sliding at(attr, size, x.shape, x.strides, out);
  at.squeeze();
  return at;
}

Planes::Planes(const Sliding& sliding, std::int64_t most) : at(sliding) {
  pitch = at.out[2] + (at.size[2] - 1) * at.dilation[2] / at.stride[2];
  set_band(std::clamp<std::int64_t>(most / std::max<std::int64_t>(1, pitch), 1, at.out[1]));
}

void Planes::set_band(std::int64_t rows, std::int64_t slice_count) {
  band = rows;
  slices = slice_count;
  plane_elements = (rows_for(band) * pitch + kSlack + 15) / 16 * 16;
  slice_elements = plane_elements * at.stride[1] * at.stride[2];
  elements = slice_elements * slices_for(slices);
}

std::int64_t Planes::offset(std::int64_t tap) const {
  const std::int64_t row = tap / at.size[2], y = row % at.size[1] * at.dilation[1], x = tap % at.size[2] * at.dilation[2];
  return row / at.size[1] * slice_elements + (y % at.stride[1] * at.stride[2] + x % at.stride[2]) * plane_elements +
         y / at.stride[1] * pitch + x / at.stride[2];
}

Range Planes::columns_inside(std::int64_t rx) const {
  const std::int64_t begin = std::clamp<std::int64_t>((at.pad[2] - rx + at.stride[2] - 1) / at.stride[2], 0, pitch);
  const std::int64_t reach = at.in[2] - 1 + at.pad[2] - rx;
  return {begin, std::clamp<std::int64_t>(reach < 0 ? 0 : reach / at.stride[2] + 1, begin, pitch)};
}

void Planes::fill(const float* image, std::int64_t slice, std::int64_t count, std::int64_t first, std::int64_t rows,
                  float* planes) const {
  for (std::int64_t tap = 0; tap < slices_for(count); ++tap, planes += slice_elements) {
    const std::int64_t source = at.source(0, slice, tap);
    if (at.is_inside(0, source))
      fill_slice(image + source * at.steps[0], first, rows, planes);
    else
      std::fill_n(planes, slice_elements, 0.0f);
  }
}

void Planes::fill_slice(const float* image, std::int64_t first, std::int64_t rows, float* planes) const {
  const FillRow fill_one = fill_row();
  const std::int64_t needed = rows_for(rows);
  for (std::int64_t ry = 0; ry < at.stride[1]; ++ry)
    for (std::int64_t rx = 0; rx < at.stride[2]; ++rx) {
      float* const plane = planes + (ry * at.stride[2] + rx) * plane_elements;
      const auto [begin_x, end_x] = columns_inside(rx);
      if (has_short_rows(at.stride[2] * at.steps[2], pitch)) {
        // Row y is row (first + y) * stride + ry - pad of the image.
        const std::int64_t stride = at.stride[1], start = first * stride + ry - at.pad[1];
        const std::int64_t above = std::clamp<std::int64_t>((-start + stride - 1) / stride, 0, needed);
        const std::int64_t inside_end = start >= at.in[1] ? 0 : (at.in[1] - 1 - start) / stride + 1;
        const std::int64_t below = std::clamp<std::int64_t>(inside_end, above, needed);
        for (std::int64_t i = 0; i < above * pitch; ++i) plane[i] = 0;
        fill_short_rows(image + (start + above * stride) * at.steps[1] + (rx - at.pad[2]) * at.steps[2], stride * at.steps[1],
                        at.stride[2] * at.steps[2], begin_x, end_x, pitch, below - above, plane + above * pitch);
        std::fill(plane + below * pitch, plane + needed * pitch + kSlack, 0.0f);
        continue;
      }
      for (std::int64_t y = 0; y < needed; ++y) {
        float* const row = plane + y * pitch;
        const std::int64_t source = (first + y) * at.stride[1] + ry - at.pad[1];
        if (source < 0 || source >= at.in[1]) {
          for (std::int64_t i = 0; i < pitch; ++i) row[i] = 0;
          continue;
        }
        fill_one(image + source * at.steps[1] + (rx - at.pad[2]) * at.steps[2], at.stride[2] * at.steps[2], begin_x, end_x, pitch,
                 row);
      }
      std::fill_n(plane + needed * pitch, kSlack, 0.0f);
    }
}

}  // namespace tenon::cpu

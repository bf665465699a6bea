#include "backends/cpu/primitives/matmul/bf16/few_rows.h"

#include <algorithm>
#include <cstring>
#include <utility>

#if defined(__x86_64__) && defined(__linux__)
#include <immintrin.h>
#define TENON_AVX512 [[gnu::target("avx512f,avx512bw,avx512bf16")]] inline
#endif

namespace tenon::cpu {

#if defined(__x86_64__) && defined(__linux__)
namespace {

constexpr int kLanes = 16, kPairs = 32;
constexpr std::int64_t kTogether = 8;  // rows of a kernel, at most
constexpr std::int64_t kRun = 1024;    // terms at a time: a's stay in the L1 cache
typedef float Lanes __attribute__((vector_size(64)));

// The product of a run of terms, c += or =. Row i of a is at a + i * kRun, padded with zeros to a multiple of kPairs terms.
struct Part {
  const Bf16Bits* a;
  const Bf16Bits* b;
  std::int64_t b_stride, terms, rows;
  float* c;
  std::int64_t row_step, col_step;
  bool add;

  void store(std::int64_t i, std::int64_t j, float sum) const {
    if (i >= rows) return;  // a kernel for more rows
    float& to = c[i * row_step + j * col_step];
    to = add ? to + sum : sum;
  }
};

TENON_AVX512 __m512i load_first(const Bf16Bits* from, std::int64_t n) {
  return n >= kPairs ? _mm512_loadu_si512(from) : _mm512_maskz_loadu_epi16((__mmask32{1} << n) - 1, from);
}

// The least of all numbers but 0, doubled and less 1: subnormal numbers are below 0xff.
struct Least {
  __m512i value;
};
TENON_AVX512 void see(Least& least, __m512i x) {
  least.value = _mm512_min_epu16(least.value, _mm512_sub_epi16(_mm512_add_epi16(x, x), _mm512_set1_epi16(1)));
}
TENON_AVX512 bool has_subnormals(const Least& least) {
  return _mm512_cmplt_epu16_mask(least.value, _mm512_set1_epi16(0xff)) != 0;
}

// Of each group of 2 |Width| lanes of x and y, the lanes |Width| apart are added: half as many groups of half the lanes.
template <int Width, std::size_t... I>
TENON_AVX512 void add_halves(const Lanes& x, const Lanes& y, Lanes& sums, std::index_sequence<I...>) {
  constexpr auto lane = [](std::size_t i) { return static_cast<int>(i / Width * 2 * Width + i % Width); };
  sums = __builtin_shufflevector(x, y, lane(I)...) + __builtin_shufflevector(x, y, (lane(I) + Width)...);
}
// Lane n of the first becomes the sum of all lanes of vector n, in the same order for each.
template <int Width = kLanes / 2>
TENON_AVX512 void add_lanes(Lanes (&vectors)[kLanes]) {
  for (int n = 0; n < Width; ++n)
    add_halves<Width>(vectors[2 * n], vectors[2 * n + 1], vectors[n], std::make_index_sequence<kLanes>());
  if constexpr (Width > 1) add_lanes<Width / 2>(vectors);
}

// Columns [j, j + Columns) of b, whose terms are neighbours in memory.
template <int Rows, int Columns>
TENON_AVX512 void dots(const Part& part, std::int64_t j, Least& least) {
  __m512 sums[kLanes];  // of row i and column j + q at i * Columns + q
  for (auto& sum : sums) sum = _mm512_setzero_ps();
  for (std::int64_t k = 0; k < part.terms; k += kPairs) {
    __m512i b[Columns];
    for (int q = 0; q < Columns; ++q) {
      b[q] = load_first(part.b + (j + q) * part.b_stride + k, part.terms - k);
      see(least, b[q]);
    }
    for (int i = 0; i < Rows; ++i) {
      const auto a = (__m512bh)_mm512_load_si512(part.a + i * kRun + k);
      for (int q = 0; q < Columns; ++q) sums[i * Columns + q] = _mm512_dpbf16_ps(sums[i * Columns + q], a, (__m512bh)b[q]);
    }
  }
  Lanes all[kLanes];
  std::memcpy(all, sums, sizeof all);
  add_lanes(all);
  float results[kLanes];
  std::memcpy(results, &all[0], sizeof results);
  for (int i = 0; i < Rows; ++i)
    for (int q = 0; q < Columns; ++q) part.store(i, j + q, results[i * Columns + q]);
}
template <int Rows>
TENON_AVX512 void all_dots(const Part& part, std::int64_t first, std::int64_t last, Least& least) {
  constexpr int kColumns = Rows <= 4 ? 4 : 2;
  for (; first + kColumns <= last; first += kColumns) dots<Rows, kColumns>(part, first, least);
  for (; first < last; ++first) dots<Rows, 1>(part, first, least);
}

// |columns| sums of row i from column j on, at most kPairs: low has the lower and high the upper half of each 8.
TENON_AVX512 void store_line(const Part& part, std::int64_t i, std::int64_t j, std::int64_t columns, const __m512 (&halves)[2]) {
  const __m512i lower = _mm512_setr_epi32(0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
  const __m512i upper = _mm512_add_epi32(lower, _mm512_set1_epi32(8));
  const __m512 sums[2] = {_mm512_permutex2var_ps(halves[0], lower, halves[1]),
                          _mm512_permutex2var_ps(halves[0], upper, halves[1])};
  if (i < part.rows && part.col_step == 1 && columns >= kPairs) {
    for (int half = 0; half < 2; ++half) {
      float* const to = part.c + i * part.row_step + j + half * kLanes;
      _mm512_storeu_ps(to, part.add ? _mm512_add_ps(_mm512_loadu_ps(to), sums[half]) : sums[half]);
    }
    return;
  }
  float results[kPairs];
  std::memcpy(results, sums, sizeof results);
  for (std::int64_t l = 0; l < std::min<std::int64_t>(kPairs, columns); ++l) part.store(i, j + l, results[l]);
}

// |columns| columns from j on, at most Vectors x kPairs, which are neighbours in memory: two terms of them at a time are
// interleaved.
template <int Rows, int Vectors>
TENON_AVX512 void add_lines(const Part& part, std::int64_t j, std::int64_t columns, Least& least) {
  __m512 sums[Rows][Vectors][2];  // the low and the high halves of each 8 columns
  for (auto& row : sums)
    for (auto& pair : row) pair[0] = pair[1] = _mm512_setzero_ps();
  for (std::int64_t k = 0; k < part.terms; k += 2) {
    const Bf16Bits* line = part.b + k * part.b_stride + j;
    __m512i low[Vectors], high[Vectors];
    for (int v = 0; v < Vectors; ++v) {
      const std::int64_t n = columns - v * kPairs;
      const __m512i first = n > 0 ? load_first(line + v * kPairs, n) : _mm512_setzero_si512();
      const __m512i second =
          n > 0 && k + 1 < part.terms ? load_first(line + part.b_stride + v * kPairs, n) : _mm512_setzero_si512();
      see(least, first);
      see(least, second);
      low[v] = _mm512_unpacklo_epi16(first, second);
      high[v] = _mm512_unpackhi_epi16(first, second);
    }
    for (int i = 0; i < Rows; ++i) {
      int pair = 0;
      std::memcpy(&pair, part.a + i * kRun + k, sizeof pair);
      const auto a = (__m512bh)_mm512_set1_epi32(pair);
      for (int v = 0; v < Vectors; ++v) {
        sums[i][v][0] = _mm512_dpbf16_ps(sums[i][v][0], a, (__m512bh)low[v]);
        sums[i][v][1] = _mm512_dpbf16_ps(sums[i][v][1], a, (__m512bh)high[v]);
      }
    }
  }
  for (int i = 0; i < Rows; ++i)
    for (int v = 0; v < Vectors; ++v) store_line(part, i, j + v * kPairs, columns - v * kPairs, sums[i][v]);
}

// The first rows, as many as the kernel for columns [first, last) takes. Returns their number.
TENON_AVX512 int multiply_by_columns(const Part& part, std::int64_t first, std::int64_t last, Least& least) {
  if (part.rows <= 2) {
    all_dots<2>(part, first, last, least);
    return 2;
  }
  if (part.rows <= 4) {
    all_dots<4>(part, first, last, least);
    return 4;
  }
  if (part.rows <= 6) {
    all_dots<6>(part, first, last, least);
    return 6;
  }
  all_dots<8>(part, first, last, least);
  return 8;
}
TENON_AVX512 int multiply_by_rows(const Part& part, std::int64_t first, std::int64_t last, Least& least) {
  if (part.rows <= 4) {
    add_lines<4, 2>(part, first, last - first, least);
    return 4;
  }
  for (; first < last; first += kPairs) add_lines<8, 1>(part, first, std::min<std::int64_t>(kPairs, last - first), least);
  return 8;
}

// Returns whether b has subnormal numbers.
TENON_AVX512 bool multiply(const Part& whole, std::int64_t columns, bool by_columns) {
  constexpr std::int64_t kColumns = 2 * kPairs;  // their terms stay in the L2 cache for all rows
  Least least{_mm512_set1_epi16(-1)};
  for (std::int64_t first = 0; first < columns; first += kColumns) {
    const std::int64_t last = std::min(columns, first + kColumns);
    for (Part part = whole; part.rows > 0;) {
      const int done = by_columns ? multiply_by_columns(part, first, last, least) : multiply_by_rows(part, first, last, least);
      part.rows -= done;
      part.a += done * kRun;
      part.c += done * part.row_step;
    }
  }
  return has_subnormals(least);
}

}  // namespace

bool multiplies_few_rows() {
  static const bool has_instructions =
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512bf16");
  return has_instructions;
}

bool multiply_few_rows(const Matrix<Bf16Bits>& a, const Matrix<Bf16Bits>& b, float* c, std::int64_t row_step,
                       std::int64_t col_step) {
  alignas(64) Bf16Bits padded[kFewRows * kRun];
  const std::int64_t rows = (a.rows + kTogether - 1) / kTogether * kTogether;
  const bool by_columns = b.row_stride == 1 || b.rows == 1;
  bool found = range_of(a).has_subnormals;
  for (std::int64_t k = 0; k < a.cols && !found; k += kRun) {
    const std::int64_t terms = std::min(kRun, a.cols - k), whole = (terms + kPairs - 1) / kPairs * kPairs;
    for (std::int64_t i = 0; i < rows; ++i) {
      Bf16Bits* const row = padded + i * kRun;
      const std::int64_t count = i < a.rows ? terms : 0;
      for (std::int64_t l = 0; l < count; ++l) row[l] = a.data[i * a.row_stride + (k + l) * a.col_stride];
      std::fill(row + count, row + whole, Bf16Bits{0});
    }
    found = multiply({padded, b.data + k * b.row_stride, by_columns ? b.col_stride : b.row_stride, terms, a.rows, c, row_step,
                      col_step, k > 0},
                     b.cols, by_columns);
  }
  return found;
}

#else

bool multiplies_few_rows() { return false; }
bool multiply_few_rows(const Matrix<Bf16Bits>&, const Matrix<Bf16Bits>&, float*, std::int64_t, std::int64_t) { return false; }

#endif

}  // namespace tenon::cpu

#include <algorithm>
#include <array>
#include <atomic>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/primitives/matmul/bf16/few_rows.h"
#include "backends/cpu/primitives/matmul/bf16/gemm_bf16.h"
#include "backends/cpu/primitives/matmul/gemm.h"
#include "backends/cpu/primitives/matmul/gemm_blocked.h"
#include "backends/cpu/primitives/matmul/packing_memory.h"
#include "backends/cpu/primitives/primitives.h"
#include "backends/cpu/primitives/split.h"
#include "backends/cpu/primitives/typed.h"

namespace tenon::cpu {
namespace {

// One matrix of a batch each, |batches| of them.
struct Batch {
  Shape shape;  // of the batch axes
  Strides a{}, b{}, out{};
  std::int64_t count = 1;
};

Batch batch_of(const View& a, const View& b, const Target& out) {
  Batch batch;
  const auto axes = static_cast<std::size_t>(out.shape.rank() - 2);
  batch.shape = Shape(out.shape.dims().first(axes));
  batch.count = batch.shape.elements();
  for (std::size_t i = 0; i < axes; ++i) {
    batch.a[i] = a.strides[i];
    batch.b[i] = b.strides[i];
    batch.out[i] = out.strides[i];
  }
  return batch;
}

template <class T>
Matrix<T> last_two(const View& view, bool transpose) {
  const int rank = view.shape.rank();
  const auto row = static_cast<std::size_t>(rank - 2), col = row + 1;
  Matrix<T> matrix{static_cast<const T*>(view.data), view.shape[rank - 2], view.shape[rank - 1], view.strides[row],
                   view.strides[col]};
  return transpose ? matrix.transposed() : matrix;
}

// Of product |n|.
std::int64_t place_of(std::int64_t n, const Batch& batch, const Strides& strides) {
  return batch.shape.rank() == 1 ? n * strides[0] : offset_of(n, batch.shape, strides);
}

template <class T>
Matrix<T> shifted(Matrix<T> matrix, std::int64_t offset) {
  matrix.data += offset;
  return matrix;
}

// How one product of a batch is cut: |rows| x |cols| nearly equal parts.
struct Cut {
  std::int64_t rows = 1, cols = 1;
  std::int64_t parts() const { return rows * cols; }
};

// Results do not depend on it (gemm.h). Each part packs its share of both operands: the shares should be small.
Cut cut_of(std::int64_t m, std::int64_t k, std::int64_t n, std::int64_t batches, int threads) {
  constexpr double kWorthAThread = 48 * 48 * 24;  // about 1 us on one core
  const double work = static_cast<double>(m) * static_cast<double>(k) * static_cast<double>(n);
  if (threads == 1 || batches >= 2 * threads || work < 2 * kWorthAThread) return {};
  std::int64_t parts = std::min<std::int64_t>(threads, static_cast<std::int64_t>(work / kWorthAThread));
  if (work > 4e9) parts *= 2;  // balances the effect of a busy core
  for (; parts > 1; --parts) {
    Cut best;
    for (std::int64_t rows = 1; rows <= parts; ++rows) {
      const Cut cut{rows, parts / rows};
      if (cut.parts() != parts || m / cut.rows < 12 * (cut.rows > 1) || n / cut.cols < 32 * (cut.cols > 1)) continue;
      // The left operand usually has to be transposed, which costs twice as much.
      const auto packed = [&](const Cut& c) { return 2 * c.cols * m + c.rows * n; };
      if (best.parts() == 1 || packed(cut) < packed(best)) best = cut;
    }
    if (best.parts() > 1) return best;
  }
  return {};
}

// body(left matrix, right matrix, result, part) for all parts of all products of the batch.
template <class T, class Out, class Body>
void for_parts(ThreadPool& pool, const Matrix<T>& a, const Matrix<T>& b, const Batch& batch, Out* out, std::int64_t parts,
               std::int64_t cost, Body&& body) {
  const auto run = [&](std::int64_t n, std::int64_t part) {
    body(shifted(a, place_of(n, batch, batch.a)), shifted(b, place_of(n, batch, batch.b)), out + place_of(n, batch, batch.out),
         part);
  };
  if (parts > 1) {
    pool.for_each(batch.count * parts, [&](std::int64_t chunk, int) { run(chunk / parts, chunk % parts); });
    return;
  }
  for_ranges(pool, batch.count, cost, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t n = begin; n < end; ++n) run(n, 0);
  });
}

// Parts that the rows of a product of a matrix and a vector are cut into.
std::int64_t vector_parts(const ThreadPool& pool, std::int64_t rows, std::int64_t cols, std::int64_t batches) {
  if (batches >= 4 * pool.threads()) return 1;
  return std::clamp<std::int64_t>(std::min(rows * cols / kGrain, rows / 32), 1, 4 * pool.threads());
}

// A few long rows: parts of them are summed side by side. Their number depends on the shape alone, and so do results.
constexpr std::int64_t kPartElements = 32768, kMaxParts = 1024;
template <class T>
bool is_long_dot(const Matrix<T>& matrix, const Matrix<T>& vector, const Batch& batch) {
  return batch.count == 1 && matrix.rows > 0 && matrix.rows < 32 && matrix.cols >= 2 * kPartElements && matrix.col_stride == 1 &&
         vector.row_stride == 1;
}
// sum_of(a, b, n) is the sum of n products.
template <class T, class Out, class SumOf>
void long_dots(ThreadPool& pool, const Matrix<T>& matrix, const Matrix<T>& vector, Out* out, SumOf sum_of) {
  const std::int64_t parts = std::min((matrix.cols + kPartElements - 1) / kPartElements, kMaxParts / matrix.rows);
  double sums[kMaxParts];
  for_ranges(pool, matrix.rows * parts, matrix.cols / parts, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) {
      const Range cols = part_of(matrix.cols, parts, i % parts, 1024);
      sums[i] = sum_of(matrix.data + i / parts * matrix.row_stride + cols.begin, vector.data + cols.begin, cols.end - cols.begin);
    }
  });
  for (std::int64_t row = 0; row < matrix.rows; ++row)
    out[row] = static_cast<Out>(std::accumulate(sums + row * parts, sums + (row + 1) * parts, -0.0));
}

// Rows of |matrix| times one vector each; cutting rows changes no result.
template <class T>
void vector_product(ThreadPool& pool, const Matrix<T>& matrix, const Matrix<T>& vector, const Batch& batch, T* out) {
  if (is_long_dot(matrix, vector, batch))
    return long_dots(pool, matrix, vector, out, [](const T* a, const T* b, std::int64_t n) {
      return kernels().far_product_sum[static_cast<int>(std::is_same_v<T, float> ? DType::f32 : DType::f64)](a, b, n).f;
    });
  const std::int64_t work = matrix.rows * matrix.cols;
  const std::int64_t parts = vector_parts(pool, matrix.rows, matrix.cols, batch.count);
  for_parts(pool, matrix, vector, batch, out, parts, work,
            [&](const Matrix<T>& left, const Matrix<T>& right, T* to, std::int64_t part) {
              const Range rows = part_of(left.rows, parts, part, 16);
              if (rows.begin < rows.end) gemv(left.band(rows.begin, rows.end), right.data, right.row_stride, to + rows.begin);
            });
}

template <class T>
void float_product(ThreadPool& pool, const Matrix<T>& a, const Matrix<T>& b, const Batch& batch, T* out, std::int64_t ldc) {
  // A row times a small matrix is multiplied like several.
  const bool is_small_row = a.rows == 1 && b.cols > 1 && b.col_stride == 1 && a.cols <= 128 && b.cols <= 128;
  if (b.cols == 1 && ldc == 1) return vector_product(pool, a, b, batch, out);
  if (a.rows == 1 && !is_small_row) {
    Batch swapped = batch;
    std::swap(swapped.a, swapped.b);
    return vector_product(pool, b.transposed(), a.transposed(), swapped, out);
  }
  const Cut cut = cut_of(a.rows, a.cols, b.cols, batch.count, pool.threads());
  const std::int64_t cost = a.rows * a.cols * b.cols / 8;
  for_parts(pool, a, b, batch, out, cut.parts(), cost,
            [&](const Matrix<T>& left, const Matrix<T>& right, T* to, std::int64_t part) {
              if (cut.parts() == 1) return gemm(left, right, to, ldc);
              const Range rows = part_of(left.rows, cut.rows, part / cut.cols, 2);
              const Range cols = part_of(right.cols, cut.cols, part % cut.cols, 16);
              if (rows.begin == rows.end || cols.begin == cols.end) return;
              gemm(left.band(rows.begin, rows.end), right.transposed().band(cols.begin, cols.end).transposed(),
                   to + rows.begin * ldc + cols.begin, ldc);
            });
}

// A block of 16-bit numbers as f32, in memory of this thread: rows x cols, cols together.
const float* widened(const Matrix<Bf16Bits>& from, DType dtype, std::int64_t row, std::int64_t col, std::int64_t rows,
                     std::int64_t cols, std::vector<float>& memory) {
  const ConvertKernel convert = kernels().convert[static_cast<int>(dtype)][static_cast<int>(DType::f32)];
  const bool by_rows = from.col_stride == 1;
  const std::int64_t lines = by_rows ? rows : cols, length = by_rows ? cols : rows;
  const std::int64_t line_stride = by_rows ? from.row_stride : from.col_stride;
  memory.resize(static_cast<std::size_t>(rows * cols));
  const Bf16Bits* first = from.data + row * from.row_stride + col * from.col_stride;
  for (std::int64_t line = 0; line < lines; ++line) convert(first + line * line_stride, memory.data() + line * length, length);
  return memory.data();
}
Matrix<float> widened_matrix(const Matrix<Bf16Bits>& from, DType dtype, std::int64_t row, std::int64_t col, std::int64_t rows,
                             std::int64_t cols, std::vector<float>& memory) {
  const float* data = widened(from, dtype, row, col, rows, cols, memory);
  return from.col_stride == 1 ? Matrix<float>{data, rows, cols, cols, 1} : Matrix<float>{data, rows, cols, 1, rows};
}

// y = matrix x: blocks of the matrix are converted in the L1 cache. Sums run over blocks of the inner axis in order.
void vector_product16(ThreadPool& pool, const Matrix<Bf16Bits>& matrix, const Matrix<Bf16Bits>& vector, DType dtype,
                      const Batch& batch, float* out) {
  constexpr std::int64_t kInner = 512, kRows = 32;
  if (is_long_dot(matrix, vector, batch))
    return long_dots(pool, matrix, vector, out, [&](const Bf16Bits* a, const Bf16Bits* b, std::int64_t n) {
      constexpr std::int64_t kBlock = 1024;
      const ConvertKernel convert = kernels().convert[static_cast<int>(dtype)][static_cast<int>(DType::f32)];
      float x[kBlock], y[kBlock];
      double sum = 0;
      for (std::int64_t i = 0; i < n; i += kBlock) {
        const std::int64_t count = std::min(kBlock, n - i);
        convert(a + i, x, count);
        convert(b + i, y, count);
        sum += kernels().product_sum[static_cast<int>(DType::f32)](x, y, count).f;
      }
      return sum;
    });
  const std::int64_t parts = vector_parts(pool, matrix.rows, matrix.cols, batch.count);
  for_parts(pool, matrix, vector, batch, out, parts, matrix.rows * matrix.cols,
            [&](const Matrix<Bf16Bits>& left, const Matrix<Bf16Bits>& right, float* to, std::int64_t part) {
              thread_local std::vector<float> block, factor;
              float sums[kRows];
              const Range rows = part_of(left.rows, parts, part, 16);
              for (std::int64_t i = rows.begin; i < rows.end; i += kRows) {
                const std::int64_t count = std::min(kRows, rows.end - i);
                for (std::int64_t p = 0; p < left.cols; p += kInner) {
                  const std::int64_t depth = std::min(kInner, left.cols - p);
                  const Matrix<float> tile = widened_matrix(left, dtype, i, p, count, depth, block);
                  factor.resize(static_cast<std::size_t>(depth));
                  const ConvertKernel convert = kernels().convert[static_cast<int>(dtype)][static_cast<int>(DType::f32)];
                  if (right.row_stride == 1)
                    convert(right.data + p, factor.data(), depth);
                  else
                    for (std::int64_t k = 0; k < depth; ++k)
                      convert(right.data + (p + k) * right.row_stride, &factor[static_cast<std::size_t>(k)], 1);
                  gemv(tile, factor.data(), 1, p == 0 ? to + i : sums);
                  for (std::int64_t r = 0; p > 0 && r < count; ++r) to[i + r] += sums[r];
                }
              }
            });
}

Bf16Range range_of(ThreadPool& pool, const Matrix<Bf16Bits>& matrix, const Batch& batch, const Strides& strides) {
  std::array<std::atomic<bool>, 3> found{};
  const std::int64_t parts = std::clamp<std::int64_t>(matrix.rows * matrix.cols / (4 * kGrain), 1, pool.threads());
  pool.for_each(batch.count * parts, [&](std::int64_t chunk, int) {
    const Range rows = part_of(matrix.rows, parts, chunk % parts);
    if (rows.begin == rows.end) return;
    const Matrix<Bf16Bits> one = shifted(matrix, offset_of(chunk / parts, batch.shape, strides));
    const Bf16Range range = range_of(one.band(rows.begin, rows.end));
    if (range.has_subnormals) found[0].store(true, std::memory_order_relaxed);
    if (range.has_tiny_lines) found[1].store(true, std::memory_order_relaxed);
    if (range.has_huge) found[2].store(true, std::memory_order_relaxed);
  });
  return {found[0].load(), found[1].load(), found[2].load()};
}

// Products of several matrices with one right operand are one product if all their rows lie at equal distances: the right operand
// is then searched and packed once.
void merge_rows(Matrix<Bf16Bits>& a, Batch& batch, std::int64_t ldc) {
  std::int64_t rows = a.rows;
  for (int axis = batch.shape.rank() - 1; axis >= 0; --axis) {
    const auto i = static_cast<std::size_t>(axis);
    if (batch.shape[axis] == 1) continue;
    if (batch.b[i] != 0 || batch.a[i] != rows * a.row_stride || batch.out[i] != rows * ldc) return;
    rows *= batch.shape[axis];
  }
  a.rows = rows;
  batch = {};
}

// Both operands in f32; at most a part of a product at a time.
void exact_product(const Matrix<Bf16Bits>& a, const Matrix<Bf16Bits>& b, float* out, std::int64_t ldc) {
  std::vector<float> wide_a, wide_b;  // of this product alone: a thread would keep them for long
  gemm(widened_matrix(a, DType::bf16, 0, 0, a.rows, a.cols, wide_a), widened_matrix(b, DType::bf16, 0, 0, b.rows, b.cols, wide_b),
       out, ldc);
}

// Some subnormal number matters: the matrices with one are multiplied in f32, each for itself, so that no result depends on the
// other matrices of the batch.
void bf16_product_with_subnormals(ThreadPool& pool, const Matrix<Bf16Bits>& a, const Matrix<Bf16Bits>& b, const Batch& batch,
                                  float* out, std::int64_t ldc) {
  // In f32 the operands of a part are converted as a whole: not too many at a time.
  Cut cut = cut_of(a.rows, a.cols, b.cols, batch.count, pool.threads());
  cut = {std::max(cut.rows, (a.rows + 511) / 512), std::max(cut.cols, (b.cols + 511) / 512)};
  std::vector<char> is_exact(static_cast<std::size_t>(batch.count));
  for_ranges(pool, batch.count, a.rows * a.cols / 16, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t n = begin; n < end; ++n)
      is_exact[static_cast<std::size_t>(n)] =
          needs_subnormals(range_of(shifted(a, place_of(n, batch, batch.a))), range_of(shifted(b, place_of(n, batch, batch.b))));
  });
  pool.for_each(batch.count * cut.parts(), [&](std::int64_t task, int) {
    const std::int64_t n = task / cut.parts(), part = task % cut.parts();
    const Matrix<Bf16Bits> left = shifted(a, place_of(n, batch, batch.a));
    const Matrix<Bf16Bits> right = shifted(b, place_of(n, batch, batch.b));
    const Range rows = part_of(left.rows, cut.rows, part / cut.cols, 2);
    const Range cols = part_of(right.cols, cut.cols, part % cut.cols, 32);
    if (rows.begin == rows.end || cols.begin == cols.end) return;
    float* const corner = out + place_of(n, batch, batch.out) + rows.begin * ldc + cols.begin;
    const Matrix<Bf16Bits> right_part = right.transposed().band(cols.begin, cols.end).transposed();
    if (is_exact[static_cast<std::size_t>(n)] == 0) return gemm_bf16(left.band(rows.begin, rows.end), right_part, corner, ldc);
    exact_product(left.band(rows.begin, rows.end), right_part, corner, ldc);
  });
}

// Whether there are many products of one thread each, which looks for subnormal numbers itself: operands are then in its cache.
bool are_many(const ThreadPool& pool, const Matrix<Bf16Bits>& a, const Matrix<Bf16Bits>& b, const Batch& batch) {
  constexpr std::int64_t kSmall = 512 * 512;
  return std::max({a.rows * a.cols, b.cols * a.cols, a.rows * b.cols}) <= kSmall && batch.count >= 2 * pool.threads();
}

// |out| is f32, or bf16 and dense.
void bf16_products_each(ThreadPool& pool, const Matrix<Bf16Bits>& a, const Matrix<Bf16Bits>& b, const Batch& batch,
                        const Target& out, std::int64_t ldc) {
  const ConvertKernel convert = kernels().convert[static_cast<int>(DType::f32)][static_cast<int>(DType::bf16)];
  const auto multiply = [&](const Matrix<Bf16Bits>& left, const Matrix<Bf16Bits>& right, float* to) {
    if (needs_subnormals(range_of(left), range_of(right))) return exact_product(left, right, to, ldc);
    gemm_bf16(left, right, to, ldc);
  };
  const std::int64_t cost = a.rows * a.cols * b.cols / 16;
  if (out.dtype == DType::f32)
    return for_parts(
        pool, a, b, batch, static_cast<float*>(out.data), 1, cost,
        [&](const Matrix<Bf16Bits>& left, const Matrix<Bf16Bits>& right, float* to, std::int64_t) { multiply(left, right, to); });
  for_parts(pool, a, b, batch, static_cast<Bf16Bits*>(out.data), 1, cost,
            [&](const Matrix<Bf16Bits>& left, const Matrix<Bf16Bits>& right, Bf16Bits* to, std::int64_t) {
              PackingMemory<(16 << 10)> memory;
              float* const wide = memory.get<float>(left.rows * ldc);
              multiply(left, right, wide);
              convert(wide, to, left.rows * ldc);
            });
}

// Whether products are so short that writing them in f32 and rounding them later would take longer than they do.
bool are_short(const Matrix<Bf16Bits>& a, const Matrix<Bf16Bits>& b) {
  constexpr std::int64_t kShort = 96, kLarge = 128 * 1024;
  return a.cols <= kShort && a.rows * b.cols >= kLarge;
}

// Short products as bf16: blocks of the result are rounded while they are in a cache. |out| is dense.
void rounded_short_products(ThreadPool& pool, const Matrix<Bf16Bits>& a, const Matrix<Bf16Bits>& b, const Batch& batch,
                            Bf16Bits* out, std::int64_t ldc) {
  constexpr std::int64_t kBlockRows = 42, kBlockCols = 192;
  const ConvertKernel convert = kernels().convert[static_cast<int>(DType::f32)][static_cast<int>(DType::bf16)];
  const std::int64_t high = (a.rows + kBlockRows - 1) / kBlockRows, wide = (b.cols + kBlockCols - 1) / kBlockCols;
  for_parts(pool, a, b, batch, out, high * wide, a.rows * b.cols * a.cols / 16,
            [&](const Matrix<Bf16Bits>& left, const Matrix<Bf16Bits>& right, Bf16Bits* to, std::int64_t part) {
              const Range rows = part_of(left.rows, high, part / wide, 14), cols = part_of(right.cols, wide, part % wide, 32);
              const std::int64_t count = rows.end - rows.begin, width = cols.end - cols.begin;
              if (count == 0 || width == 0) return;
              PackingMemory<kBlockRows * kBlockCols * sizeof(float)> memory;
              float* const block = memory.get<float>(count * width);
              gemm_bf16(left.band(rows.begin, rows.end), right.transposed().band(cols.begin, cols.end).transposed(), block,
                        width);
              for (std::int64_t row = 0; row < count; ++row)
                convert(block + row * width, to + (rows.begin + row) * ldc + cols.begin, width);
            });
}

void bf16_product(ThreadPool& pool, const Matrix<Bf16Bits>& given, const Matrix<Bf16Bits>& b, const Batch& given_batch,
                  const Target& target, std::int64_t ldc) {
  Matrix<Bf16Bits> a = given;
  Batch batch = given_batch;
  merge_rows(a, batch, ldc);
  if (are_many(pool, a, b, batch)) return bf16_products_each(pool, a, b, batch, target, ldc);
  const bool is_exact = needs_subnormals(range_of(pool, a, batch, batch.a), range_of(pool, b, batch, batch.b));
  if (target.dtype == DType::bf16) {
    auto* const rounded = static_cast<Bf16Bits*>(target.data);
    if (!is_exact) return rounded_short_products(pool, a, b, batch, rounded, ldc);
    // Rare, so memory is taken when it happens.
    const std::int64_t elements = target.shape.elements();
    std::vector<float> wide(static_cast<std::size_t>(elements));
    bf16_product_with_subnormals(pool, given, b, given_batch, wide.data(), ldc);
    return kernels().convert[static_cast<int>(DType::f32)][static_cast<int>(DType::bf16)](wide.data(), rounded, elements);
  }
  float* const out = static_cast<float*>(target.data);
  if (is_exact) return bf16_product_with_subnormals(pool, given, b, given_batch, out, ldc);
  const Cut cut = cut_of(a.rows, a.cols, b.cols, batch.count, pool.threads());
  for_parts(pool, a, b, batch, out, cut.parts(), a.rows * a.cols * b.cols / 16,
            [&](const Matrix<Bf16Bits>& left, const Matrix<Bf16Bits>& right, float* to, std::int64_t part) {
              const Range rows = part_of(left.rows, cut.rows, part / cut.cols, 2);
              const Range cols = part_of(right.cols, cut.cols, part % cut.cols, 32);
              if (rows.begin == rows.end || cols.begin == cols.end) return;
              gemm_bf16(left.band(rows.begin, rows.end), right.transposed().band(cols.begin, cols.end).transposed(),
                        to + rows.begin * ldc + cols.begin, ldc);
            });
}

// Of small matrices packing is fast, unless there are a row or two.
bool are_few_rows(std::int64_t rows, const Matrix<Bf16Bits>& other) {
  constexpr std::int64_t kLarge = 96 * 96, kAlways = 2;
  return rows <= kAlways || (rows <= kFewRows && other.rows * other.cols >= kLarge);
}

// Few rows of a, or few columns of b if the product is transposed: |out| is then stepped through the other way round. Products of
// the batch with subnormal numbers, which may matter, are left to |otherwise|: no result depends on the others.
template <class Otherwise>
void few_rows_product(ThreadPool& pool, const Matrix<Bf16Bits>& a, const Matrix<Bf16Bits>& b, const Batch& batch, float* out,
                      std::int64_t row_step, std::int64_t col_step, const Otherwise& otherwise) {
  std::vector<std::atomic<bool>> has_subnormals(static_cast<std::size_t>(batch.count));
  const std::int64_t parts = vector_parts(pool, b.cols, b.rows, batch.count);
  for_ranges(pool, batch.count * parts, b.rows * b.cols / parts, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t n = task / parts;
      const Range cols = part_of(b.cols, parts, task % parts, 32);
      if (cols.begin == cols.end) continue;
      const Matrix<Bf16Bits> left = shifted(a, place_of(n, batch, batch.a));
      const Matrix<Bf16Bits> right = shifted(b, place_of(n, batch, batch.b));
      if (multiply_few_rows(left, right.transposed().band(cols.begin, cols.end).transposed(),
                            out + place_of(n, batch, batch.out) + cols.begin * col_step, row_step, col_step))
        has_subnormals[static_cast<std::size_t>(n)].store(true, std::memory_order_relaxed);
    }
  });
  for (std::int64_t n = 0; n < batch.count; ++n)
    if (has_subnormals[static_cast<std::size_t>(n)].load()) otherwise(n);
}

// Products and sums wrap: unsigned arithmetic, wide enough that no small type is promoted to int.
template <class T>
using Wrapping = std::conditional_t<sizeof(T) < 4, std::uint32_t, std::make_unsigned_t<T>>;

template <class T>
void integer_row(const Matrix<T>& a, const Matrix<T>& b, std::int64_t row, T* out) {
  using U = Wrapping<T>;
  const T* left = a.data + row * a.row_stride;
  if (b.col_stride != 1) {
    for (std::int64_t j = 0; j < b.cols; ++j) {
      U sum = 0;
      for (std::int64_t p = 0; p < a.cols; ++p)
        sum += static_cast<U>(left[p * a.col_stride]) * static_cast<U>(b.data[p * b.row_stride + j * b.col_stride]);
      out[j] = static_cast<T>(sum);
    }
    return;
  }
  constexpr std::int64_t kColumns = 1024;
  for (std::int64_t j = 0; j < b.cols; j += kColumns) {
    U sums[kColumns] = {};
    const std::int64_t n = std::min(kColumns, b.cols - j);
    for (std::int64_t p = 0; p < a.cols; ++p) {
      const U factor = static_cast<U>(left[p * a.col_stride]);
      const T* line = b.data + p * b.row_stride + j;
      for (std::int64_t q = 0; q < n; ++q) sums[q] += factor * static_cast<U>(line[q]);
    }
    for (std::int64_t q = 0; q < n; ++q) out[j + q] = static_cast<T>(sums[q]);
  }
}

template <class T>
void integer_product(ThreadPool& pool, const Matrix<T>& a, const Matrix<T>& b, const Batch& batch, T* out, std::int64_t ldc) {
  for_ranges(pool, batch.count * a.rows, a.cols * b.cols / 2, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t n = i / a.rows, row = i % a.rows;
      integer_row(shifted(a, place_of(n, batch, batch.a)), shifted(b, place_of(n, batch, batch.b)), row,
                  out + place_of(n, batch, batch.out) + row * ldc);
    }
  });
}

}  // namespace

bool is_blas_layout(const View& matrix) {
  const int rank = matrix.shape.rank();
  const auto row = static_cast<std::size_t>(rank - 2);
  return is_blas_matrix(matrix.shape[rank - 2], matrix.shape[rank - 1], matrix.strides[row], matrix.strides[row + 1]);
}

bool has_matmul16(DType dtype, const View& a, const View& b, const MatMulAttr& attr, const Shape& out) {
  constexpr std::int64_t kWorthIt = 16 * 16 * 16;
  const int rank = out.rank();
  const std::int64_t m = out[rank - 2], n = out[rank - 1], k = a.shape[attr.transpose_a ? rank - 2 : rank - 1];
  if (out.elements() == 0 || k == 0 || a.dtype != dtype || b.dtype != dtype || (dtype != DType::bf16 && dtype != DType::f16))
    return false;
  if (m == 1 || n == 1) return m * n * k >= 1024 && has_blocked_gemm();
  return dtype == DType::bf16 && bf16_unit() != Bf16Unit::none && m * n * k >= kWorthIt;
}

bool stores_matmul16(const ThreadPool& pool, const View& a, const View& b, const MatMulAttr& attr, const Shape& out) {
  const int rank = out.rank();
  Matrix<Bf16Bits> left = last_two<Bf16Bits>(a, attr.transpose_a);
  const Matrix<Bf16Bits> right = last_two<Bf16Bits>(b, attr.transpose_b);
  if (a.dtype != DType::bf16 || left.rows == 1 || right.cols == 1) return false;
  if (multiplies_few_rows() && (are_few_rows(left.rows, right) || are_few_rows(right.cols, left))) return false;
  Batch batch = batch_of(a, b, dense_target(nullptr, DType::bf16, out));
  merge_rows(left, batch, out[rank - 1]);
  return are_many(pool, left, right, batch) || are_short(left, right);
}

void matmul16(ThreadPool& pool, const View& a, const View& b, const MatMulAttr& attr, const Target& out) {
  const int rank = out.shape.rank();
  const std::int64_t ldc = out.shape[rank - 2] == 1 ? out.shape[rank - 1] : out.strides[static_cast<std::size_t>(rank - 2)];
  const Matrix<Bf16Bits> left = last_two<Bf16Bits>(a, attr.transpose_a), right = last_two<Bf16Bits>(b, attr.transpose_b);
  const Batch batch = batch_of(a, b, out);
  Batch swapped = batch;
  std::swap(swapped.a, swapped.b);
  float* const to = static_cast<float*>(out.data);
  const auto by_blocks = [&](const Matrix<Bf16Bits>& x, const Matrix<Bf16Bits>& y, const Batch& products, float* results) {
    if (y.cols == 1 && ldc == 1) return vector_product16(pool, x, y, a.dtype, products, results);
    Target to_results = out;
    to_results.data = results;
    if (x.rows > 1) return bf16_product(pool, x, y, products, to_results, ldc);
    Batch others = products;
    std::swap(others.a, others.b);
    vector_product16(pool, y.transposed(), x.transposed(), a.dtype, others, results);
  };
  const auto alone = [&](std::int64_t n) {
    by_blocks(shifted(left, place_of(n, batch, batch.a)), shifted(right, place_of(n, batch, batch.b)), {},
              to + place_of(n, batch, batch.out));
  };
  const bool takes_few = a.dtype == DType::bf16 && multiplies_few_rows();
  if (takes_few && are_few_rows(left.rows, right)) return few_rows_product(pool, left, right, batch, to, ldc, 1, alone);
  if (takes_few && are_few_rows(right.cols, left))
    return few_rows_product(pool, right.transposed(), left.transposed(), swapped, to, 1, ldc, alone);
  by_blocks(left, right, batch, to);
}

void matmul(ThreadPool& pool, const View& a, const View& b, const MatMulAttr& attr, const Target& out) {
  if (out.shape.elements() == 0) return;
  const int rank = out.shape.rank();
  const std::int64_t ldc = out.shape[rank - 2] == 1 ? out.shape[rank - 1] : out.strides[static_cast<std::size_t>(rank - 2)];
  if (a.shape.elements() == 0) return fill(pool, out, 0);
  const Batch batch = batch_of(a, b, out);
  with_type(out.dtype, [&]<class T>(T) {
    const Matrix<T> left = last_two<T>(a, attr.transpose_a), right = last_two<T>(b, attr.transpose_b);
    if constexpr (std::is_floating_point_v<T>) {
      float_product(pool, left, right, batch, static_cast<T*>(out.data), ldc);
    } else {
      integer_product(pool, left, right, batch, static_cast<T*>(out.data), ldc);
    }
  });
}

}  // namespace tenon::cpu

#include <algorithm>
#include <type_traits>

#include "backends/cpu/gemm.h"
#include "backends/cpu/primitives.h"
#include "backends/cpu/split.h"
#include "backends/cpu/typed.h"

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

template <class T>
Matrix<T> shifted(Matrix<T> matrix, std::int64_t offset) {
  matrix.data += offset;
  return matrix;
}

// How many parts one product of a batch is cut into.
std::int64_t parts_of(std::int64_t work, std::int64_t batches, int threads) {
  constexpr std::int64_t kWorkOfAPart = 48 * 48 * 24;  // about 1 us: what a second thread costs
  if (batches >= 4 * threads) return 1;
  return std::clamp<std::int64_t>(work / kWorkOfAPart, 1, threads);
}

// body(batch index, part) over the pool.
template <class Body>
void for_parts(ThreadPool& pool, std::int64_t batches, std::int64_t parts, std::int64_t work, Body&& body) {
  if (parts > 1) {
    pool.for_each(batches * parts, [&](std::int64_t chunk, int) { body(chunk / parts, chunk % parts); });
    return;
  }
  for_ranges(pool, batches, work / 8, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t n = begin; n < end; ++n) body(n, 0);
  });
}

template <class T>
void float_product(ThreadPool& pool, const Matrix<T>& a, const Matrix<T>& b, const Batch& batch, T* out, std::int64_t ldc) {
  const std::int64_t work = a.rows * a.cols * b.cols;
  const auto each = [&](std::int64_t parts, auto&& body) {
    for_parts(pool, batch.count, parts, work, [&](std::int64_t n, std::int64_t part) {
      body(shifted(a, offset_of(n, batch.shape, batch.a)), shifted(b, offset_of(n, batch.shape, batch.b)),
           out + offset_of(n, batch.shape, batch.out), part);
    });
  };
  if (b.cols == 1 && ldc == 1) {
    const std::int64_t parts = std::min(a.rows, parts_of(work * 8, batch.count, pool.threads()));
    return each(parts, [&](const Matrix<T>& left, const Matrix<T>& right, T* to, std::int64_t part) {
      const Range rows = part_of(a.rows, parts, part, 16);
      if (rows.begin < rows.end) gemv(left.band(rows.begin, rows.end), right.data, right.row_stride, to + rows.begin);
    });
  }
  if (a.rows == 1) {
    const std::int64_t parts = std::min(b.cols, parts_of(work * 8, batch.count, pool.threads()));
    return each(parts, [&](const Matrix<T>& left, const Matrix<T>& right, T* to, std::int64_t part) {
      const Range cols = part_of(b.cols, parts, part, 64);
      if (cols.begin < cols.end) gemv(right.transposed().band(cols.begin, cols.end), left.data, left.col_stride, to + cols.begin);
    });
  }
  const std::int64_t parts = parts_of(work, batch.count, pool.threads());
  const bool by_cols = b.cols >= a.rows;
  each(parts, [&](const Matrix<T>& left, const Matrix<T>& right, T* to, std::int64_t part) {
    if (by_cols) {
      const Range cols = part_of(b.cols, parts, part, 16);
      if (cols.begin < cols.end) gemm(left, right.transposed().band(cols.begin, cols.end).transposed(), to + cols.begin, ldc);
    } else {
      const Range rows = part_of(a.rows, parts, part, 6);
      if (rows.begin < rows.end) gemm(left.band(rows.begin, rows.end), right, to + rows.begin * ldc, ldc);
    }
  });
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
      integer_row(shifted(a, offset_of(n, batch.shape, batch.a)), shifted(b, offset_of(n, batch.shape, batch.b)), row,
                  out + offset_of(n, batch.shape, batch.out) + row * ldc);
    }
  });
}

}  // namespace

bool is_blas_layout(const View& matrix) {
  const int rank = matrix.shape.rank();
  const auto row = static_cast<std::size_t>(rank - 2);
  return is_blas_matrix(matrix.shape[rank - 2], matrix.shape[rank - 1], matrix.strides[row], matrix.strides[row + 1]);
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

#include "backends/cpu/products/integer/matmul_int8.h"

#include <algorithm>

#include "backends/cpu/primitives/split.h"

namespace tenon::cpu {
namespace {

constexpr std::int64_t kBandRows = 128;

std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

// Scratch memory: zero points as integers, b packed for every batch that has
// its own, then a part per worker.
struct Layout {
  std::size_t a_zero, b_zero, packed, workers, worker_bytes, total;

  Layout(const ThreadPool& pool, const Int8Product& shape) {
    a_zero = 0;
    b_zero = aligned(static_cast<std::size_t>(shape.rows) * 4);
    packed = b_zero + aligned(static_cast<std::size_t>(shape.cols) * 4);
    workers = packed + aligned(packed_int8_bytes(shape.depth, shape.cols)) * static_cast<std::size_t>(pool.threads());
    worker_bytes = aligned(int8_scratch_bytes(std::min(kBandRows, shape.rows), shape.depth));
    total = workers + worker_bytes * static_cast<std::size_t>(pool.threads());
  }
};

ZeroPoints zero_points(const View& view, std::int64_t most, std::byte* memory) {
  if (!view.data) return {};
  const std::int64_t n = std::min(view.shape.elements(), most);
  auto* const to = reinterpret_cast<std::int32_t*>(memory);
  for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<std::int32_t>(static_cast<const float*>(view.data)[i]);
  return {to, view.shape.elements() == 1};
}

}  // namespace

Int8Matrix int8_matrix(const View& view) {
  const int rank = view.shape.rank();
  const auto row = static_cast<std::size_t>(rank - 2);
  return {view.data,         view.dtype == DType::i8, view.shape[rank - 2], view.shape[rank - 1],
          view.strides[row], view.strides[row + 1]};
}

std::size_t int8_product_scratch_bytes(const ThreadPool& pool, const Int8Product& shape) { return Layout(pool, shape).total; }

void int8_product(ThreadPool& pool, const Int8Product& shape, const Int8Operands& operands, const Target& out,
                  std::span<std::byte> scratch) {
  if (out.shape.elements() == 0) return;
  if (shape.depth == 0) return fill(pool, out, 0);
  const Layout layout(pool, shape);
  const ZeroPoints a_zero = zero_points(operands.a_zero, shape.rows, scratch.data() + layout.a_zero);
  const ZeroPoints b_zero = zero_points(operands.b_zero, shape.cols, scratch.data() + layout.b_zero);
  const Int8Matrix right = int8_matrix(operands.b);
  const std::size_t packed_bytes = aligned(packed_int8_bytes(shape.depth, shape.cols));
  const std::byte* packed = operands.packed;
  if (shape.is_shared && !packed) {
    pack_int8(right, scratch.data() + layout.packed);
    packed = scratch.data() + layout.packed;
  }
  // Of the batches of b: the axes before the last two.
  const int batch_axes = operands.b.shape.rank() - 2;
  const auto batch_offset = [&](std::int64_t batch) {
    std::int64_t offset = 0;
    for (int axis = batch_axes - 1; axis >= 0; --axis) {
      offset += batch % operands.b.shape[axis] * operands.b.strides[static_cast<std::size_t>(axis)];
      batch /= operands.b.shape[axis];
    }
    return offset;
  };
  const auto* const a = static_cast<const std::uint8_t*>(operands.a.data);
  auto* const c = static_cast<std::int32_t*>(out.data);
  const std::int64_t wanted = shape.rows * shape.depth * shape.cols > 8 * kGrain ? 2 * pool.threads() : 1;
  std::int64_t bands = (shape.rows + kBandRows - 1) / kBandRows;
  if (pool.threads() > 1 && packed) bands = std::max(bands, std::min(wanted, std::max<std::int64_t>(1, shape.rows / 12)));
  const auto rows_of = [&](std::int64_t batch, Range rows, const std::byte* weights, int worker) {
    for (std::int64_t row = rows.begin; row < rows.end; row += kBandRows) {
      const std::int64_t n = std::min(kBandRows, rows.end - row), first = batch * shape.rows + row;
      ZeroPoints zeros = a_zero;
      if (!zeros.is_single) zeros.values += row;
      gemm_int8({a + first * shape.depth, operands.a.dtype == DType::i8, n, shape.depth, shape.depth, 1}, weights,
                right.is_signed, shape.cols, zeros, b_zero, c + first * shape.cols, shape.cols,
                scratch.subspan(layout.workers + layout.worker_bytes * static_cast<std::size_t>(worker), layout.worker_bytes));
    }
  };
  if (packed) {
    pool.for_each(shape.batches * bands, [&](std::int64_t task, int worker) {
      rows_of(task / bands, part_of(shape.rows, bands, task % bands, 32), packed, worker);
    });
    return;
  }
  pool.for_each(shape.batches, [&](std::int64_t batch, int worker) {
    std::byte* const own = scratch.data() + layout.packed + packed_bytes * static_cast<std::size_t>(worker);
    Int8Matrix matrix = right;
    matrix.data = static_cast<const std::uint8_t*>(right.data) + batch_offset(batch);
    pack_int8(matrix, own);
    rows_of(batch, {0, shape.rows}, own, worker);
  });
}

}  // namespace tenon::cpu

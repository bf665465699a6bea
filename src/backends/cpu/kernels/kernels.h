// Kernels: the inner loops of the CPU backend, one table per instruction set, chosen once at run time.
//
// Every kernel works on contiguous blocks in a *compute type* (f32, f64, the integers, bool as u8). They are compiled
// from the same source for x86-64-v2, v3 (AVX2) and v4 (AVX-512); nothing compiled for a higher level may be reachable from a
// lower table, not even an inline function (tests/backends/cpu checks the objects for weak symbols). Thread safety: tables are
// constant; kernels touch only their arguments.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/elementwise/elementwise.h"
#include "tenon/array/dtype.h"
#include "tenon/graph.h"

namespace tenon::cpu {

// out[0..n) = op(in[0][0..n), in[1][0..n), ...; params). Inputs and output are in the op's compute type; a bool result or a
// condition is u8 0/1. out may be one of the inputs; other overlaps are not allowed. No alignment is required (64 bytes is
// fastest).
using ElementwiseKernel = void (*)(const void* const* in, void* out, std::int64_t n, const double* params);

// out[0..n) = in[0..n) converted with the rules of HostArray::cast.
using ConvertKernel = void (*)(const void* in, void* out, std::int64_t n);

// What reductions accumulate in: double for f32 and f64, i64 for signed, u64 for unsigned integers and bool. any and all give 0
// or 1 in the same member.
union Accumulator {
  double f;
  std::int64_t i;
  std::uint64_t u;
};

// Reduces in[0..n); the identity if n is 0. Float sums go to fixed lanes (element i to lane i mod 64 in f32, mod 32 in f64) over
// at most 1024 elements, are combined to 16 (8) by halves and added in double, whose lanes are combined as a balanced tree in the
// end: the error does not grow with n, and the result is the same on every instruction set.
using PartialReduceKernel = Accumulator (*)(const void* in, std::int64_t n);

// out[i] is the reduction of row i of |cols| elements, computed in double.
using ShortRowsKernel = void (*)(const float* in, std::int64_t rows, std::int64_t cols, Accumulator* out);

// The sum of a[i] * b[i], the products rounded, as a partial reduction of them gives it.
using ProductSumKernel = Accumulator (*)(const void* a, const void* b, std::int64_t n);

// acc[j] = acc[j] (+) in[i * row_stride + j] for i in [0, rows), j in [0, n); row_stride in elements. Same accuracy rule: at most
// 16 rows are added in f32 before they go to acc. acc holds Accumulators, initialised by the caller.
using ColumnReduceKernel = void (*)(const void* in, std::int64_t rows, std::int64_t row_stride, std::int64_t n, Accumulator* acc);

// dst[j * dst_stride + i] = src[i * src_stride + j], i in [0, rows), j in [0, cols); strides in elements. |stream| asks for
// non-temporal stores.
using TransposeKernel = void (*)(const void* src, std::int64_t src_stride, void* dst, std::int64_t dst_stride, std::int64_t rows,
                                 std::int64_t cols, bool stream);

// dst[r * dst_row + c] = src[r * src_row + c * step], r in [0, rows), c in [0, cols); strides in elements.
using StridedKernel = void (*)(const void* src, std::int64_t step, std::int64_t src_row, void* dst, std::int64_t dst_row,
                               std::int64_t rows, std::int64_t cols);

// Two ranges, as long as what a kernel reads, that it prefetches on the way because they are read next.
struct Ahead {
  const void* first;
  const void* second;
};

// Distances of two arrays, element by element, reduced as a partial reduction of them would be: losses and norms.
struct DifferenceReduce {
  ProductSumKernel sum_of_distances = nullptr;  // |a[i] - b[i]|
  ProductSumKernel largest_distance = nullptr;
  ProductSumKernel sum_of_squares = nullptr;  // (a[i] - b[i])^2
};

// The sum of (in[i] - *shift)^2, rounded like a partial reduction of them: a variance without a pass for the deviations.
using SquaredDeviationsKernel = Accumulator (*)(const void* in, const void* shift, std::int64_t n, Ahead ahead);

// The largest |in[i]| and the sum of in[i]^2, each as a partial reduction gives it.
using LargestAndSquaresKernel = void (*)(const void* in, std::int64_t n, Accumulator* largest, Accumulator* squares);

// out[i] = op(a[i], b[i]), and what a partial reduction of these gives.
using StoreAndReduceKernel = Accumulator (*)(const void* a, const void* b, void* out, std::int64_t n);

// out[i] = (in[i] - rows[0]) / rows[1] * rows[2] + rows[3]: the quotient as deviation_with forms it, the rest as one
// multiply-add.
using NormalizeKernel = void (*)(const void* in, const float* rows, void* out, std::int64_t n);

// out[i] = exp(in[i] - shift), and the sum of these with the accuracy of a partial reduction: the heart of softmax. f32.
using ExpSumKernel = Accumulator (*)(const float* in, float shift, float* out, std::int64_t n, Ahead ahead);

inline constexpr int kStorageTypes = 13;  // DType::boolean .. DType::f64: everything but the block formats
inline constexpr int kReduceKinds = 6;    // in the order of ReduceKind

struct Kernels {
  const char* isa;  // "x86-64-v4"
  // [op][dtype]: nullptr where the op's traits exclude the type (and for f16, bf16, which compute in f32).
  ElementwiseKernel elementwise[kElementwiseCount][kStorageTypes];
  // Inputs and results in bf16, [op]: computed in f32 and rounded once. nullptr for all but cheap ops.
  ElementwiseKernel elementwise_bf16[kElementwiseCount];
  ElementwiseKernel elementwise_f16[kElementwiseCount];  // likewise; none without instructions that convert
  // f32, [op]: op(in[0] * in[1] + in[2]), the product unrounded. nullptr for all but the common activations.
  ElementwiseKernel after_multiply_add[kElementwiseCount];
  // The same two for f32, and the first for f64, with streaming stores, for results that will not be read soon; nullptr
  // where computing takes longer than writing. out must not be an input; call stream_fence() before another thread reads it.
  ElementwiseKernel streaming[kElementwiseCount];
  ElementwiseKernel streaming_f64[kElementwiseCount];
  ElementwiseKernel streaming_after_multiply_add[kElementwiseCount];
  // f32, [op]: op(in[0][i], *in[1]), and with streaming stores (as above). nullptr for all but Add, Sub, Mul, Maximum and
  // Minimum; for Mac in[0][i] * *in[1] + *in[2].
  ElementwiseKernel with_one[kElementwiseCount];
  ElementwiseKernel streaming_with_one[kElementwiseCount];
  // f32 and f64, [op]: op(in[0][i] - *in[1], *in[2]), likewise. Sub, Mul and Div; f32 divides by multiplying with the reciprocal
  // where that is a normal number: several times faster, half an ULP less exact.
  ElementwiseKernel deviation_with[kElementwiseCount][kStorageTypes];
  ElementwiseKernel streaming_deviation_with[kElementwiseCount][kStorageTypes];
  // From f32 to i8 or u8: min(max(rint(x / params[0]) + params[1], params[2]), params[3]) as doubles give it, 0 for NaN. The
  // divisor is positive, the others are whole numbers within +-256.
  ElementwiseKernel quantize;
  // Of f32, also with streaming stores, and from bf16 to bf16. nullptr without FMA instructions.
  NormalizeKernel normalize, streaming_normalize, normalize_bf16;
  ConvertKernel convert[kStorageTypes][kStorageTypes];  // [from][to]
  // Also sums, largest and smallest elements of bf16, as of the same numbers in f32.
  PartialReduceKernel partial_reduce[kReduceKinds][kStorageTypes];
  ShortRowsKernel short_rows[kReduceKinds];              // of f32; nullptr for any and all
  PartialReduceKernel largest_magnitude[kStorageTypes];  // of |in[i]|; f32, f64 and bf16
  // The same for elements that are in no cache: it prefetches them. nullptr where there is no such kernel.
  PartialReduceKernel far_reduce[kReduceKinds][kStorageTypes];
  ColumnReduceKernel column_reduce[kReduceKinds][kStorageTypes];  // bf16 likewise
  ProductSumKernel product_sum[kStorageTypes];                    // f32 and f64; nullptr for the others
  ProductSumKernel far_product_sum[kStorageTypes];                // prefetches, as far_reduce
  DifferenceReduce difference_reduce[kStorageTypes];              // f32 and f64
  // f32 and f64; Add, Sub and Mul; nullptr for the others.
  SquaredDeviationsKernel sum_of_squared_deviations[kStorageTypes];
  // (in[i] / *shift)^2, by the reciprocal like deviation_with: f32, and bf16 by an f32.
  SquaredDeviationsKernel sum_of_squared_quotients[kStorageTypes];
  LargestAndSquaresKernel largest_and_squares[kStorageTypes];  // f32 and bf16
  StoreAndReduceKernel store_and_sum[kElementwiseCount][kStorageTypes];
  StoreAndReduceKernel store_and_max[kElementwiseCount][kStorageTypes];
  ExpSumKernel exp_sum;
  ExpSumKernel exp_sum_alone;  // stores nothing
  // out[i] = in[i] * factor; out may be in (not for streaming_scale).
  void (*scale)(const float* in, float factor, float* out, std::int64_t n);
  void (*streaming_scale)(const float* in, float factor, float* out, std::int64_t n);
  TransposeKernel transpose[4];  // by log2 of the element's bytes
  StridedKernel strided[4];
  // Copies runs that need not be aligned: up to a few pages, where the C library starts a string instruction that is slow then.
  void (*copy)(void* dst, const void* src, std::size_t bytes);
  // Copies with streaming stores. dst need not be aligned; call stream_fence() before another thread reads dst.
  void (*stream_copy)(void* dst, const void* src, std::size_t bytes);
  void (*stream_fence)();
  // |count| times the element of 1, 2, 4 or 8 bytes at |value|. dst must be aligned for it.
  void (*fill)(void* dst, const void* value, std::size_t bytes, std::size_t count);
  void (*stream_fill)(void* dst, const void* value, std::size_t bytes, std::size_t count);
};

// The best table this CPU can run. TENON_ISA=v2|v3|v4 limits it (for tests and comparisons).
const Kernels& kernels();
// A given level's table, or nullptr if this CPU cannot run it. Levels: 2, 3, 4; 0 on machines other than x86-64.
const Kernels* kernels_for_level(int level);

}  // namespace tenon::cpu

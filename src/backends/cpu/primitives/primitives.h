// The CPU backend's primitives that are not elementwise: one function each, on plain memory.
//
// All data is in compute types (f32, f64, integers, bool as u8; see compute_dtype). Outputs are dense row-major and never overlap
// inputs. Functions split their work over |pool|; results do not depend on the number of threads. None allocates: scratch memory
// is asked for beforehand (*_scratch_bytes, for all threads together) and passed in, 64-byte aligned. Thread safety: they touch
// only their arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/threads/thread_pool.h"
#include "tenon/graph.h"

namespace tenon::cpu {

// Elements of a tensor, anywhere in memory: element [i...] is data[sum(i * strides)] (strides in elements; 0 and negative
// allowed).
struct View {
  const void* data = nullptr;
  DType dtype = DType::f32;
  Shape shape;
  Strides strides{};
};
struct Target {  // where a result goes; dense unless strides say otherwise
  void* data = nullptr;
  DType dtype = DType::f32;
  Shape shape;
  Strides strides{};
};
View dense_view(const void* data, DType dtype, const Shape& shape);
Target dense_target(void* data, DType dtype, const Shape& shape);

// True if results this large should use streaming stores; |bytes| is everything that the step reads and writes.
bool beyond_cache(std::size_t bytes);

// target[i] = source[i]; same dtype and shape. Transposed sources go through the tiled transpose kernel, runs through memcpy or
// streaming stores.
void copy(ThreadPool& pool, const View& source, const Target& target);
void fill(ThreadPool& pool, const Target& target, double value);
// The parts side by side along |axis|, all of the target's dtype.
void concat(ThreadPool& pool, std::span<const View> parts, int axis, const Target& target);

// out = a x b, last two axes, equal batch axes; |attr| as in the graph. f32 and f64 by our own packed product (gemm_blocked.h),
// or, on CPUs without AVX2, by a plain loop (gemm.h); integers by a blocked loop, wrapping. a and b may be
// any view whose last two axes have a unit stride in one of them; anything else needs a copy() first (is_blas_layout).
bool is_blas_layout(const View& matrix);
void matmul(ThreadPool& pool, const View& a, const View& b, const MatMulAttr& attr, const Target& out);

// The same for operands of 16 bits, f16 or bf16, and an f32 result: vectors are multiplied as they are read, matrices of bf16 by
// the instructions the CPU has for them (gemm_bf16.h). Only where has_matmul16() says so; else convert the operands first.
bool has_matmul16(DType dtype, const View& a, const View& b, const MatMulAttr& attr, const Shape& out);
void matmul16(ThreadPool& pool, const View& a, const View& b, const MatMulAttr& attr, const Target& out);
// Whether the result may be bf16 instead: many products, or short ones, rounded while they are in a cache.
bool stores_matmul16(const ThreadPool& pool, const View& a, const View& b, const MatMulAttr& attr, const Shape& out);

std::size_t conv_scratch_bytes(const ThreadPool& pool, const View& x, const View& weight, const ConvAttr& attr, const Shape& out);
void conv(ThreadPool& pool, const View& x, const View& weight, const ConvAttr& attr, const Target& out,
          std::span<std::byte> scratch);
// The same for dense bf16 operands and an f32 result, by the instructions the CPU has for them. Only where has_conv16() says so.
bool has_conv16(DType dtype, const View& x, const View& weight, const ConvAttr& attr, const Shape& out);
std::size_t conv16_scratch_bytes(const ThreadPool& pool, const View& x, const View& weight, const ConvAttr& attr,
                                 const Shape& out);
void conv16(ThreadPool& pool, const View& x, const View& weight, const ConvAttr& attr, const Target& out,
            std::span<std::byte> scratch);
void window(ThreadPool& pool, const View& x, const WindowAttr& attr, const Target& out);

// Indices are i64; an index outside [-extent, extent) throws out_of_range naming it and the extent.
void take(ThreadPool& pool, const View& x, const View& indices, int axis, const Target& out);
void gather(ThreadPool& pool, const View& x, const View& indices, int axis, const Target& out);
// Copies x to |out| and writes the updates there.
void scatter(ThreadPool& pool, const View& x, const View& indices, const View& updates, const ScatterAttr& attr,
             const Target& out);
// scatter that adds, for dense x and updates of 16 bits, which are added in f32 and rounded once. Only where has_scatter_add16()
// says so.
bool has_scatter_add16(const ThreadPool& pool, DType dtype, const Shape& indices, const Shape& out, int axis);
std::size_t scatter_add16_scratch_bytes(const ThreadPool& pool, const Shape& out, int axis);
void scatter_add16(ThreadPool& pool, const View& x, const View& indices, const View& updates, int axis, const Target& out,
                   std::span<std::byte> scratch);

void arg_reduce(ThreadPool& pool, const View& x, const ArgReduceAttr& attr, const Target& out);
std::size_t arg_sort_scratch_bytes(const ThreadPool& pool, const View& x, int axis);
void arg_sort(ThreadPool& pool, const View& x, const ArgSortAttr& attr, const Target& out, std::span<std::byte> scratch);
void cumulative(ThreadPool& pool, const View& x, const CumulativeAttr& attr, const Target& out);
void random(ThreadPool& pool, const RandomAttr& attr, const Target& out);
void iota(ThreadPool& pool, const AxisAttr& attr, const Target& out);

}  // namespace tenon::cpu

// Kernels of the primitives that are no groups. Operands are dense and row-major unless a function says otherwise, in any stored
// type; results are dense. Slots as in loop.h.
#pragma once

#include <array>
#include <functional>
#include <optional>

#include "codegen/c/loops/loop.h"

namespace tenon::emit {

class GroupReader;

struct Dense {
  int slot = 0;
  DType stored = DType::f32;
  Shape shape;
};

Launch emit_fill(const KernelTarget& target, const Shape& shape, const Access& to, double value);
// |from|, of shape |inside|, in the middle of |out|; nothing where a copy into a filled result is as good or better.
std::optional<Launch> emit_pad(const KernelTarget& target, const Shape& inside, const Access& from, const PadAttr& attr,
                               const Dense& out);
Launch emit_iota(const KernelTarget& target, const Dense& out);  // along the one axis that is not 1
Launch emit_random(const KernelTarget& target, const RandomAttr& attr, DType dtype, const Dense& out);
// The elementwise group that alone reads |random|, element for element, with the numbers drawn in place (CUDA). Nothing is
// asked of the reader's placement about where they are.
Launch emit_random_group(const KernelTarget& target, NodeId random, GroupReader& reader, const GroupPlacement& placement);

// |status| is the slot of the status words (hal/kernel_plan.h).
Launch emit_take(const KernelTarget& target, const Dense& x, const Dense& indices, int axis, const Dense& out, int status);
Launch emit_gather(const KernelTarget& target, const Dense& x, const Dense& indices, int axis, const Dense& out, int status);
Launch emit_window(const KernelTarget& target, const Dense& x, const WindowAttr& attr, const Dense& out);
Launch emit_conv(const KernelTarget& target, const Dense& x, const Dense& weight, const ConvAttr& attr, const Dense& out);
// What a convolution with result |result| multiplies its weights of |size| with, for |count| images from |first| on:
// [image][channel][place in the window][pixel of the result], zero outside x. So a convolution is a matrix product.
Launch emit_unfolded(const KernelTarget& target, const Dense& x, const Spatial& size, const ConvAttr& attr, const Shape& result,
                     std::int64_t first, std::int64_t count, int to, DType to_stored);

// A transposed convolution (ConvTransposeAttr: a stride above 1 only without dilation) of few multiplications.
bool can_conv_transpose_directly(const KernelTarget& target, const Shape& x, const Shape& weight, const ConvTransposeAttr& attr,
                                 const Dense& out);
Launch emit_conv_transpose_directly(const KernelTarget& target, const Dense& x, const Dense& weight,
                                    const ConvTransposeAttr& attr, const Dense& out);
// The result from the convolutions of all phases of the stride, [n, phases, outs, places...]: element q of an axis is number
// (q + cut) / stride - cut / stride of phase (q + cut) % stride; cut is pad_low.
Launch emit_phases(const KernelTarget& target, const Dense& all, const ConvTransposeAttr& attr, const Dense& out);

// Elements of |parts|, each dense and of |shape|, in turn along the last axis: |to| places those of the first, and the others
// follow.
Launch emit_interleaved(const KernelTarget& target, const Shape& shape, std::span<const int> parts, const Access& to);

// scratch(bytes) gives a slot of temporary memory.
using Scratch = std::function<int(std::uint64_t bytes)>;
// The same as emit_conv() on the matrix units of a GPU; nothing where it has none, or they would have too little to do.
// |channels_last| is the slot of a copy of x with each pixel's channels side by side, or -1; where one is made, it is set.
std::optional<std::vector<Launch>> emit_matrix_conv(const KernelTarget& target, const Dense& x, const Dense& weight,
                                                    const ConvAttr& attr, const Dense& out, const Scratch& scratch,
                                                    int& channels_last);
// For cards with warpgroup products, images, and many channels.
std::optional<std::vector<Launch>> emit_warpgroup_conv(const KernelTarget& target, const Dense& x, const Dense& weight,
                                                       const ConvAttr& attr, const Dense& out, const Scratch& scratch,
                                                       int& channels_last);
// AdaptivePoolAttr as one kernel; CUDA only.
bool can_adaptive_pool(const KernelTarget& target, const Shape& x, const Shape& out, DType dtype);
Launch emit_adaptive_pool(const KernelTarget& target, const Dense& x, const AdaptivePoolAttr& attr, const Dense& out);
// Into |out|, which holds the values to start from.
std::vector<Launch> emit_scatter(const KernelTarget& target, const Dense& indices, const Dense& updates, const ScatterAttr& attr,
                                 const Dense& out, int status, const Scratch& scratch);
// The same from |x|, which |out| need not hold, where the lines of the result are short enough for local memory and there are
// many of them, as many as lines of indices. CUDA only. Sums are rounded once.
bool can_scatter_lines(const KernelTarget& target, const Shape& indices, const ScatterAttr& attr, const Shape& out, DType dtype);
Launch emit_scatter_lines(const KernelTarget& target, const Access& x, const Dense& indices, const Dense& updates,
                          const ScatterAttr& attr, const Dense& out, int status);
// The same where all elements of a row, whatever comes after the axis, have one index: |indices| has one axis. CUDA only.
bool can_scatter_rows(const KernelTarget& target, const Shape& indices, const ScatterAttr& attr, const Dense& out);
std::vector<Launch> emit_scatter_rows(const KernelTarget& target, const Dense& indices, const Dense& updates,
                                      const ScatterAttr& attr, const Dense& out, int status, const Scratch& scratch);
// The same sums from |x|, which |out| need not hold, of many rows in places few enough for local memory; |indices| has the shape
// of the updates. Sums are rounded once, and formed in an order of their own, the same in every run. CUDA only.
bool can_scatter_few(const KernelTarget& target, const Shape& indices, const ScatterAttr& attr, const Shape& out, DType dtype);
std::vector<Launch> emit_scatter_few(const KernelTarget& target, const Access& x, const Access& indices, const Dense& updates,
                                     const ScatterAttr& attr, const Dense& out, int status, const Scratch& scratch);
std::vector<Launch> emit_arg_reduce(const KernelTarget& target, const Dense& x, const ArgReduceAttr& attr, const Dense& out,
                                    const Scratch& scratch);
std::vector<Launch> emit_cumulative(const KernelTarget& target, const Dense& x, const CumulativeAttr& attr, const Dense& out,
                                    const Scratch& scratch);
std::vector<Launch> emit_arg_sort(const KernelTarget& target, const Dense& x, const ArgSortAttr& attr, const Dense& out,
                                  const Scratch& scratch);

// Element (batch, row, column) at offset + batch * strides[0] + row * strides[1] + column * strides[2].
struct Matrix {
  int slot = 0;
  DType stored = DType::f32;
  std::int64_t offset = 0;
  std::array<std::int64_t, 3> strides{};
  bool is_given = false;  // an input of the program, which no kernel of it writes
};
struct MatrixSize {
  std::int64_t batches = 1, m = 0, n = 0, k = 0;
};
// On a processor b's columns must be neighbours.
Launch emit_matmul(const KernelTarget& target, const MatrixSize& size, DType compute, const Matrix& a, const Matrix& b,
                   const Matrix& out);
// What a product of few rows computes besides: before, of its rows, and after, before its result is stored.
struct ProductEnd {
  struct Bias {
    int slot = 0;
    DType stored = DType::f32;
    std::int64_t offset = 0;
  };
  std::optional<Bias> bias;  // one number a column
  bool relu = false;         // max(x, 0)
  // Elements i of the result are computed from columns i, i + n, ... of the product, |segments| of them; n is the result's.
  struct Tail {
    std::int64_t segments = 1;
    // Statements that define |result| from the variables |values|, for the row and column of these names.
    std::function<std::string(Body& body, std::span<const std::string> values, const std::string& row, const std::string& column,
                              std::string& result)>
        text;
  };
  std::optional<Tail> tail;
  // The rows of a are the root mean square norm of these, times the weight, rounded to the type of b. a has no memory then.
  struct Norm {
    Access x;  // f32, with rows of unit stride
    Bias weight;
    double eps = 0;
    bool is_given = false;  // the weight, as Matrix::is_given
  };
  std::optional<Norm> norm;
};
// The same for a few rows of a, or columns of b; nothing where that would not be faster.
std::optional<Launch> emit_few_rows(const KernelTarget& target, MatrixSize size, DType compute, Matrix a, Matrix b, Matrix out,
                                    const ProductEnd& end);

// Products with small integers (QuantizedMatMulAttr). |x| is f32.
struct QuantizedOperands {
  Dense x, codes, scales;
  std::optional<Dense> minima;
};
bool can_quantized_matmul(const KernelTarget& target, const Shape& out, const QuantizedMatMulAttr& attr);
std::vector<Launch> emit_quantized_matmul(const KernelTarget& target, const QuantizedOperands& operands,
                                          const QuantizedMatMulAttr& attr, const Dense& out, const Scratch& scratch);

// Block formats: the tensor's encoded bytes to f32, f32 to encoded bytes, and what f32 becomes by going there and back.
Launch emit_block_decode(const KernelTarget& target, DType block, const Shape& shape, int from, int to);
Launch emit_block_encode(const KernelTarget& target, DType block, const Shape& shape, int from, int to);
Launch emit_block_round(const KernelTarget& target, DType block, const Shape& shape, int from, int to);
// Bytes as they are.
Launch emit_byte_copy(const KernelTarget& target, std::uint64_t bytes, int from, int to);

// |count| independent items, numbered by the variable j (i64) in |inside|; |cost| is about how many elements one of them touches.
Launch emit_items(Body& body, std::int64_t count, std::int64_t cost, const std::string& inside);

}  // namespace tenon::emit

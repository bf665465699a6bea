// Indexing with a list of indices: reading, assigning, and the places of true elements.
//
// NumPy's rules. Numbers and Slices are views. Tensors of integers are broadcast together and select one element for each of
// theirs; their axes replace the first of the indexed axes, or come first if the indexed axes are not next to each other. A
// tensor of bools stands for the indices of its true elements: their number is only known from the value, so that such an index
// evaluates the mask at once (one program), and what it selects is a second program.
//
//   Tensor rows = index(x, std::array<Index, 2>{i, j});              // x[i, j]
//   x = with_index(x, std::array<Index, 1>{mask}, 0);                // x[mask] = 0
//
// Thread safety: all calls may run concurrently.
#pragma once

#include <span>
#include <vector>

#include "tenon/tensor.h"

namespace tenon {

// x[indices]. Throws out_of_range for numbers outside an axis, invalid_argument for tensors that are neither integers nor bools;
// integers in a tensor are checked when it is evaluated.
Tensor index(const Tensor& x, std::span<const Index> indices);

// A copy of |x| in which x[indices] is |value|, broadcast and converted to the dtype of x. A single mask with a value of one
// element evaluates nothing.
Tensor with_index(const Tensor& x, std::span<const Index> indices, const Tensor& value);

// The indices of the elements that are not 0, in row-major order: one int64 tensor for each axis. Evaluates |x|. Throws
// invalid_argument for a tensor without axes.
std::vector<Tensor> nonzero(const Tensor& x);

}  // namespace tenon

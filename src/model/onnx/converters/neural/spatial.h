// The attributes that convolutions and pools of ONNX share: kernel, strides, dilations, pads.
#pragma once

#include "model/onnx/converters/families.h"

namespace tenon::onnx {

struct Window {
  Dims kernel, stride, dilation, low, high;  // one entry per spatial axis
  Dims out;                                  // extents of the result
  // The part of |high| that ceil_mode added beyond the padding of the model.
  Dims overhang;

  std::size_t axes() const { return kernel.size(); }
  std::int64_t reach(std::size_t i) const { return (kernel[i] - 1) * dilation[i] + 1; }
};

// |kernel| from the weight, or empty to read kernel_shape. |extents| are the spatial extents of the input.
Window window_of(const NodeContext& node, Dims kernel, const Dims& extents);

Dims spatial_extents(const Shape& shape);  // without batch and channels
Spatial spatial(const Dims& values, std::int64_t fallback);

// Windows of |x| [n, c, spatial...] as [n, c, out..., kernel elements]; padding is |value|.
Expr patches(const NodeContext& node, Expr x, const Window& window, Expr value);

// Exact products of integers that are held as floats; see products.cpp.
Expr exact_matmul(Expr a, Expr b, double largest_a, double largest_b);

}  // namespace tenon::onnx

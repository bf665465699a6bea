// Formats a tensor as NumPy does: rows in brackets, columns aligned, large tensors abbreviated.
//
//   [[1.0 2.5]
//    [3.0 4.0]]
#pragma once

#include <string>

#include "tenon/array.h"

namespace tenon {

struct ArrayStyle {
  int width = 80;                 // lines are wrapped here
  std::int64_t threshold = 1000;  // tensors with more elements are abbreviated
  std::int64_t edge_items = 3;    // shown at each end of an abbreviated axis
};

// Floats have up to six significant digits of the largest (five for 16-bit and block formats), with an exponent if the largest
// is at least 1e8 or the smallest is below 1e-4. There is no newline at the end.
std::string format_array(const HostArray& array, const ArrayStyle& style = {});

}  // namespace tenon

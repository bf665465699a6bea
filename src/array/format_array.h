// A tensor as text, as NumPy prints it: rows in brackets, columns aligned, large tensors abbreviated.
//
//   [[1.0 2.5]
//    [3.0 4.0]]
#pragma once

#include <string>

#include "tenon/array.h"

namespace tenon {

struct ArrayStyle {
  int width = 80;                 // lines are wrapped here
  std::int64_t threshold = 1000;  // a tensor of more elements is abbreviated
  std::int64_t edge_items = 3;    // kept at either end of an abbreviated axis
};

// Floats show up to six significant digits of the largest (five for the 16-bit and block formats); an exponent where the largest
// is 1e8 or more or the smallest is below 1e-4. No newline at the end.
std::string format_array(const HostArray& array, const ArrayStyle& style = {});

}  // namespace tenon

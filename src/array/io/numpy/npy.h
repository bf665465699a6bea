// Strict parsing and writing of the header of a .npy file.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "tenon/array/dtype.h"
#include "tenon/array/shape.h"

namespace tenon {

// Far more than a header of eight axes needs; NumPy's own reader stops at 10,000.
inline constexpr std::size_t kMaxNpyHeaderBytes = std::size_t{64} << 10;

struct NpyHeader {
  DType dtype = DType::f32;
  bool big_endian = false;
  bool fortran_order = false;
  Shape shape;
};

// |text| is the dictionary with its padding. Throws invalid_argument with the problem and what was expected.
NpyHeader parse_npy_header(std::string_view text);

// Magic, version, length and dictionary for a row-major array, padded so that the data starts at a multiple of 64.
std::string format_npy_header(DType dtype, const Shape& shape);

}  // namespace tenon

// Planes: an image with its padding, in memory where all places that one tap of a sliding window reads are neighbours.
//
// There is one plane for each remainder of a position by the strides. Element (y, x) of plane (ry, rx) is element
// (y * stride + ry - pad, x * stride + rx - pad) of the image, or 0 outside. Rows of a plane are |pitch| apart, and the place
// (y, x) of the result reads tap t at plane[offset(t) + y * pitch + x]. With three spatial axes there are such planes for each
// slice that the taps of the first one read, for some neighbouring slices of the result.
#pragma once

#include <cstdint>

#include "backends/cpu/primitives/primitives.h"
#include "backends/cpu/primitives/spatial/sliding.h"

namespace tenon::cpu {

// The windows of a convolution, with axes at which nothing happens moved to the front.
Sliding sliding_of(const View& x, const Shape& weight, const ConvAttr& attr, const Shape& out);

struct Planes {
  Sliding at;
  std::int64_t band = 1;    // rows of the result at a time
  std::int64_t slices = 1;  // of the result at a time: more than one only of whole bands
  std::int64_t pitch = 1;
  std::int64_t plane_elements = 0;                // of one plane
  std::int64_t slice_elements = 0, elements = 0;  // of the planes of one slice, of all planes of a channel

  // |most|: elements of one plane that a band may have, roughly.
  Planes(const Sliding& sliding, std::int64_t most);
  void set_band(std::int64_t rows, std::int64_t slice_count = 1);
  // Whether there may be several slices of the result at a time.
  bool has_slices() const { return at.out[0] > 1 && at.dilation[0] == 1; }
  // From a slice of the result to the next.
  std::int64_t slice_step() const { return at.stride[0] * slice_elements; }
  // Slices of the input that |count| slices of the result read.
  std::int64_t slices_for(std::int64_t count) const { return (count - 1) * at.stride[0] + at.size[0]; }

  std::int64_t offset(std::int64_t tap) const;
  // The planes of one channel for |rows| rows from |first| on of |count| slices of the result from |slice| on. |image|: the
  // channel's elements.
  void fill(const float* image, std::int64_t slice, std::int64_t count, std::int64_t first, std::int64_t rows,
            float* planes) const;

  // Rows of a plane for |rows| rows of the result.
  std::int64_t rows_for(std::int64_t rows) const { return rows + (at.size[1] - 1) * at.dilation[1] / at.stride[1]; }
  // The elements of a row of a plane that are in the image: with remainder |rx|, element i is at i * stride + rx - pad.
  Range columns_inside(std::int64_t rx) const;

 private:
  void fill_slice(const float* image, std::int64_t first, std::int64_t rows, float* planes) const;
};

}  // namespace tenon::cpu

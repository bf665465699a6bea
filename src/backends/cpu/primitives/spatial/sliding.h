// Sliding windows over up to three spatial axes; the geometry shared by pooling and convolution.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/cpu/primitives/split.h"
#include "tenon/graph.h"

namespace tenon::cpu {

// Always three spatial axes, the last one fastest: with fewer, leading ones have extent 1.
struct Sliding {
  Spatial in{1, 1, 1}, out{1, 1, 1}, size{1, 1, 1}, stride{1, 1, 1}, dilation{1, 1, 1}, pad{};
  Spatial steps{};  // of the input, in elements

  template <class Attr>
  Sliding(const Attr& attr, const Spatial& window, const Shape& x, const Strides& strides, const Shape& result) {
    const int axes = x.rank() - 2;
    for (int i = 0; i < axes; ++i) {
      const auto from = static_cast<std::size_t>(i), to = static_cast<std::size_t>(i + 3 - axes);
      in[to] = x[i + 2];
      out[to] = result[i + 2];
      size[to] = window[from];
      stride[to] = attr.stride[from];
      dilation[to] = attr.dilation[from];
      pad[to] = attr.pad_low[from];
      steps[to] = strides[from + 2];
    }
  }

  // Moves axes at which nothing happens to the front: a row of places becomes as long as it can be.
  void squeeze() {
    for (int i = 0; i < 2 && in[2] == 1 && out[2] == 1 && size[2] == 1 && pad[2] == 0; ++i)
      for (Spatial* each : {&in, &out, &size, &stride, &dilation, &pad, &steps}) {
        (*each)[2] = (*each)[1];
        (*each)[1] = (*each)[0];
        (*each)[0] = each == &pad || each == &steps ? 0 : 1;
      }
  }

  std::int64_t places() const { return out[0] * out[1] * out[2]; }
  std::int64_t window() const { return size[0] * size[1] * size[2]; }

  // The position along one axis at which tap |tap| of the window at |place| reads; may be outside the input.
  std::int64_t source(std::size_t axis, std::int64_t place, std::int64_t tap) const {
    return place * stride[axis] - pad[axis] + tap * dilation[axis];
  }
  bool is_inside(std::size_t axis, std::int64_t position) const { return position >= 0 && position < in[axis]; }

  // The positions in [begin, end) of the last axis whose tap |tap| is inside the input.
  Range inside(std::int64_t tap, std::int64_t begin, std::int64_t end) const {
    const std::int64_t shift = pad[2] - tap * dilation[2];  // source = place * stride - shift
    const std::int64_t first = shift <= 0 ? 0 : (shift + stride[2] - 1) / stride[2];
    const std::int64_t reach = in[2] - 1 + shift;
    const std::int64_t last = reach < 0 ? 0 : reach / stride[2] + 1;
    const std::int64_t from = std::clamp(first, begin, end);
    return {from, std::clamp(last, from, end)};
  }
};

}  // namespace tenon::cpu

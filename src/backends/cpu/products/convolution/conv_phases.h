// A transposed convolution as several convolutions.
//
// With steps of s, the results whose place has the same remainder by s are made by the same elements of the kernel: they are a
// convolution with a step of 1 by those elements in reverse order. A phase is one of these s x s convolutions. Nothing is
// multiplied with the zeros that spreading the image would add. An ordinary convolution is a single phase.
#pragma once

#include <cstdint>
#include <vector>

#include "backends/cpu/products/convolution/conv_blocked.h"

namespace tenon::cpu {

// Along one axis: result |first| + i * |step| is the sum over j < |taps| of input i * |stride| + j * |dilation| - |pad| times
// element |tap| + j * |tap_step| of the kernel.
struct PhaseAxis {
  std::int64_t first = 0, step = 1, count = 0;  // of the result
  std::int64_t taps = 0, tap = 0, tap_step = 1;
  std::int64_t stride = 1, dilation = 1, pad = 0;
};

struct ConvPhase {
  PhaseAxis h, w;
  std::int64_t weights = 0;  // where its packed weights begin

  std::int64_t window() const { return h.taps * w.taps; }
};

// What phase |phase| of a transposed convolution is along an axis of |size| elements of the kernel and |out| of the result.
// |taps| is 0 where no element belongs to it. The elements do not depend on the padding and the result.
PhaseAxis transposed_phase(const ConvAttr& attr, std::size_t axis, std::int64_t size, std::int64_t out, std::int64_t phase);

// In the order of their packed weights. |out|: extents of the result along the two axes. Phases without results are among them.
std::vector<ConvPhase> phases_of(const BlockedConv& conv, std::int64_t out_h, std::int64_t out_w);

}  // namespace tenon::cpu

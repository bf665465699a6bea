#include "backends/cpu/products/convolution/conv_phases.h"

#include <algorithm>
#include <numeric>

#include "backends/cpu/products/convolution/conv_packed.h"

namespace tenon::cpu {
namespace {

constexpr std::int64_t kBlock = kChannelBlock;
constexpr std::int64_t kHeader = 16;  // floats before the packed weights; the first is 1 if all weights are finite

std::int64_t divided_down(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }
std::int64_t divided_up(std::int64_t a, std::int64_t b) { return -divided_down(-a, b); }

PhaseAxis plain_phase(const ConvAttr& attr, std::size_t axis, std::int64_t size, std::int64_t out) {
  return {.count = out, .taps = size, .stride = attr.stride[axis], .dilation = attr.dilation[axis], .pad = attr.pad_low[axis]};
}

// Channels of the input that a tap of the packed weights has side by side.
std::int64_t unit_of(const BlockedConv& conv) { return conv.is_plain || is_depthwise(conv.weight, conv.attr) ? 1 : kBlock; }

std::int64_t rows_of(const BlockedConv& conv) { return channel_blocks(conv.outs()) * kBlock; }

}  // namespace

// Element k of the kernel carries input i to place i * step + k * dilation - pad.
PhaseAxis transposed_phase(const ConvAttr& attr, std::size_t axis, std::int64_t size, std::int64_t out, std::int64_t phase) {
  const std::int64_t step = attr.stride[axis], dilation = attr.dilation[axis], pad = attr.pad_low[axis];
  PhaseAxis p{.step = step};
  const std::int64_t begin = divided_up(pad - phase, step), end = divided_down(out - 1 + pad - phase, step) + 1;
  p.first = begin * step + phase - pad;
  p.count = std::max<std::int64_t>(0, end - begin);
  const std::int64_t common = std::gcd(step, dilation), every = step / common;
  std::int64_t first = 0;  // element of the phase
  while (first < std::min(size, every) && (first * dilation - phase) % step != 0) ++first;
  if (first >= std::min(size, every)) return p;
  p.taps = (size - 1 - first) / every + 1;
  p.tap = first + (p.taps - 1) * every;
  p.tap_step = -every;
  p.dilation = dilation / common;
  p.pad = (p.tap * dilation - phase) / step - begin;
  return p;
}

std::vector<ConvPhase> phases_of(const BlockedConv& conv, std::int64_t out_h, std::int64_t out_w) {
  const std::int64_t size_h = conv.weight[2], size_w = conv.weight[3];
  std::vector<ConvPhase> phases;
  if (!conv.is_transposed) {
    phases.push_back({plain_phase(conv.attr, 0, size_h, out_h), plain_phase(conv.attr, 1, size_w, out_w), kHeader});
    return phases;
  }
  std::int64_t next = kHeader;
  for (std::int64_t y = 0; y < conv.attr.stride[0]; ++y)
    for (std::int64_t x = 0; x < conv.attr.stride[1]; ++x) {
      phases.push_back(
          {transposed_phase(conv.attr, 0, size_h, out_h, y), transposed_phase(conv.attr, 1, size_w, out_w, x), next});
      next += phases.back().window() * conv.group_ins() * rows_of(conv);
    }
  return phases;
}

bool can_block(const BlockedConv& conv) {
  constexpr std::int64_t kMostPhases = 1024;
  const ConvAttr& attr = conv.attr;
  if (conv.weight.rank() != 4 || conv.weight.elements() == 0) return false;
  if (conv.is_transposed && attr.stride[0] * attr.stride[1] > kMostPhases) return false;
  if (is_depthwise(conv.weight, attr)) return !conv.is_plain;
  if (attr.groups == 1) return true;
  return !conv.is_plain && conv.group_outs() % kBlock == 0 && conv.group_ins() % kBlock == 0;
}

std::int64_t blocked_weight_elements(const BlockedConv& conv) {
  return kHeader + rows_of(conv) * conv.group_ins() * conv.weight[2] * conv.weight[3];
}

// Per phase [block of output channels][block of input channels][tap][input channel][output channel]; depthwise: [block][tap]
// [channel].
void pack_blocked_weights(const float* weight, const BlockedConv& conv, float* packed) {
  const Shape& shape = conv.weight;
  const std::int64_t size_w = shape[3], window = shape[2] * size_w, unit = unit_of(conv), outs = conv.outs(),
                     ins = conv.group_ins(), group_outs = conv.group_outs();
  std::fill_n(packed, kHeader, 0.0f);
  packed[0] = is_finite(weight, shape.elements()) ? 1.0f : 0.0f;
  const std::int64_t in_step = conv.is_transposed ? group_outs * window : window;
  // Of the result's extents only what the weights do not depend on.
  for (const ConvPhase& phase : phases_of(conv, 1, 1)) {
    float* to = packed + phase.weights;
    for (std::int64_t o = 0; o < outs; o += kBlock) {
      const std::int64_t lanes = std::min(kBlock, outs - o);
      const float* rows[kBlock];
      for (std::int64_t lane = 0; lane < lanes; ++lane) {
        const std::int64_t out = o + lane, group = out / group_outs;
        rows[lane] = weight + (conv.is_transposed ? (group * ins * group_outs + out % group_outs) * window : out * ins * window);
      }
      for (std::int64_t c = 0; c < ins; c += unit)
        for (std::int64_t t = 0; t < phase.window(); ++t) {
          const std::int64_t y = phase.h.tap + t / phase.w.taps * phase.h.tap_step,
                             x = phase.w.tap + t % phase.w.taps * phase.w.tap_step;
          for (std::int64_t i = c; i < std::min(ins, c + unit); ++i, to += kBlock) {
            const std::int64_t from = i * in_step + y * size_w + x;
            for (std::int64_t lane = 0; lane < lanes; ++lane) to[lane] = rows[lane][from];
            std::fill(to + lanes, to + kBlock, 0.0f);
          }
        }
    }
  }
}

}  // namespace tenon::cpu

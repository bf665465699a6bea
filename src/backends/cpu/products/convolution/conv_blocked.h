// Convolution of images whose channels are stored in blocks of 16: [n, blocks, h, w, 16]. The last block may have fewer; what is
// in its other lanes is never read.
//
// A vector is 16 channels of one place, so windows need not be laid out: the kernel multiplies a broadcast element of the input
// with vectors of weights and writes whole vectors. block_channels.h decides which values of a program are stored so. The input
// may also be [n, c, h, w] (an image with few channels). f32 and AVX-512 only, two spatial axes.
//
// Every element of the result is the same sequence of operations, whatever the batch and the number of threads: sums of
// kTerms terms in their order, added in their order. Thread safety and scratch memory as primitives.h.
#pragma once

#include <cstddef>
#include <span>

#include "backends/cpu/primitives/primitives.h"
#include "backends/cpu/products/epilogue.h"

namespace tenon::cpu {

inline constexpr std::int64_t kChannelBlock = 16;

// A convolution, or a transposed one, whose weight is [c, o / groups, h, w] and whose pads are those of ConvTransposeAttr.
struct BlockedConv {
  ConvAttr attr;
  Shape weight;           // [o, c / groups, h, w]
  bool is_plain = false;  // the input is [n, c, h, w]
  bool is_transposed = false;

  std::int64_t outs() const { return is_transposed ? weight[1] * attr.groups : weight[0]; }
  std::int64_t group_ins() const { return is_transposed ? weight[0] / attr.groups : weight[1]; }
  std::int64_t group_outs() const { return outs() / attr.groups; }
};

constexpr std::int64_t channel_blocks(std::int64_t channels) { return (channels + kChannelBlock - 1) / kChannelBlock; }

bool has_blocked_conv();

// Depthwise, of one group, or of groups that consist of whole blocks.
bool can_block(const BlockedConv& conv);

std::int64_t blocked_weight_elements(const BlockedConv& conv);
void pack_blocked_weights(const float* weight, const BlockedConv& conv, float* packed);

std::size_t blocked_conv_scratch_bytes(const ThreadPool& pool, const BlockedConv& conv, const Shape& x, const Shape& out);
// x and out are dense. |finish|: its rows are the blocks of all images, its columns their places times 16; only a scale and a
// shift at its begin may have an element per channel.
void blocked_conv(ThreadPool& pool, const BlockedConv& conv, const View& x, const float* packed, const Target& out,
                  const Finish& finish, std::span<std::byte> scratch);

// Whether |epilogue| can follow a blocked convolution.
bool can_block(const Epilogue& epilogue);

}  // namespace tenon::cpu

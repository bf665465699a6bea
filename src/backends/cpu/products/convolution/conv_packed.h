// Convolution as a product of packed weights and panels of the input.
//
// The weights of a group are the left operand of a product whose columns are
// the windows of the input, [channel, tap] by place. The windows are never laid
// out as a whole: a tile of places at a time is written in the order in which
// the micro-kernel reads it. Tiles may reach over several images, so small
// images fill the panels too. The epilogue is computed tile by tile.
//
// A padded place counts as 0 times its weight, so weights must be finite
// (is_finite). f32. Results depend neither on the number of threads nor on the
// images beside one.
#pragma once

#include <cstddef>
#include <span>

#include "backends/cpu/primitives/primitives.h"
#include "backends/cpu/products/epilogue.h"

namespace tenon::cpu {

bool is_finite(const float* weights, std::int64_t n);

// Whether there is a kernel for it: at least two channels of the input a group,
// or depthwise.
bool has_packed_conv(const Shape& weight, const ConvAttr& attr);
bool is_depthwise(const Shape& weight, const ConvAttr& attr);

// |weight| is dense. Depthwise weights are used as they are: nothing to pack.
std::int64_t packed_conv_elements(const Shape& weight, const ConvAttr& attr);
void pack_conv(const float* weight, const Shape& shape, const ConvAttr& attr, float* packed);

std::size_t packed_conv_scratch_bytes(const ThreadPool& pool, const View& x, const Shape& weight, const ConvAttr& attr,
                                      const Shape& out);
// |packed| as pack_conv made it, or the weights themselves if is_depthwise. x
// may have any strides.
void packed_conv(ThreadPool& pool, const View& x, const float* packed, const Shape& weight, const ConvAttr& attr,
                 const Target& out, const Finish& finish, std::span<std::byte> scratch);

}  // namespace tenon::cpu

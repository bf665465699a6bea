// Convolution of bfloat16 images without laying out windows, by the CPU's own instructions (gemm_bf16.h), with f32 results: as
// conv_direct.h, with pairs of channels in the place of channels.
//
// A padded place counts as 0 times its weight, so weights must be finite, and subnormal numbers count as zero. Results depend
// neither on the number of threads nor on the images beside one.
#pragma once

#include <span>

#include "backends/cpu/primitives/primitives.h"

namespace tenon::cpu {

// Whether it is the better way; it does not depend on the number of images. x is dense.
bool has_direct_conv16(const View& x, const Shape& weight, const ConvAttr& attr, const Shape& out);

std::size_t direct_conv16_scratch_bytes(const ThreadPool& pool, const View& x, const Shape& weight, const ConvAttr& attr,
                                        const Shape& out);
// |weight| is dense.
void direct_conv16(ThreadPool& pool, const View& x, const View& weight, const ConvAttr& attr, const Target& out,
                   std::span<std::byte> scratch);

}  // namespace tenon::cpu

// Depthwise convolution: every channel has a kernel of its own.
//
// A channel's image is copied with its padding to memory where the places that
// one tap reads are neighbours: one plane for each remainder of the position by
// the stride. A result is then a sum of vectors at fixed distances, over rows'
// ends, or of rows that share what they read, and the epilogue runs over the
// whole plane. f32. Thread safety and scratch memory as primitives.h.
#pragma once

#include "backends/cpu/primitives/primitives.h"
#include "backends/cpu/products/epilogue.h"

namespace tenon::cpu {

std::size_t depthwise_scratch_bytes(const ThreadPool& pool, const View& x, const Shape& weight, const ConvAttr& attr,
                                    const Shape& out);
void depthwise(ThreadPool& pool, const View& x, const float* weight, const Shape& weight_shape, const ConvAttr& attr,
               const Target& out, const Finish& finish, std::span<std::byte> scratch);

}  // namespace tenon::cpu

// Convolution without laying out windows: the micro-kernel reads the taps of neighbouring places where they are.
//
// The input is copied with its padding, a band of rows at a time, to planes in which the places that one tap reads are neighbours
// (planes.h), so a column of the product is a vector at a fixed distance from its place. Weights are packed as for conv_packed.h,
// and so are the rules for padding, threads and batches.
#pragma once

#include "backends/cpu/products/convolution/conv_packed.h"

namespace tenon::cpu {

// Whether it is the better way; it does not depend on the number of images.
bool has_direct_conv(const View& x, const Shape& weight, const ConvAttr& attr, const Shape& out);

std::size_t direct_conv_scratch_bytes(const ThreadPool& pool, const View& x, const Shape& weight, const ConvAttr& attr,
                                      const Shape& out);
void direct_conv(ThreadPool& pool, const View& x, const float* packed, const Shape& weight, const ConvAttr& attr,
                 const Target& out, const Finish& finish, std::span<std::byte> scratch);

}  // namespace tenon::cpu

// Transposed convolution as one step (ConvTransposeAttr): a matrix product that spreads no zeros.
//
// For each image and group, the products of all kernel elements with a part of the input are formed at once, and added to the
// places of the result that they belong to. Each thread has its own channels of the result. Kernels that overlap along two or
// three axes are computed by their phases instead, where those have a kernel (products/convolution/transposed_phases.h).
// Thread safety: touches only its arguments.
#pragma once

#include "backends/cpu/primitives/primitives.h"

namespace tenon::cpu {

std::size_t conv_transpose_scratch_bytes(const ThreadPool& pool, const Shape& x, const Shape& weight,
                                         const ConvTransposeAttr& attr);
// x and weight are dense and both f32, or both bf16 where has_conv_transpose16() says so; out is f32.
bool has_conv_transpose16(DType dtype);
void conv_transpose(ThreadPool& pool, const View& x, const View& weight, const ConvTransposeAttr& attr, const Target& out,
                    std::span<std::byte> scratch);

}  // namespace tenon::cpu

// Pooling to a given number of windows, which may differ in size (AdaptivePoolAttr).
//
// The rows of a window are joined first, element by element, then what lies in each window of the joined row.
// Thread safety: touches only its arguments.
#pragma once

#include "backends/cpu/primitives/primitives.h"

namespace tenon::cpu {

std::size_t adaptive_pool_scratch_bytes(const ThreadPool& pool, const Shape& x, const Shape& out);
// x is dense, of f32, f16 or bf16; out is f32.
void adaptive_pool(ThreadPool& pool, const View& x, const AdaptivePoolAttr& attr, const Target& out,
                   std::span<std::byte> scratch);

}  // namespace tenon::cpu

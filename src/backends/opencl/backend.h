// The OpenCL backend: GPUs of any vendor, and the CPU through PoCL.
#pragma once

#include <memory>
#include <span>

#include "tenon/backend.h"

namespace tenon::opencl {

std::unique_ptr<Backend> make_backend();

// Compiles the kernels of several graphs as one module, which is much faster than compiling them one by one. |device| was opened
// by this backend; graphs compiled soon after find their kernels ready.
void prepare(OpenDevice& device, std::span<const Graph> graphs);

}  // namespace tenon::opencl

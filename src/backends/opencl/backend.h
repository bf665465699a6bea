// The OpenCL backend: GPUs of any maker, and the processor through PoCL.
#pragma once

#include <memory>
#include <span>

#include "tenon/backend.h"

namespace tenon::opencl {

std::unique_ptr<Backend> make_backend();

// Compiles the kernels of several graphs as one module, which takes a compiler far less time than one by one. |device| is one
// this backend opened; programs of the graphs compiled soon after find their kernels ready.
void prepare(OpenDevice& device, std::span<const Graph> graphs);

}  // namespace tenon::opencl

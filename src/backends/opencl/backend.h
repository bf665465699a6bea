// The OpenCL backend: GPUs of any maker, and the processor through PoCL.
#pragma once

#include <memory>

#include "tenon/backend.h"

namespace tenon::opencl {

std::unique_ptr<Backend> make_backend();

}  // namespace tenon::opencl

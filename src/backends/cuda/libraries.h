// NVIDIA's libraries, loaded when first asked for and never unloaded; and their errors as Tenon's.
//
// Each is looked for under its versioned names, newest first, where the loader looks and then below $CUDA_HOME, $CUDA_PATH and
// /usr/local/cuda. What is missing is a sentence. Thread safety: all calls may run side by side.
#pragma once

#include <string>
#include <string_view>

#include "backends/cuda/api.h"
#include "tenon/error.h"

namespace tenon::cuda {

// Throws unavailable, saying what to install.
const Driver& driver();
const Nvrtc& nvrtc();
// Null when it is not there: products are then generated kernels.
const BlasLibrary* blas_library();

// After such an error the context refuses everything else.
bool is_fatal(Result result) noexcept;
// |what| was tried on |device|: "cuda:0: launching a kernel failed: CUDA_ERROR_..., an illegal memory access was encountered".
Error error_of(const Driver& driver, Result result, std::string_view device, std::string_view what);

}  // namespace tenon::cuda

// NVIDIA's libraries, loaded on first use and never unloaded, and the translation of their errors.
//
// Each is looked up under its versioned names, newest first, by the loader and then under $CUDA_HOME, $CUDA_PATH and
// /usr/local/cuda. A missing library is reported as an error. Thread safety: all calls may run concurrently.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "backends/cuda/api.h"
#include "backends/cuda/nccl/api.h"
#include "tenon/error.h"

namespace tenon::cuda {

// Throws unavailable with a hint on what to install.
const Driver& driver();
// Whether the driver's library is in this process, whoever loaded it. Loads nothing.
bool is_driver_loaded() noexcept;
const Nvrtc& nvrtc();
// Null if it is not installed; products are then generated kernels.
const BlasLibrary* blas_library();

struct NcclLibrary {
  nccl::Library table;
  std::string version;  // "2.27.3"
};
// libnccl.so.2. Throws unavailable if it is not there, lacks a function or is too old, with a hint on what to install.
const NcclLibrary& nccl_library();
// The same from the first of |names|, file names for the loader or paths, each time again.
NcclLibrary load_nccl(std::span<const std::string> names);

// Whether the context refuses all further work after this error.
bool is_fatal(Result result) noexcept;
// The error of operation |what| on |device|: "cuda:0: launching a kernel failed: CUDA_ERROR_..., an illegal memory access ...".
Error error_of(const Driver& driver, Result result, std::string_view device, std::string_view what);

}  // namespace tenon::cuda

// The cuda backend: NVIDIA cards through the driver API, NVRTC and cuBLASLt, all loaded at run time.
//
// Finding cards reads files and creates no context. Opening one retains its primary context; closing releases it.
#pragma once

#include <memory>

#include "backends/cuda/executable.h"
#include "backends/cuda/nccl/api.h"
#include "tenon/backend.h"

namespace tenon::cuda {

std::unique_ptr<Backend> make_backend();

struct DriverOptions {
  ExecutableOptions programs = {};
  Compiler compiler = {};               // none: NVRTC
  const nccl::Library* nccl = nullptr;  // none: libnccl.so.2, if it is there; must outlive the card
};
// An open card driven through |driver|, which must outlive it.
std::unique_ptr<OpenDevice> open_with(const Driver& driver, const DeviceInfo& device, const OpenOptions& options = {},
                                      const DriverOptions& how = {});

}  // namespace tenon::cuda

// The exact tier of the backend ttnn without a chip: its kernels are compiled by the system's C++ compiler, with TENON_HOST
// defined, and run by this process. It tests the text of the kernels, their memory access and the planner; that a Tenstorrent
// chip computes the same is tested where there is one.
#pragma once

#include <memory>
#include <span>

#include "tenon/backend.h"

namespace tenon::conformance {

// Throws unavailable if there is no compiler.
std::unique_ptr<OpenDevice> open_host_tensix();
// Compiles the kernels of |graphs| together, which takes much less time than one by one.
void prepare_host_tensix(OpenDevice& device, std::span<const Graph> graphs);

}  // namespace tenon::conformance

// The ttnn backend: Tenstorrent chips through TTNN, the maker's runtime, as the user installed it (docs/tenstorrent.md).
//
// TTNN is a Python package. A device is opened in a worker process, tenon-ttnn-worker, that only executes the steps of programs
// planned here. Each worker sees one chip.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "tenon/backend.h"

namespace tenon::ttnn {

std::unique_ptr<Backend> make_backend();

// What the worker of |device| has in its environment besides that of this process: the chip it may see, where TTNN keeps
// compiled kernels and logs. Variables that the user has set keep their values. An empty value removes a variable.
std::map<std::string, std::string> worker_environment(const DeviceInfo& device);

}  // namespace tenon::ttnn

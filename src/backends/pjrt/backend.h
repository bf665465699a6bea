// The `pjrt` backend: any device with a PJRT plugin, in a worker process.
#pragma once

#include <memory>

#include "tenon/backend.h"

namespace tenon::pjrt {

std::unique_ptr<Backend> make_backend();

}  // namespace tenon::pjrt

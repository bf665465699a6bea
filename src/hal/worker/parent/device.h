// Opens a device over a connection to its worker.
#pragma once

#include <memory>
#include <string_view>

#include "hal/worker/parent/connection.h"
#include "hal/worker/parent/spare_worker.h"
#include "tenon/backend.h"

namespace tenon {

// |spare|, which may be null, is started when the device has closed. Blocks until the device is open; throws the errors of
// opening.
std::unique_ptr<OpenDevice> open_over(std::shared_ptr<WorkerConnection> connection, std::string_view backend,
                                      const DeviceInfo& device, const OpenOptions& options, std::shared_ptr<SpareWorker> spare);

}  // namespace tenon

// A device of a PJRT plugin that is loaded into this process; for the worker that hosts it, and for tests.
#pragma once

#include <memory>
#include <string>

#include "tenon/backend.h"

namespace tenon::pjrt {

// Loads the plugin, creates a client and uses its first device, which the environment determines (environment.h). The plugin
// reads its environment once, so it must be set before. Throws unavailable and the plugin's errors.
std::unique_ptr<OpenDevice> open_here(const std::string& library, const DeviceInfo& device, const OpenOptions& options);

}  // namespace tenon::pjrt

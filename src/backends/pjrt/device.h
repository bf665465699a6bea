// A device of a PJRT plugin that is loaded into this very process: for the worker that hosts it, and for tests.
#pragma once

#include <memory>
#include <string>

#include "tenon/backend.h"

namespace tenon::pjrt {

// Loads the plugin, makes a client and takes its first device; which one that is follows from the environment (environment.h).
// The plugin's environment must be set before: it is read once. Throws unavailable and what the plugin throws.
std::unique_ptr<OpenDevice> open_here(const std::string& library, const DeviceInfo& device, const OpenOptions& options);

}  // namespace tenon::pjrt

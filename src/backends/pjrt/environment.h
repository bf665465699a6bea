// The environment of a plugin. Plugins read it once, when they load, so it is set in the worker process.
#pragma once

#include <map>
#include <string>

#include "tenon/device.h"

namespace tenon::pjrt {

// The variables that restrict a vendor's runtime to |device|: TT_VISIBLE_DEVICES, TPU_VISIBLE_CHIPS, CUDA_VISIBLE_DEVICES,
// ROCR_VISIBLE_DEVICES. Empty for a CPU.
std::map<std::string, std::string> pinning_variables(const DeviceInfo& device);

// The flags that make XLA follow the program exactly: no reassociation, no excess precision. |already| is the current value of
// XLA_FLAGS and stays in front. "" if |library| is not based on XLA or its flags are unknown.
std::string xla_flags(const std::string& library, const std::string& already);

}  // namespace tenon::pjrt

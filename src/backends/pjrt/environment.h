// The environment a plugin runs in. Plugins read it once, when they load, so it belongs to the worker process.
#pragma once

#include <map>
#include <string>

#include "tenon/device.h"

namespace tenon::pjrt {

// The variables that make a maker's runtime see |device| and no other card: TT_VISIBLE_DEVICES, TPU_VISIBLE_CHIPS,
// CUDA_VISIBLE_DEVICES, ROCR_VISIBLE_DEVICES. Nothing for a processor.
std::map<std::string, std::string> pinning_variables(const DeviceInfo& device);

// The flags that make XLA compute what the program says: no reassociation, no excess precision. |already| is what XLA_FLAGS
// holds; it stays in front. "" when |library| is not built on XLA, or nothing is known of its flags.
std::string xla_flags(const std::string& library, const std::string& already);

}  // namespace tenon::pjrt

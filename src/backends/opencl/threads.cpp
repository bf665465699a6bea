#include "backends/opencl/threads.h"

#include <algorithm>
#include <cstdlib>

namespace tenon::opencl {

void ask_for_device_without_threads(std::map<std::string, std::string>& variables) {
  constexpr const char* kOfThreads[] = {"POCL_AFFINITY", "POCL_MAX_PTHREAD_COUNT", "POCL_PTHREAD_MIN_THREADS",
                                        "POCL_CPU_MAX_CU_COUNT", "POCL_CPU_MIN_CU_COUNT"};
  if (std::ranges::any_of(kOfThreads, [&](const char* name) { return std::getenv(name) || variables.contains(name); })) return;
  // The same may have been asked for before.
  const char* const devices = std::getenv(kDevicesVariable);
  if (!devices || std::string_view(devices) == kDeviceWithoutThreads) variables.emplace(kDevicesVariable, kDeviceWithoutThreads);
}

void ask_for_device_without_threads() {
  std::map<std::string, std::string> variables;
  ask_for_device_without_threads(variables);
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 0);
}

bool is_without_threads(std::string_view device) {
  // The newer name came with PoCL 4, which knows the older one, too.
  return device.starts_with("basic-") || device.starts_with("cpu-minimal-");
}

}  // namespace tenon::opencl

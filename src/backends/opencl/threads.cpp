#include "backends/opencl/threads.h"

#include <algorithm>
#include <cstdlib>

namespace tenon::opencl {

bool should_bring_threads(const std::map<std::string, std::string>& more) {
  constexpr const char* kOfThreads[] = {kDevicesVariable,           "POCL_AFFINITY",         "POCL_MAX_PTHREAD_COUNT",
                                        "POCL_PTHREAD_MIN_THREADS", "POCL_CPU_MAX_CU_COUNT", "POCL_CPU_MIN_CU_COUNT"};
  return std::ranges::none_of(kOfThreads, [&](const char* name) { return std::getenv(name) || more.contains(name); });
}

void bring_threads() {
  if (should_bring_threads()) setenv(kDevicesVariable, kDeviceWithoutThreads, 0);
}

bool is_without_threads(std::string_view device) {
  // The newer name came with PoCL 4, which knows the older one, too.
  return device.starts_with("basic-") || device.starts_with("cpu-minimal-");
}

}  // namespace tenon::opencl

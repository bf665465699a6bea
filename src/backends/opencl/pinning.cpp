#include "backends/opencl/pinning.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace tenon::opencl {

bool should_pin_threads(const std::map<std::string, std::string>& more) {
  constexpr const char* kOfThreads[] = {kPinningVariable, "POCL_MAX_PTHREAD_COUNT", "POCL_PTHREAD_MIN_THREADS",
                                        "POCL_CPU_MAX_CU_COUNT", "POCL_CPU_MIN_CU_COUNT"};
  if (std::ranges::any_of(kOfThreads, [&](const char* name) { return std::getenv(name) || more.contains(name); })) return false;
  // Thread i goes to processor i.
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  cpu_set_t ours;
  if (sched_getaffinity(0, sizeof ours, &ours) != 0) return false;
  for (long i = 0; i < online; ++i)
    if (!CPU_ISSET(static_cast<std::size_t>(i), &ours)) return false;
  return true;
}

bool asked_to_pin_threads() noexcept {
  const char* const value = std::getenv(kPinningVariable);
  return value && std::string_view(value) == "1";
}

}  // namespace tenon::opencl

#include "backends/opencl/pinning.h"

#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace tenon::opencl {
namespace {

constexpr const char* kVariable = "POCL_AFFINITY";

}  // namespace

void pin_threads() noexcept {
  // Thread i goes to processor i, and where it cannot PoCL ends the process.
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  cpu_set_t ours;
  if (sched_getaffinity(0, sizeof ours, &ours) != 0) return;
  for (long i = 0; i < online; ++i)
    if (!CPU_ISSET(static_cast<std::size_t>(i), &ours)) return;
  setenv(kVariable, "1", 0);
}

bool asked_to_pin_threads() noexcept {
  const char* const value = std::getenv(kVariable);
  return value && std::string_view(value) == "1";
}

}  // namespace tenon::opencl

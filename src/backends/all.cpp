#include "backends/all.h"

#include "backends/cpu/backend.h"
#include "backends/cuda/backend.h"
#include "backends/opencl/backend.h"
#include "backends/pjrt/backend.h"
#include "backends/sim/backend.h"

namespace tenon {

void register_all_backends(BackendRegistry& registry, std::span<const SimulatedDevice> simulated) {
  registry.add(cpu::make_backend());
  registry.add(cuda::make_backend());
  registry.add(opencl::make_backend());
  registry.add(pjrt::make_backend());
  if (!simulated.empty()) registry.add(sim::make_backend({simulated.begin(), simulated.end()}, cpu::make_backend()));
}

}  // namespace tenon

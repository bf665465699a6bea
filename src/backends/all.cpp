#include "backends/all.h"

#include "backends/cpu/backend.h"
#include "backends/cuda/backend.h"
#include "backends/opencl/backend.h"
#include "backends/pjrt/backend.h"
#include "backends/sim/backend.h"
#include "hal/worker/worker.h"

namespace tenon {

void register_all_backends(BackendRegistry& registry, std::span<const SimulatedDevice> simulated, bool isolated) {
  const auto add = [&](std::unique_ptr<Backend> backend) {
    registry.add(isolated ? isolate(std::move(backend)) : std::move(backend));
  };
  add(cpu::make_backend());
  add(cuda::make_backend());
  add(opencl::make_backend());
  registry.add(pjrt::make_backend());
  if (!simulated.empty()) registry.add(sim::make_backend({simulated.begin(), simulated.end()}, cpu::make_backend()));
}

}  // namespace tenon

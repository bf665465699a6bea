#include "backends/all.h"

#include "backends/cpu/backend.h"
#include "backends/cuda/backend.h"
#include "backends/opencl/backend.h"
#include "backends/pjrt/backend.h"
#include "backends/sim/backend.h"
#include "backends/ttnn/backend.h"
#include "hal/worker/worker.h"

namespace tenon {

void register_all_backends(BackendRegistry& registry, std::span<const SimulatedDevice> simulated, Hosting hosting) {
  const auto add = [&](std::unique_ptr<Backend> backend) {
    registry.add(hosting == Hosting::workers ? isolate(std::move(backend)) : std::move(backend));
  };
  add(cpu::make_backend());
  // cuBLASLt keeps the driver's context until the process ends.
  if (hosting == Hosting::as_needed)
    registry.add(isolate_if_possible(cuda::make_backend()));
  else
    add(cuda::make_backend());
  add(opencl::make_backend());
  registry.add(ttnn::make_backend());
  registry.add(pjrt::make_backend());
  if (!simulated.empty()) registry.add(sim::make_backend({simulated.begin(), simulated.end()}, cpu::make_backend()));
}

}  // namespace tenon

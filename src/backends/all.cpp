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
  const auto add_driver = [&](std::unique_ptr<Backend> backend, bool keeps_its_device) {
    if (hosting == Hosting::drivers || (hosting == Hosting::as_needed && keeps_its_device))
      registry.add(isolate_if_possible(std::move(backend)));
    else
      add(std::move(backend));
  };
  add_driver(cuda::make_backend(), true);  // cuBLASLt keeps the driver's context until the process ends
  add_driver(opencl::make_backend(), false);
  registry.add(ttnn::make_backend());
  registry.add(pjrt::make_backend());
  if (!simulated.empty()) registry.add(sim::make_backend({simulated.begin(), simulated.end()}, cpu::make_backend()));
}

}  // namespace tenon

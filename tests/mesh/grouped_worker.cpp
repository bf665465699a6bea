// A worker whose devices exchange with each other: those of grouped_backend.h.
#include "hal/worker/worker.h"
#include "mesh/grouped_backend.h"

int main() {
  tenon::BackendRegistry registry;
  registry.add(std::make_unique<tenon::GroupedBackend>(1, std::make_shared<tenon::Grouping>()));
  return tenon::run_worker(registry);
}
